"""The effects of programs that run a command later, or in another terminal: at, crontab, tmux, screen, systemd-run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Program,
    ProgramCall,
    RunCommand,
    RunFile,
    RunScript,
    UnknownEffect,
    options_before_operand,
    parse_options,
    run_script,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_CRON_TIME: Final = re.compile(r"^(?:@\w+|(?:[\d*/,A-Za-z-]+[ \t]+){5})", re.MULTILINE)
_TMUX_COMMANDS: Final = frozenset(
    {
        *("new", "new-session", "neww", "new-window", "splitw", "split-window", "respawn-pane", "respawnp"),
        *("respawn-window", "respawnw", "run", "run-shell", "if", "if-shell", "popup", "display-popup"),
        *("pipe-pane", "pipep", "new-pane"),
    }
)
_TMUX_KEYS: Final = frozenset({"send", "send-keys"})


def _at(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "fqt")
    if opts.has("l", "d", "r", "c", "V"):
        return
    for word in opts.values("f"):
        yield Access("read", word)
        yield RunFile(word, "sh", [])
    if call.stdin is not None:
        yield RunScript(call.stdin)
    elif call.file is not None:
        yield RunFile(call.file, "sh", [])
    elif call.piped:
        yield UnknownEffect(f"{call.program} runs the output of another command later", runs=True)


def _crontab(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "u")
    if opts.has("l", "r", "e"):
        return
    files = [word for word in opts.operands if word != "-"]
    if call.stdin is not None and not files:
        yield RunScript(_CRON_TIME.sub("", call.stdin))
    elif files or call.piped or call.file is not None:
        yield UnknownEffect("crontab installs commands that run later")


def _tmux(call: ProgramCall) -> Iterator[Effect]:
    _, words = options_before_operand(call.args, "LSfcT", "")
    if not words:
        return
    opts, rest = options_before_operand(words[1:], "stncFextlpwhybBD", "")
    if words[0] in _TMUX_KEYS:
        typed = [word for word in rest if word not in {"Enter", "C-m", "KPEnter"}]
        yield run_script(" ".join(map(plain, typed)), "tmux")
    elif words[0] in _TMUX_COMMANDS and rest:
        folder = next(iter(opts.values("c")), None)
        yield run_script(rest[0], "tmux") if len(rest) == 1 else RunCommand(rest, folder)


def _screen(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(call.args, "SDrRxcehpsTt", "")
    if opts.has("X") and words[:1] == ["stuff"]:
        yield run_script(" ".join(map(plain, words[1:])), "screen")
    elif words and not opts.has("X", "r", "R", "x", "ls"):
        yield RunCommand(words)


def _systemd_run(call: ProgramCall) -> Iterator[Effect]:
    opts, words = options_before_operand(
        call.args,
        "HMupE",
        "unit property description slice uid gid nice working-directory setenv on-active on-calendar",
    )
    if words:
        yield RunCommand(words, next(iter(opts.values("working-directory")), None))


DEFERRED: Final[dict[str, Program]] = {
    **dict.fromkeys(("at", "batch"), _at),
    "crontab": _crontab,
    "tmux": _tmux,
    "screen": _screen,
    "systemd-run": _systemd_run,
}
