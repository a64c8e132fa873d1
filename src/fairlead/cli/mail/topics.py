"""`fairlead topics`: lists, joins and leaves topics, which several agents subscribe to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_topics
from fairlead.cli.support.daemon_client import LIST_EXIT_CODES, Request, ask_mail, print_document
from fairlead.cli.support.invocation import Screen, stdout_screen
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document

_EXIT_CODES = ((0, "done"), (1, "it is no valid name for a topic, or no daemon answers"))
_NAME = (("NAME", "the topic, with or without its #"),)


def to_request(action: str, topic: str = "") -> Request:
    """Return the request of the subcommand `action`. Raise `UsageError` if `join` or `leave` has no topic."""
    if action == "list":
        return Request("GET", "topics")
    if not topic:
        raise UsageError(f"topics {action}: which topic? Give its name; fairlead topics lists them")
    return Request("POST", "topics", {"action": action, "topic": topic})


def to_text(document: Document, action: str, screen: Screen) -> Iterator[str]:
    """Yield the topics, or the result of `join` or `leave`."""
    from fairlead.cli.support.mail_text import table

    if action != "list":
        yield f"{document['you']} {'listens to' if action == 'join' else 'has left'} #{document['topic']}"
    elif document["topics"]:
        rows = [(f"#{topic['name']}", ", ".join(topic["subscribers"])) for topic in document["topics"]]
        yield from table(rows, screen)
    else:
        yield "no topics; joining one creates it: fairlead topics join NAME"


def _run(caller: CallerOptions, action: str, topic: str = "") -> int:
    document = ask_mail(to_request(action, topic), caller)
    return print_document(document, caller, to_text(document, action, stdout_screen()))


@click.command("list", cls=Command, examples=("fairlead topics",), exit_codes=LIST_EXIT_CODES)
@caller_options
def list_topics(caller: CallerOptions) -> int:
    """List the topics and their subscribers."""
    return _run(caller, "list")


@click.command(
    "join",
    cls=Command,
    arguments=_NAME,
    examples=("fairlead topics join build", "fairlead send '#build' \"The build is red since 4f3a1c.\""),
    exit_codes=_EXIT_CODES,
)
@click.argument("name", metavar="NAME", default="", shell_complete=complete_topics)
@caller_options
def join(caller: CallerOptions, *, name: str) -> int:
    """Subscribe to a topic.

    The topic is created if there is none of that name.
    """
    return _run(caller, "join", name)


@click.command("leave", cls=Command, arguments=_NAME, examples=("fairlead topics leave build",), exit_codes=_EXIT_CODES)
@click.argument("name", metavar="NAME", default="", shell_complete=complete_topics)
@caller_options
def leave(caller: CallerOptions, *, name: str) -> int:
    """Unsubscribe from a topic."""
    return _run(caller, "leave", name)
