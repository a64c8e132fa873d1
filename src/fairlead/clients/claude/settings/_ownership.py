"""Finds out which program a hook in Claude Code's settings belongs to, by its command line."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from fairlead.clients._programs import LAUNCHER
from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

WAKE_OPTION = "--wake"
"""The option of our second hook for an event, which waits in the background for mail."""

_SUBSTRATE = re.compile(r"/hooks/substrate/[\w-]+\.sh\Z")
_SHELLS = ("bash", "sh", "zsh")


def is_ours(hook: Mapping[str, Any]) -> bool:
    """Return whether a hook is ours: the launcher, or `fairlead <Event>` without options that the user added."""
    words = words_of(hook)
    if len(words) > 1 and _name(words[0]) == LAUNCHER:
        return words[1].isidentifier()  # includes events of a newer Fairlead
    if len(words) > 1 and _name(words[0]) == "fairlead":
        return HookEvent.find(words[1]) is not None and words[2:] in ([], ["--client", "claude"])
    return False


def is_wake(hook: Mapping[str, Any]) -> bool:
    """Return whether a hook of ours waits for mail and wakes the agent."""
    return WAKE_OPTION in words_of(hook)


def words_of(hook: Mapping[str, Any]) -> list[str]:
    """Return the command line of a hook as words; empty if it has no command, or only a shell can split it."""
    command, args = hook.get("command"), hook.get("args")
    if hook.get("type") != "command" or not isinstance(command, str):
        return []
    if isinstance(args, list):
        return [command, *map(str, args)]
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _is_conclaude(hook: Mapping[str, Any]) -> bool:
    return _name((words_of(hook) or [""])[0]) == "conclaude"


def _is_substrate(hook: Mapping[str, Any]) -> bool:
    words = words_of(hook) or [""]
    program = words[1] if _name(words[0]) in _SHELLS and len(words) > 1 else words[0]
    return _name(program) == "substrate" or _SUBSTRATE.search(program) is not None


REPLACEABLE: dict[str, Callable[[Mapping[str, Any]], bool]] = {"conclaude": _is_conclaude, "substrate": _is_substrate}
"""Name of each program that decides the same events → a function that returns whether a hook belongs to it."""


def _name(program: str) -> str:
    return program.rpartition("/")[2]
