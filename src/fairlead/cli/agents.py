"""`fairlead agents`: who is there to be written to, what they do, and how much mail waits for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead agents [--project DIR | --all]

Lists the agents of this project: name, whether they are there, what they do, and how much they have to read and to
answer. `active` gave a sign of life within 5 minutes, or is at work; `idle` runs, and waits; `offline` has ended.

  --project DIR       those of that project
  --all               those of all projects, and those that have ended
{WHO}
example:
  fairlead agents

exit codes: 0 shown, even if there is nobody; 1 it cannot be shown, and stderr says why
"""


def run(args: Sequence[str]) -> int:
    """List them."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("agents", args, flags=("--all",), values=("--project",))
    if given.words:
        raise UsageError(f"agents takes options alone, got {given.texts()[0]!r}")
    project = os.path.abspath(given.value("--project")) if "--project" in given else ""
    document = ask_mail("GET", "agents", given, {"all": str("--all" in given).lower(), "project": project})
    if "--json" in given:
        return print_json(document)
    from fairlead.cli.letters import say, table

    rows = [_cells(row, document) for row in document["agents"]]
    if rows:
        say(*table(rows))
    else:
        where = f", in {document['project']}; --all lists those of all projects" if document["project"] else ""
        say(f"nobody is here{where}")
    return 0


def _cells(row: dict[str, Any], document: dict[str, Any]) -> tuple[str, ...]:
    from fairlead.cli.letters import ago, one_line

    you = " (you)" if row["name"] == document["you"] else ""
    mail = [f"{row['unread']} unread"] if row["unread"] else []
    mail += [f"owes {row['owes']}"] if row["owes"] else []
    mail += [f"is owed {row['owed']}"] if row["owed"] else []
    where = [one_line(row["project"].rpartition("/")[2])] if document["project"] is None else []
    name, since = f"{one_line(row['name'])}{you}", ago(row["ended"] or row["seen"], document["now"])
    return name, row["presence"], since, *where, ", ".join(mail), _doing(row["is"])


def _doing(told: dict[str, Any] | None) -> str:
    """Say what a session is doing, as the view of the sessions does."""
    if told is None:
        return ""
    from fairlead.cli.sessions import kind_of
    from fairlead.sessions import Session
    from fairlead.tui import row_texts

    session = msgspec.convert(told, Session)
    _, what, _ = row_texts(session)
    kind = kind_of(session)
    state = "needs the person" if kind == "attention" else kind
    return f"{state}: {what}" if what else state
