"""Command hooks: the round trip through a command that does nothing, with the payload on its stdin."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from bench._data import PAYLOAD
from bench._table import Row
from fairlead import CommandHook, HookManager, PreToolUse, parse

if TYPE_CHECKING:
    from bench._harness import Effort

SHELL = ["/bin/sh", "-c", "true"]


def rows(effort: Effort) -> list[Row]:
    event = parse(PAYLOAD)
    hooks = HookManager()
    hooks.register(CommandHook("nothing", "true", [PreToolUse]))
    assert not hooks.fire_sync(event).failures
    times = effort.compare(
        {
            "ours": effort.looped(lambda: hooks.fire_sync(event)),
            "run": effort.looped(lambda: subprocess.run(SHELL, input=PAYLOAD, capture_output=True, check=True)),
        }
    )
    what = "CommandHook that runs `true`"
    return [Row("command", what, "ms", times["ours"], "subprocess.run, same", times["run"])]
