"""`fairlead inbox`: the caller's messages, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_agents
from fairlead.cli.support.daemon_client import LIST_EXIT_CODES, Request, ask_mail, print_document
from fairlead.cli.support.invocation import Screen, stdout_screen
from fairlead.cli.support.param_types import MESSAGE, Number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document

_MAX_MESSAGES = 200


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    show_all: bool = False
    """Whether to list read messages, too."""
    sender: str = ""
    search: str | None = None
    limit: int = 20
    before: int = 0
    """The page ends before the message with this number; 0 for the newest page."""


def to_request(options: Options) -> Request:
    """Return the request for a page of messages. A limit above 200 becomes 200."""
    fields = {
        "all": str(options.show_all).lower(),
        "from": options.sender,
        "search": options.search or "",
        "limit": min(options.limit, _MAX_MESSAGES),
        "before": options.before,
    }
    return Request("GET", "inbox", fields)


def to_text(document: Document, options: Options, screen: Screen) -> Iterator[str]:
    """Yield a line for each message, and how to get the next page."""
    from fairlead.cli.support.mail_text import inbox_lines

    if document["messages"]:
        yield from inbox_lines(document["messages"], document["now"], screen)
    elif options.search is not None:
        yield "nothing found"
    else:
        yield "no messages" if options.show_all else "no unread messages"
    if document["more"]:
        yield f"there are more; the next page: --before {document['more']}"


@click.command(
    "inbox",
    cls=Command,
    examples=("fairlead inbox", "fairlead inbox --all --from amber-fox"),
    exit_codes=LIST_EXIT_CODES,
)
@click.option("--all", "show_all", is_flag=True, help="Also list messages that you have read or answered.")
@click.option(
    "--from", "sender", metavar="NAME", default="", shell_complete=complete_agents, help="Messages from NAME only."
)
@click.option("--search", metavar="TEXT", help="All messages that you sent or received and that contain this text.")
@click.option("--limit", metavar="N", type=Number(), default=20, help="At most N (default: 20, at most 200).")
@click.option("--before", metavar="ID", type=MESSAGE, default=0, help="The page before this message.")
@caller_options
def inbox(caller: CallerOptions, **given: Any) -> int:
    """List your unread messages.

    The newest comes first, with its number, sender, age, stage and subject. `new` means that it was not shown to the
    agent yet. Listing a message does not mark it as read; `fairlead read ID` does.
    """
    options = Options(**given)
    document = ask_mail(to_request(options), caller)
    return print_document(document, caller, to_text(document, options, stdout_screen()))
