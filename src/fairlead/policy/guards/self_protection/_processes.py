"""Checks commands that end Fairlead's daemon, or stop the service that runs it."""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from fairlead.policy.bash.programs._calls import basename
from fairlead.policy.guards.self_protection._findings import Finding, is_any, is_open, operands

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    CommandCheck = Callable[[Sequence[str], str], Iterator[Finding]]

_NAME = "fairlead"
_END_DAEMON = "ending Fairlead's daemon"
_END_ANY = "ending processes among which is Fairlead's daemon; name your own by their pid"
_STOP_SERVICE = "stopping the service that runs Fairlead"
_LISTS = frozenset({"-l", "-L", "--list", "-0", "--table"})
_VERBS = frozenset(
    {
        *("stop", "disable", "mask", "kill", "restart", "try-restart", "edit", "revert", "set-property", "freeze"),
        *("unload", "bootout", "remove", "terminate-user", "kill-user", "terminate-session", "kill-session"),
        *("clean", "isolate"),
    }
)
_WHOLE_USER = frozenset({"terminate-user", "kill-user", "terminate-session", "kill-session", "isolate"})
_SET_VARIABLES = frozenset({"set-environment", "import-environment", "setenv"})


def _kill(args: Sequence[str], text: str) -> Iterator[Finding]:
    """Check `kill`: a pid that is only known when it runs matters if the command mentions Fairlead."""
    if not _LISTS.isdisjoint(args):
        return
    targets = [*args]
    if targets and targets[0].startswith("-") and targets[0] != "--":
        targets = targets[2:] if targets[0] in {"-s", "-n", "--signal"} else targets[1:]
    daemon = None
    for word in targets:
        if word in {"-1", "--"}:
            yield from [Finding(_END_ANY)] if word == "-1" else ()
        elif word.lstrip("-").isdigit():
            daemon = daemon_process() if daemon is None else daemon
            if int(word.lstrip("-")) == daemon:
                yield Finding(_END_DAEMON)
        elif is_any(word) and (_NAME in text or "daemon.lock" in text):
            yield Finding(_END_DAEMON)


def _pkill(args: Sequence[str], text: str) -> Iterator[Finding]:
    """Check `pkill` and, before a `kill`, `pgrep`: the pattern is tried on the daemon's name and command line."""
    patterns = list(_without_values(args, "-u", "-U", "-P", "-g", "-s", "-t", "-G", "--signal"))
    if not patterns:
        yield from [Finding(_END_ANY)] if {"-u", "-U", "--euid", "--uid"} & set(args) else ()
    for pattern in patterns:
        if _NAME in pattern.lower() or (is_open(pattern) and _NAME in text):
            yield Finding(_END_DAEMON)
        elif not is_open(pattern) and _matches(pattern, args):
            yield Finding(_END_ANY, is_certain=False)


def _killall(args: Sequence[str], text: str) -> Iterator[Finding]:
    names = list(_without_values(args, "-u", "-s", "-o", "-y", "-n", "--user", "--signal"))
    if not names and {"-u", "--user"} & set(args):
        yield Finding(_END_ANY)
    by_pattern = bool({"-r", "--regexp"} & set(args))
    programs = {_process_name(), basename(os.path.realpath(sys.executable))}
    for name in names:
        if _NAME in name.lower() or (is_open(name) and _NAME in text):
            yield Finding(_END_DAEMON)
        elif basename(name) in programs or (by_pattern and _matches(name, ())):
            yield Finding(_END_ANY, is_certain=False)


def _supervised(args: Sequence[str], text: str) -> Iterator[Finding]:
    if _NAME in text and any(_NAME in arg for arg in args) and any(arg.startswith("-") for arg in args):
        yield Finding(_STOP_SERVICE)


def _service(args: Sequence[str], text: str) -> Iterator[Finding]:
    """Check `systemctl`, `launchctl`, `loginctl` and the like."""
    words = operands(args)
    if not _VERBS.isdisjoint(words) and (_NAME in text or not _WHOLE_USER.isdisjoint(words)):
        yield Finding(_STOP_SERVICE)


def _attach(args: Sequence[str], text: str) -> Iterator[Finding]:
    """Check a debugger, or a program that limits or signals another process."""
    if _NAME in text and any(is_any(arg) or arg.isdigit() or _NAME in arg for arg in args):
        yield Finding("attaching to Fairlead's daemon", is_certain=False)


def _bus(args: Sequence[str], text: str) -> Iterator[Finding]:
    if _NAME in text and re.search(r"(?i)stop|kill|disable|mask|restart|freeze", " ".join(args)):
        yield Finding(_STOP_SERVICE)


PROCESSES: dict[str, CommandCheck] = {
    **dict.fromkeys(("gdb", "lldb", "prlimit", "renice", "strace", "reptyr", "fuser"), _attach),
    **dict.fromkeys(("busctl", "dbus-send", "gdbus", "qdbus"), _bus),
    "kill": _kill,
    "pkill": _pkill,
    "killall": _killall,
    "skill": _killall,
    **dict.fromkeys(("s6-svc", "s6-rc", "svc"), _supervised),
    "killall5": lambda _, __: iter([Finding(_END_ANY)]),
    **dict.fromkeys(("systemctl", "launchctl", "loginctl", "service", "rc-service", "sv", "supervisorctl"), _service),
}
"""Program → the function that checks its arguments."""
FINDERS: dict[str, CommandCheck] = {"pgrep": _pkill, "pidof": _killall}
"""Programs that find a process, which matter before a `kill`."""


def sets_variables(program: str, args: Sequence[str]) -> list[str]:
    """Return the variables that a command sets for every later process of the user."""
    if program not in {"systemctl", "launchctl", "tmux"} or _SET_VARIABLES.isdisjoint(args):
        return []
    return [word.partition("=")[0] for word in operands(args)[1:]]


def _matches(pattern: str, args: Sequence[str]) -> bool:
    full = any(arg in {"-f", "--full"} or re.fullmatch(r"-[a-zA-Z]*f[a-zA-Z]*", arg) for arg in args)
    subject = _command_line() if full else _process_name()
    test = re.fullmatch if "-x" in args or "--exact" in args else re.search
    try:
        return test(pattern, subject) is not None
    except re.error:
        return pattern in subject


def _without_values(args: Sequence[str], *valued: str) -> Iterator[str]:
    """Yield the operands; the word after an option in `valued` is its value."""
    skip = False
    for arg in args:
        if not skip and not arg.startswith("-"):
            yield arg
        skip = not skip and arg in valued


def daemon_process() -> int:
    """Return the pid of the daemon; 0 if none runs."""
    from fairlead.ipc import daemon_pid
    from fairlead.paths import runtime_folder

    return daemon_pid(runtime_folder()) or 0


def _process_name() -> str:
    return os.path.basename(sys.executable or "python")[:15]


def _command_line() -> str:
    return f"{sys.executable} -E -P -m fairlead.daemon --on-demand"
