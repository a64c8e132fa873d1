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
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.cli.support.screen import print_line, print_lines
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
    """Return the one session whose id begins so. Raise `UsageError` if there is none, or more than one.

    A whole id is that session, though its subagents' ids begin with it; else sessions that run come first.
    """
    matches = [one for one in sessions if one.id.startswith(given)] if given else []
    main = [one for one in matches if not one.is_child]
    for some in ([one for one in matches if one.id == given], [one for one in main if one.ended is None], main):
        if len(some) == 1:
            return some[0]
    if len(matches) == 1:
        return matches[0]
    if matches:
        named = ", ".join(one_line(one.id) for one in matches[:_MAX_NAMED])
        raise UsageError(f"{len(matches)} sessions have an id that starts with {given!r}: {named}; give more of it")
    raise UsageError(f"no session's id starts with {given!r}; see fairlead sessions --all")


def describe(session: Session, now: float) -> str:
    """Return what a person has to know of a session before it is ended: its name, state and process."""
    from fairlead.tui import row_texts

    lasts = duration(session.in_state(now))
    return f"{row_texts(session)[0]!r} (process {session.pid}, {state_name(session)} for {lasts})"


def to_clipboard(text: str) -> str:
    """Return the control sequence by which a terminal copies a text (OSC 52)."""
    return f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}\x07"


def to_document(session: Session, message: str) -> str:
    """Return what `--json` prints."""
    return json.dumps({"session": session.id, "message": message})


# -- the commands --------------------------------------------------------------------------------------


def _session_command(name: str, example: str) -> Callable[[Callable[..., int]], click.Command]:
    """Return the decorator of a command whose first argument is a session."""

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
    """Return the main session of a subagent: it has the pane."""
    by_id = {one.id: one for one in sessions}
    while session.parent in by_id:
        session = by_id[session.parent]
    return session


@_session_command("go", "fairlead sessions go 5f0c8a4e")
@json_option
def go(session: str, *, as_json: bool) -> int:
    """Go to the tmux pane of a session.

    The terminal that shows that tmux switches to it. Of a subagent it is the pane of its session.
    """
    import asyncio

    from fairlead.tui import jump

    refuse_below_session("go to a session's pane")
    sessions = _sessions()
    main = _main_of(find_session(sessions, session), sessions)
    return _done(main, asyncio.run(jump(main.tmux, main.pane)), as_json=as_json)


@_session_command("mail", "fairlead sessions mail 5f0c8a4e 'The build is green again.'")
@click.argument("text", metavar="TEXT")
@json_option
def mail(session: str, text: str, *, as_json: bool) -> int:
    """Send a message to the agent of a session.

    As `fairlead send` does, for those who know the session and not the name of its agent.
    """
    from fairlead.tui import send_mail

    if not text.strip():
        raise UsageError("sessions mail: there is nothing to send; give a text")
    found = find_session(_sessions(), session)
    return _done(found, send_mail(found, text), as_json=as_json)


@_session_command("interrupt", "fairlead sessions interrupt 5f0c8a4e")
@json_option
def interrupt(session: str, *, as_json: bool) -> int:
    """Interrupt what a session does.

    The key that interrupts the client is pressed in its tmux pane, if its process still runs there. A question that is
    open is dismissed by it, and never granted.
    """
    import asyncio

    from fairlead.tui import interrupt_session

    refuse_below_session("interrupt a session")
    found = find_session(_sessions(), session)
    return _done(found, asyncio.run(interrupt_session(found)), as_json=as_json)


@_session_command("end", "fairlead sessions end 5f0c8a4e")
@yes_option
@json_option
def end(session: str, *, yes: bool, as_json: bool) -> int:
    """End a session.

    Its process is asked to end, as when its terminal is closed; the conversation can be resumed. It asks twice. The
    process is known by its pid and by when it started: another one that has the pid now is left alone.
    """
    from fairlead.tui import end_session, require_process

    refuse_below_session("end a session")
    found = find_session(_sessions(), session)
    require_process(found, "ended")
    require_person(f"end {describe(found, time())}", assume_yes=yes)
    require_person("end it, with everything that it and its subagents are doing", assume_yes=yes)
    return _done(found, end_session(found), as_json=as_json)


@_session_command("transcript", "fairlead sessions transcript 5f0c8a4e | grep error")
@click.option("--path", is_flag=True, help="Print where the transcript is.")
def transcript(session: str, *, path: bool) -> int:
    """Show the conversation of a session in a pager.

    Without a terminal it is printed. `PAGER` names another pager.
    """
    from fairlead.tui import show_in_pager, transcript_lines

    refuse_below_session("read a session's transcript")
    sessions = _sessions()
    found = find_session(sessions, session)
    if path:
        print_line(one_line(found.transcript))
        return 0
    lines = transcript_lines(found, _main_of(found, sessions))
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
    found = find_session(_sessions(), session)
    if not sys.stdout.isatty():
        print_line(one_line(found.id))
        return 0
    sys.stdout.write(to_clipboard(found.id))
    sys.stdout.flush()
    print_line(f"copied: {one_line(found.id)}")
    return 0
