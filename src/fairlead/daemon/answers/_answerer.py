"""Identifies who answers, by the process at the other end of the socket. Blocks: it reads the process table."""

from __future__ import annotations

import os
import pwd
import sys
from contextlib import suppress

from fairlead.clients import client_above
from fairlead.daemon.answers._questions import Answerer, AnswerError
from fairlead.process import ancestry_of

_MAX_ENVIRONMENT = 1 << 20
_TERMINALS = ("/dev/pts/", "/dev/tty")


class NotAPerson(AnswerError):
    """The answer comes from an agent's session, or from an unknown process."""


def find_answerer(pid: int, by: str) -> Answerer:
    """Return the person behind a process. Raises `NotAPerson` below an agent's session, or if the process has ended.

    If the process has ended before it could be inspected, its parent is unknown, so the answer is refused. `by` is the
    program that the person uses (`Answerer.by`).
    """
    client = client_above(_environment(pid), pid) if pid else None
    if client is not None:
        raise NotAPerson(f"only a person can answer, not a session of {client.title}")
    if not ancestry_of(pid).processes:
        raise NotAPerson("it is not known which process answers; ask over the daemon's own socket, and wait for it")
    return Answerer(user=_user(), pid=pid, terminal=_terminal(pid), by=by)


def _user() -> str:
    """Return the name of this user. No other user can connect."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def _environment(pid: int) -> dict[str, str]:
    """Return the environment with which a process was started; empty if the system does not provide it."""
    content = b""
    if sys.platform.startswith("linux"):
        with suppress(OSError), open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            content = file.read(_MAX_ENVIRONMENT)
    pairs = (item.partition(b"=") for item in content.split(b"\0") if b"=" in item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def _terminal(pid: int) -> str:
    """Return the terminal of a process; "" if it has none, or if the system does not provide it."""
    for number in (0, 2, 1):
        with suppress(OSError):
            target = os.readlink(f"/proc/{pid}/fd/{number}")
            if target.startswith(_TERMINALS):
                return target
    return ""
