"""The actions of a person on a session: interrupt it, end it, write to it, read its transcript.

The view and the command line use them. The caller must check with `refuse_below_session` that a person acts.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from fairlead.clients import STARTING, client_above, client_or_default
from fairlead.errors import FairleadError
from fairlead.ipc import RequestRefused, request
from fairlead.process import ancestry_of, is_alive, terminate_process
from fairlead.sessions import AttentionNeeded, Working, transcript_of
from fairlead.text import one_line, printable_lines
from fairlead.tui import _tmux

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.sessions import Session

END_TIMEOUT = 10.0
"""Seconds that a client has to exit. It runs its SessionEnd hooks before."""
_MAIL_TIMEOUT = 30.0


class NotPossible(FairleadError):
    """An action cannot be performed on a session. The message has the reason."""


def refuse_below_session(action: str) -> None:
    """Raise `NotPossible` if this process runs below an agent's session: only a person may act on sessions.

    `action` is a part of the message, such as 'end a session', which is shown in a line of the view. For commands,
    `cli.support.person` has the same check with another message.
    """
    client = client_above(os.environ)
    if client is not None:
        raise NotPossible(f"only a person can {action}, and this runs below a session of {client.title}")


# -- interrupt and end ---------------------------------------------------------------------------------


async def interrupt_session(session: Session) -> str:
    """Interrupt a session by pressing the client's keys in its terminal, and return a message.

    Keys are sent to a pane only while the process of the session runs in it. A signal would end the client instead.
    Raises `NotPossible` or `NoPane` if the session cannot be interrupted.
    """
    keys = client_or_default(session.client).interrupt_keys
    require_here(session, "it can be interrupted only there")
    require_process(session, "interrupted")
    _require_alive(session)
    if not keys:
        raise NotPossible("it is not known how this client is interrupted")
    if not isinstance(session.state, Working | AttentionNeeded):
        raise NotPossible("it is idle: there is nothing to interrupt")
    if not session.pane:
        raise NotPossible("only a session in a tmux pane can be interrupted from here; press Escape in its terminal")
    above = {pid for pid, _ in ancestry_of(session.pid).processes}
    if await _tmux.pane_process(session.tmux, session.pane) not in above:
        raise NotPossible(f"its process does not run in pane {one_line(session.pane)} any more")
    await _tmux.send_keys(session.tmux, session.pane, keys)
    return f"interrupted: {' '.join(keys)} was pressed in pane {session.pane}"


def end_session(session: Session) -> str:
    """Ask the process of a session to exit, wait until it has exited, and return a message.

    Raises `NotPossible` if the process is not known, is gone, or still runs after `END_TIMEOUT` seconds, and
    `ProcessNotEnded` if it cannot be ended safely.
    """
    require_process(session, "ended")
    _require_alive(session)
    if terminate_process(session.pid, session.pid_start, END_TIMEOUT):
        return f"ended: process {session.pid}"
    raise NotPossible(f"process {session.pid} was asked to end, and still runs after {END_TIMEOUT:g} s")


def require_process(session: Session, done: str) -> None:
    """Raise `NotPossible` unless a session runs on this host, in a known process of its own.

    `done` is the action, such as 'ended'.
    """
    require_here(session, f"it can be {done} only there")
    if session.ended is not None:
        raise NotPossible("it has ended")
    if session.is_child:
        raise NotPossible(f"a subagent runs in the process of its session, and cannot be {done} alone")
    if not session.pid or not session.pid_start:
        raise NotPossible("its process, or when that started, is not known")


def require_here(session: Session, what: str) -> None:
    """Raise `NotPossible` if a session runs on another host. `what` is the reason, such as 'its pane is there'."""
    if session.host:
        raise NotPossible(f"it runs on {session.host}: {what}; from here you can answer it (a) and write to it (m)")


def _require_alive(session: Session) -> None:
    if not is_alive(session.pid, session.pid_start):
        raise NotPossible(f"its process {session.pid} is gone")


# -- mail ----------------------------------------------------------------------------------------------


def send_mail(session: Session, text: str, at: str | None = None) -> str:
    """Send a message from the user to the agent of a session, and return the text to show.

    `at` is the path of the daemon's socket. Raises `NotPossible` if the agent has no mailbox, or if the daemon refuses.
    """
    if session.id.startswith(STARTING):
        raise NotPossible("it waits in a dialog at its start, and reads no mail yet")
    main = session.id.removesuffix(f"/{session.agent_id}") if session.is_child else session.id
    document = _ask("GET", "agents?all=true", None, at)
    names = (
        agent["name"]
        for agent in document["agents"]
        if (agent["session"], agent["agent_id"]) == (main, session.agent_id)
    )
    if session.host:
        agents = (agent for host in document["hosts"] if host["host"] == session.host for agent in host["agents"])
        names = (agent["name"] for agent in agents if f"{agent['session']}@{session.host}" == session.id)
    name = next(names, "")
    if not name:
        raise NotPossible("it has no mailbox: no event of it has arrived")
    sent = _ask("POST", "send", {"to": [name], "body": text, "key": uuid4().hex}, at)
    return f"sent to {one_line(name)}: message {sent['id']}"


def _ask(method: str, path: str, fields: object, at: str | None) -> Any:
    try:
        return request(method, f"/v1/mail/{path}", fields, timeout=_MAIL_TIMEOUT, at=at)
    except RequestRefused as error:
        raise NotPossible(f"the message was not sent: {one_line(error.text)}") from None


# -- the transcript ------------------------------------------------------------------------------------


def transcript_lines(session: Session, main: Session | None = None) -> Iterator[str]:
    """Yield the lines of a session's conversation, safe to show.

    `main` is the main session of a subagent. Raises `NotPossible` if the transcript is on another host, is not known,
    or cannot be read.
    """
    require_here(session, "its transcript is there")
    path = transcript_of(session, main)
    if not path:
        raise NotPossible("its transcript is not known: no event has named it")
    try:
        lines = client_or_default(session.client).transcript_text(path)
        yield from (line for text in lines for line in printable_lines(text))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise NotPossible(f"its transcript cannot be read: {one_line(path)}: {reason}") from None


def show_in_pager(lines: Iterable[str]) -> None:
    """Show lines in the user's pager, and return when it is closed. Raises `NotPossible` if it cannot be started."""
    command = shlex.split(os.environ.get("PAGER", "")) or [next(filter(shutil.which, ("less", "more")), "")]
    text = "".join(f"{line}\n" for line in lines).encode(errors="replace")
    # The terminal sends Ctrl-C to both processes, but only the pager should react. It would inherit SIG_IGN.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(command, input=text, check=False)  # noqa: S603 - the user's own pager
    except OSError as error:
        raise NotPossible(f"the pager cannot be started: {command[0] or 'none'}: {error.strerror}") from None
    finally:
        signal.signal(signal.SIGINT, before)
