"""`fairlead tasks`: the tasks that the agent of a session has not completed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document
from fairlead.cli.support.invocation import current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document


def to_request(folder: str, *, show_all: bool) -> Request:
    """Return the request for the tasks. `folder` is the client's configuration folder, which contains them."""
    return Request("GET", "tasks", {"all": str(show_all).lower(), "folder": folder})


def to_text(document: Document, *, show_all: bool) -> Iterator[str]:
    """Yield a line for each task."""
    from fairlead.text import one_line

    for task in document["tasks"]:
        yield f"#{one_line(task['id'])} [{one_line(task['status'])}] {one_line(task['subject'])}".rstrip()
    if not document["tasks"]:
        yield "no tasks" if show_all else "no incomplete tasks"


@click.command(
    "tasks",
    cls=Command,
    examples=('fairlead tasks --session "$session_id"',),
    exit_codes=((0, "shown, even if there are none"), (1, "there is no such session, or it is not yours")),
)
@click.option("--all", "show_all", is_flag=True, help="Also list completed tasks.")
@caller_options
def tasks(caller: CallerOptions, *, show_all: bool) -> int:
    """List the incomplete tasks of a session.

    They are the tasks that its client keeps. With `mail.stay: always` in the policy, an agent may not stop while it has
    any.
    """
    from fairlead.clients import client_in

    environ = current().environ
    folder = client_in(environ).config_folder(environ, current().cwd())
    document = ask_mail(to_request(folder, show_all=show_all), caller)
    return print_document(document, caller, to_text(document, show_all=show_all))
