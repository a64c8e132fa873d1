"""`fairlead heartbeat`: marks a session as alive, for agents whose client has no hooks."""

from __future__ import annotations

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document


def to_request(*, session_start: bool) -> Request:
    """Return the request that marks the session as alive. `session_start` is whether it starts now."""
    return Request("POST", "heartbeat", {"start": session_start})


@click.command(
    "heartbeat",
    cls=Command,
    examples=('fairlead heartbeat --session-start --session "$session_id"',),
    exit_codes=((0, "marked"), (1, "there is no such session, or it is not yours")),
)
@click.option(
    "--session-start",
    is_flag=True,
    help="The session starts: a new session gets an agent, and one that had ended is resumed.",
)
@caller_options
def heartbeat(caller: CallerOptions, *, session_start: bool) -> int:
    """Mark the session as alive.

    The client's hooks do this at every event. It is for scripts, and for agents whose client has no hooks. Prints
    nothing.
    """
    document = ask_mail(to_request(session_start=session_start), caller)
    return print_document(document, caller, ())
