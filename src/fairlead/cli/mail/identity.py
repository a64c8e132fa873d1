"""`fairlead identity`: shows who the caller is, renames it, and keeps a note across a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document

_EXIT_CODES = ((0, "done"), (1, "there is no such session, or it is not yours"))


def to_request(action: str, text: str = "") -> Request:
    """Return the request of the subcommand `action`. `text` is the new name for `rename`, and the note for `save`."""
    if action == "current":
        return Request("GET", "identity")
    return Request("POST", "identity", {"action": action, "new": text, "status": text})


def to_text(document: Document, action: str) -> Iterator[str]:
    """Yield the lines that the subcommand `action` prints. The first line of `current` is the name alone."""
    if action == "current":
        agent = document["agent"]
        yield agent["name"]
        yield from (f"{key:<8} {agent[key]}" for key in ("session", "project") if agent[key])
        yield f"known by {document['how']}"
    elif action == "restore":
        from fairlead.text import printable_block

        yield document["text"]
        if document["saved"]:
            yield f"You saved: {printable_block(document['saved'])}"
    else:
        yield f"saved: {document['name']}" if action == "save" else f"you are {document['name']} now"


def _run(caller: CallerOptions, action: str, text: str = "") -> int:
    document = ask_mail(to_request(action, text), caller)
    return print_document(document, caller, to_text(document, action))


@click.command("current", cls=Command, examples=("fairlead identity",), exit_codes=_EXIT_CODES)
@caller_options
def current(caller: CallerOptions) -> int:
    """Show your name, session and project.

    The first line is the name alone. The last line says how Fairlead knows it.
    """
    return _run(caller, "current")


@click.command(
    "save",
    cls=Command,
    arguments=(("TEXT", "what you are doing"),),
    examples=('fairlead identity save "half way through the parser"',),
    exit_codes=_EXIT_CODES,
)
@click.argument("text", metavar="[TEXT]", default="")
@caller_options
def save(caller: CallerOptions, *, text: str) -> int:
    """Save a note that `restore` shows again.

    Hooks save who you are before the client compacts its context.
    """
    return _run(caller, "save", text)


@click.command("restore", cls=Command, examples=("fairlead identity restore",), exit_codes=_EXIT_CODES)
@caller_options
def restore(caller: CallerOptions) -> int:
    """Show who you are, what you saved, and what you owe.

    Hooks do this after the client has compacted its context.
    """
    return _run(caller, "restore")


@click.command(
    "rename",
    cls=Command,
    arguments=(("NAME", "the new name"),),
    examples=("fairlead identity rename reviewer",),
    exit_codes=((0, "done"), (1, "the name is taken or reserved, or there is no such session")),
)
@click.argument("name", metavar="NAME", default="")
@caller_options
def rename(caller: CallerOptions, *, name: str) -> int:
    """Take another name.

    Messages to the old name still reach you.
    """
    if not name:
        raise UsageError("identity rename: which name? Give a new one, e.g. fairlead identity rename reviewer")
    return _run(caller, "rename", name)
