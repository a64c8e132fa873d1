"""`fairlead status`: what is unread and owed; or the delivery status of one message."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_messages
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document
from fairlead.cli.support.invocation import Screen, stdout_screen
from fairlead.cli.support.param_types import MESSAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document


def to_request(number: int | None) -> Request:
    """Return the request for the deliveries of message `number` or, if that is `None`, for the counts of mail."""
    return Request("GET", "status" if number is None else f"messages/{number}/ledger")


def to_text(document: Document, number: int | None, screen: Screen) -> Iterator[str]:
    """Yield the delivery status of the message or, if `number` is `None`, the counts of mail and what is owed."""
    return _counts(document) if number is None else _deliveries(document, screen)


def _deliveries(document: Document, screen: Screen) -> Iterator[str]:
    from fairlead.cli.support.mail_text import delivery_lines, marks, title
    from fairlead.text import ago, one_line

    message, now = document["message"], document["now"]
    is_answered = all(delivery["answered"] for delivery in document["letters"])
    special = marks({**message, "answered": is_answered}, now)
    sender = one_line(message["from"])
    yield f'#{message["id"]} "{title(message)}" from {sender}, {ago(message["at"], now)}' + (special and f", {special}")
    yield from delivery_lines(document["letters"], now, screen)


def _counts(document: Document) -> Iterator[str]:
    from fairlead.text import one_line

    agent = document["agent"]
    where = [f"session {one_line(agent['session'])}"] if agent["session"] else []
    where += [one_line(agent["project"])] if agent["project"] else []
    yield f"you are      {', '.join((one_line(agent['name']), *where))}"
    urgent = f", {document['urgent']} of them urgent" if document["urgent"] else ""
    yield f"unread       {agent['unread']}, {agent['queued']} not shown yet{urgent}"
    if document.get("held"):
        yield f"held         until the user writes to you, after {document['held']}"
    yield from _owed("you owe", "from", document["owes"], document["now"])
    yield from _owed("you are owed", "recipient", document["owed"], document["now"])


def _owed(label: str, other: str, rows: list[Document], now: float) -> Iterator[str]:
    from fairlead.cli.support.mail_text import due, title
    from fairlead.text import ago, one_line

    for row in rows:
        late = f", {due(row['deadline'], now)}" if row["deadline"] else ""
        yield f'{label:<13}#{row["id"]} {one_line(row[other])}: "{title(row)}", {ago(row["at"], now)}{late}'
        label = ""


@click.command(
    "status",
    cls=Command,
    arguments=(("ID", "the number of a message that you sent or received"),),
    examples=("fairlead status", "fairlead status 12"),
    exit_codes=((0, "shown"), (1, "there is no such message, or it is not yours")),
)
@click.argument("number", metavar="[ID]", type=MESSAGE, required=False, shell_complete=complete_messages)
@caller_options
def status(caller: CallerOptions, *, number: int | None) -> int:
    """Show what is unread and owed, or the delivery status of a message.

    Without a number: who you are, how much mail you have, what you owe an answer to, and who owes you one. With the
    number of a message: its delivery status for each recipient (queued, shown, read, answered, or bounced and why).
    """
    document = ask_mail(to_request(number), caller)
    return print_document(document, caller, to_text(document, number, stdout_screen()))
