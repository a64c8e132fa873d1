"""`fairlead status`: how much mail one has, what is owed; or how one message fares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.cli.options import read_number
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

USAGE = f"""\
usage: fairlead status [ID]

Says who you are, how much mail you have, what you owe an answer to, and who owes you one. With the number of a
message: how it fares with each recipient, from queued to shown, read and answered, or why it bounced.

  ID                  the number of a message that you wrote or got
{WHO}
examples:
  fairlead status
  fairlead status 12

exit codes: 0 shown; 1 there is no such message, or it is not yours
"""


def run(args: Sequence[str]) -> int:
    """Show it."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("status", args)
    if len(given.words) > 1:
        raise UsageError(f"status takes the number of one message, got {' '.join(given.texts())}")
    path = f"messages/{read_number('status', given.texts()[0])}/ledger" if given.words else "status"
    document = ask_mail("GET", path, given)
    if "--json" in given:
        return print_json(document)
    from fairlead.cli.letters import say

    say(*(_ledger(document) if given.words else _counts(document)))
    return 0


def _ledger(document: dict[str, Any]) -> Iterator[str]:
    from fairlead.cli.letters import ago, ledger_lines, marks, one_line, title

    message, now = document["message"], document["now"]
    is_answered = all(letter["answered"] for letter in document["letters"])
    special = marks({**message, "answered": is_answered}, now)
    sender = one_line(message["from"])
    yield f'#{message["id"]} "{title(message)}" from {sender}, {ago(message["at"], now)}' + (special and f", {special}")
    yield from ledger_lines(document["letters"], now)


def _counts(document: dict[str, Any]) -> Iterator[str]:
    from fairlead.cli.letters import one_line

    agent = document["agent"]
    where = [f"session {one_line(agent['session'])}"] if agent["session"] else []
    where += [one_line(agent["project"])] if agent["project"] else []
    yield f"you are      {', '.join((one_line(agent['name']), *where))}"
    urgent = f", {document['urgent']} of them urgent" if document["urgent"] else ""
    yield f"unread       {agent['unread']}, {agent['queued']} not shown yet{urgent}"
    yield from _owed("you owe", "from", document["owes"], document["now"])
    yield from _owed("you are owed", "recipient", document["owed"], document["now"])


def _owed(label: str, other: str, rows: list[dict[str, Any]], now: float) -> Iterator[str]:
    from fairlead.cli.letters import ago, due, one_line, title

    for row in rows:
        late = f", {due(row['deadline'], now)}" if row["deadline"] else ""
        yield f'{label:<13}#{row["id"]} {one_line(row[other])}: "{title(row)}", {ago(row["at"], now)}{late}'
        label = ""
