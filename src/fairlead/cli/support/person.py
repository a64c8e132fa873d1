"""Commands that only a person may run: refused below an agent's session, and confirmed at a terminal.

This is a second check after the guards, for command lines that the guards cannot analyse. It is not a security
boundary: a process that leaves the process tree of its session (`setsid` with a double fork, `at`, a service of the
user) and drops the client's variables is not recognized, and a program can type into a terminal of its own.
"""

from __future__ import annotations

import os
import sys

import click

from fairlead.clients import client_above
from fairlead.errors import FairleadError

CONFIRMATION = "yes"

yes_option = click.option(
    "--yes", is_flag=True, help="Do not ask for a confirmation; refused below an agent's session."
)
"""The option of commands that call `require_person`."""


class PersonRequired(FairleadError):
    """A command that is left to a person was run by an agent, without a terminal, or was not confirmed."""


def require_person(action: str, *, assume_yes: bool = False) -> None:
    """Ask a person at the terminal to confirm an action. Raise `PersonRequired` if it is not confirmed.

    It is also raised below an agent's session, or without a terminal. `action` completes the sentence "This will …",
    such as "remove the hooks". `assume_yes` is the option `--yes`, which replaces the confirmation, but does not permit
    an agent to run the command.
    """
    refuse_below_session(action)
    if assume_yes:
        return
    if not _has_terminal():
        raise PersonRequired(f"to {action} needs a confirmation, and there is no terminal; add --yes")
    print(f"This will {action}. Type {CONFIRMATION} to confirm: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() != CONFIRMATION:
        raise PersonRequired("not confirmed, so nothing was changed")


def refuse_below_session(action: str) -> None:
    """Raise `PersonRequired` if this process is a descendant of an agent's session.

    `action` completes the sentence "Only a person can …".
    """
    client = client_above(os.environ)
    if client is not None:
        raise PersonRequired(
            f"only a person can {action}, and this command runs below a session of {client.title}; "
            f"run it in a terminal of your own"
        )


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()
