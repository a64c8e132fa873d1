"""`fairlead agents`: the agents of a project, what they do, and how much mail waits for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import LIST_EXIT_CODES, Request, ask_mail, print_document
from fairlead.cli.support.invocation import Screen, current, stdout_screen
from fairlead.cli.support.param_types import CallerPath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document


_REACH = {"now": "listening", "at its next event": "next event", "at its next prompt": "next prompt"}
"""The text of the column that says when an agent is shown mail, by the value in the daemon's document."""


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    project: str = ""
    """An absolute path; "" for the project of the caller."""
    show_all: bool = False
    """Whether to list the agents of all projects, including ended ones."""
    here: bool = False
    """Whether to leave out the agents of other hosts."""


def to_request(options: Options) -> Request:
    """Return the request for the list of agents."""
    return Request("GET", "agents", {"all": str(options.show_all).lower(), "project": options.project})


def to_text(document: Document, screen: Screen) -> Iterator[str]:
    """Yield a line for each agent: first those of this host, then those of the other hosts."""
    from fairlead.cli.support.mail_text import table

    rows = [_cells(row, document) for row in document["agents"]]
    if rows:
        yield from table(rows, screen)
    else:
        where = f" in {document['project']}; --all lists the agents of all projects" if document["project"] else ""
        yield f"no agents{where}"
    for host in document.get("hosts", ()):  # a daemon of an earlier version lacks the field
        yield from _host_lines(host, document, screen)


def _host_lines(host: Document, document: Document, screen: Screen) -> Iterator[str]:
    """Yield the name of another host with the age of its last update, then its agents.

    Yield nothing if the list is of one project, and the host has no agents in it.
    """
    from fairlead.cli.support.mail_text import table
    from fairlead.text import duration, one_line

    if not host["agents"] and document["project"] is not None:
        return
    yield ""
    yield f"{one_line(host['host'])}, as of {duration(host['age'])} ago" + ("" if host["agents"] else ": no agents")
    yield from table(
        [
            (
                one_line(row["name"]),
                row["presence"],
                *([one_line(row["project"].rpartition("/")[2])] if document["project"] is None else []),
                _REACH.get(row["reach"], row["reach"]),
                one_line(row["doing"]),
            )
            for row in host["agents"]
        ],
        screen,
    )


def _cells(row: Document, document: Document) -> tuple[str, ...]:
    from fairlead.text import ago, one_line

    you = " (you)" if row["name"] == document["you"] else ""
    mail = [f"{row['unread']} unread"] if row["unread"] else []
    mail += [f"owes {row['owes']}"] if row["owes"] else []
    mail += [f"is owed {row['owed']}"] if row["owed"] else []
    mail += [f"shown after the user's next message: {row['held']}"] if row.get("held") else []
    where = [one_line(row["project"].rpartition("/")[2])] if document["project"] is None else []
    name, since = f"{one_line(row['name'])}{you}", ago(row["ended"] or row["seen"], document["now"])
    reach = _REACH.get(row.get("reach", ""), row.get("reach", ""))  # a daemon of an earlier version lacks the field
    return name, row["presence"], since, *where, ", ".join(mail), reach, _activity(row["is"])


def _activity(fields: Document | None) -> str:
    """Return what an agent's session is doing, as `fairlead watch` shows it; "" if there is no session (`None`)."""
    if fields is None:
        return ""
    from fairlead.cli.sessions.listing import state_name
    from fairlead.sessions import Session
    from fairlead.tui import row_texts

    session = msgspec.convert(fields, Session)
    _, activity, _ = row_texts(session)
    name = state_name(session)
    state = "needs you" if name == "attention" else name
    return f"{state}: {activity}" if activity else state


@click.command(
    "agents", cls=Command, examples=("fairlead agents", "fairlead agents --all --json"), exit_codes=LIST_EXIT_CODES
)
@click.option("--project", metavar="DIR", type=CallerPath(file_okay=False), help="List the agents of this project.")
@click.option("--all", "show_all", is_flag=True, help="List the agents of all projects, including ended ones.")
@click.option("--here", is_flag=True, help="List the agents of this host only, not those of your team.")
@caller_options
def agents(caller: CallerOptions, *, project: str | None, **given: Any) -> int:
    """List the agents you can write to.

    Shows each agent of this project: its name, its presence, what it does, and how much mail it has to read and to
    answer. `active` means at work, or seen within 5 minutes. `idle` means running and waiting. `offline` means ended.
    Another column says when the agent is shown new mail: `listening` means now, otherwise at its next event or prompt.
    In a team, the agents of other hosts follow: those of folders with the same name, and the age of the last update.
    """
    options = Options(project=current().absolute(project) if project else "", **given)
    document = ask_mail(to_request(options), caller)
    if options.here:
        document["hosts"] = []
    return print_document(document, caller, to_text(document, stdout_screen()))
