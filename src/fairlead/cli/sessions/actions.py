"""`fairlead sessions go`, `mail`, `interrupt`, `end`, `transcript`, `copy`: what a person does to one session."""

from __future__ import annotations

import base64
import json
import sys
from time import time
from typing import TYPE_CHECKING

import click
import msgspec

from fairlead.cli.sessions.listing import request_sessions, state_name
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_sessions
from fairlead.cli.support.invocation import print_line, print_lines
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.errors import UsageError
from fairlead.sessions import Session
from fairlead.text import duration, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MAX_NAMED = 3
_EXIT_CODES = ((0, "done"), (1, "not done; stderr says why"))
_ARGUMENTS = (("ID", "the id of a session; its first characters are enough"),)


# -- pure parts ----------------------------------------------------------------------------------------


def find_session(sessions: Sequence[Session], given: str) -> Session:
    """Return the session whose id starts with `given`. Raise `UsageError` if there is none, or no clear choice.

    Of several, return the one whose id is equal to `given`, else the only main session that runs, else the only main
    session.
    """
    matches = [session for session in sessions if session.id.startswith(given)] if given else []
    equal = [session for session in matches if session.id == given]
    main = [session for session in matches if not session.is_child]
    live = [session for session in main if session.ended is None]
    for preferred in (equal, live, main):
        if len(preferred) == 1:
            return preferred[0]
    if len(matches) == 1:
        return matches[0]
    if matches:
        named = ", ".join(one_line(session.id) for session in matches[:_MAX_NAMED])
        raise UsageError(f"{len(matches)} sessions have an id that starts with {given!r}: {named}; give more of it")
    raise UsageError(f"no session's id starts with {given!r}; see fairlead sessions --all")


def describe(session: Session, now: float) -> str:
    """Return the name, process and state of a session, for a person who is about to end it."""
    from fairlead.tui import row_texts

    lasts = duration(session.in_state(now))
    return f"{row_texts(session)[0]!r} (process {session.pid}, {state_name(session)} for {lasts})"


def to_clipboard(text: str) -> str:
    """Return the control sequence that makes a terminal copy a text (OSC 52)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"


def to_document(session: Session, message: str) -> str:
    """Return the text that `--json` prints: the session's id and the message, as JSON."""
    return json.dumps({"session": session.id, "message": message})


# -- the commands --------------------------------------------------------------------------------------


def _session_command(name: str, example: str) -> Callable[[Callable[..., int]], click.Command]:
    """Return a decorator that makes a function a command. The first argument of the command is the id of a session."""

    def decorate(function: Callable[..., int]) -> click.Command:
        argument = click.argument("session", metavar="ID", shell_complete=complete_sessions)
        command = click.command(name, cls=Command, arguments=_ARGUMENTS, examples=(example,), exit_codes=_EXIT_CODES)
        return command(argument(function))

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="Print the session's id and the message as JSON.")


def _sessions() -> list[Session]:
    return msgspec.convert(request_sessions()["sessions"], list[Session])


def _done(session: Session, message: str, *, as_json: bool) -> int:
    print_line(to_document(session, message) if as_json else message)
    return 0


def _main_of(session: Session, sessions: Sequence[Session]) -> Session:
    """Return the main session of a subagent, which has the tmux pane. A main session is returned unchanged."""
    by_id = {known.id: known for known in sessions}
    while session.parent in by_id:
        session = by_id[session.parent]
    return session


@_session_command("go", "fairlead sessions go 5f0c8a4e")
@json_option
def go(session: str, *, as_json: bool) -> int:
    """Go to the tmux pane of a session.

    The terminal that shows that tmux session switches to the pane. A subagent has the pane of its session.
    """
    import asyncio

    from fairlead.tui import go_to_pane

    refuse_below_session("go to a session's pane")
    sessions = _sessions()
    main = _main_of(find_session(sessions, session), sessions)
    return _done(main, asyncio.run(go_to_pane(main.tmux, main.pane)), as_json=as_json)


@_session_command("mail", "fairlead sessions mail 5f0c8a4e 'The build is green again.'")
@click.argument("text", metavar="TEXT")
@json_option
def mail(session: str, text: str, *, as_json: bool) -> int:
    """Send a message to the agent of a session.

    Like `fairlead send`, but takes the id of the session instead of the name of its agent.
    """
    from fairlead.tui import send_mail

    if not text.strip():
        raise UsageError("sessions mail: there is nothing to send; give a text")
    target = find_session(_sessions(), session)
    return _done(target, send_mail(target, text), as_json=as_json)


@_session_command("interrupt", "fairlead sessions interrupt 5f0c8a4e")
@json_option
def interrupt(session: str, *, as_json: bool) -> int:
    """Interrupt what a session does.

    Presses the client's interrupt key in its tmux pane, if its process still runs there. This dismisses an open
    question, and never grants it.
    """
    import asyncio

    from fairlead.tui import interrupt_session

    refuse_below_session("interrupt a session")
    target = find_session(_sessions(), session)
    return _done(target, asyncio.run(interrupt_session(target)), as_json=as_json)


@_session_command("end", "fairlead sessions end 5f0c8a4e")
@yes_option
@json_option
def end(session: str, *, yes: bool, as_json: bool) -> int:
    """End a session.

    Asks for two confirmations, then tells the process to end, as when its terminal is closed. The conversation can be
    resumed. The process is known by its pid and its start time, so another process that has the same pid now is safe.
    """
    from fairlead.tui import end_session, require_process

    refuse_below_session("end a session")
    target = find_session(_sessions(), session)
    require_process(target, "ended")
    require_person(f"end {describe(target, time())}", assume_yes=yes)
    require_person("end it, with everything that it and its subagents are doing", assume_yes=yes)
    return _done(target, end_session(target), as_json=as_json)


@_session_command("transcript", "fairlead sessions transcript 5f0c8a4e | grep error")
@click.option("--path", is_flag=True, help="Print where the transcript is.")
def transcript(session: str, *, path: bool) -> int:
    """Show the conversation of a session in a pager.

    Without a terminal it is printed. `PAGER` names another pager.
    """
    from fairlead.tui import show_in_pager, transcript_lines

    refuse_below_session("read a session's transcript")
    sessions = _sessions()
    target = find_session(sessions, session)
    if path:
        print_line(one_line(target.transcript))
        return 0
    lines = transcript_lines(target, _main_of(target, sessions))
    if sys.stdout.isatty():
        show_in_pager(lines)
    else:
        print_lines(lines)
    return 0


@_session_command("copy", "fairlead sessions copy 5f0c8a4e")
def copy(session: str) -> int:
    """Copy the id of a session to the clipboard.

    The terminal copies it, if it allows programs to (OSC 52). Without a terminal the id is printed.
    """
    refuse_below_session("copy a session's id")
    target = find_session(_sessions(), session)
    if not sys.stdout.isatty():
        print_line(one_line(target.id))
        return 0
    sys.stdout.write(to_clipboard(target.id))
    sys.stdout.flush()
    print_line(f"copied: {one_line(target.id)}")
    return 0
