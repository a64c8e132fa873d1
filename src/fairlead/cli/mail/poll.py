"""`fairlead poll`: new mail, each message shown once; `--wait 10m` blocks until there is some."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import Request, ask_mail
from fairlead.cli.support.invocation import current, print_error, print_lines
from fairlead.cli.support.param_types import Duration, OneOf
from fairlead.durations import DAY
from fairlead.errors import FairleadError, UsageError
from fairlead.ipc import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document

_FORMATS = ("text", "json", "hook", "context")
_MAX_WAIT = DAY
_GRACE = 30.0
_RETRY_INTERVAL = 0.1
_NO_MAIL = 3


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    format: str = "text"
    """`text`, `json`, `hook` (JSON that keeps the agent going) or `context` (text for the agent)."""
    wait: float = 0.0
    """Seconds to wait for mail; 0 to return at once."""
    verbose: bool = False
    """Whether to print the agent, the waiting time and the number of messages to stderr."""


def to_request(options: Options, wait: float, poll_id: str) -> Request:
    """Return the request that waits for new mail for at most `wait` seconds.

    `poll_id` identifies the mail in the response. Mail that cannot be printed is queued again by this id.
    """
    return Request("POST", "poll", {"wait": wait, "format": options.format, "id": poll_id, "receipt": True})


def to_text(document: Document, options: Options) -> Iterator[str]:
    """Yield the mail in the requested format. Without mail, only the formats `text` and `json` yield something."""
    if options.format == "json":
        yield json.dumps(document)
    elif document["messages"]:
        text = document["text"]
        yield json.dumps({"decision": "block", "reason": text}) if options.format == "hook" else text
    elif options.format == "text":
        yield "no new messages"


def exit_code(document: Document, options: Options) -> int:
    """Return the exit code: 3 if there was no mail, else 0. In the formats `hook` and `context` it is always 0."""
    return _NO_MAIL if options.format in {"text", "json"} and not document["messages"] else 0


@click.command(
    "poll",
    cls=Command,
    examples=(
        "fairlead poll --wait 10m && echo 'there is mail'",
        'fairlead poll --session "$session_id" --format hook',
    ),
    exit_codes=(
        (0, "there was mail, or the format is hook or context"),
        (1, "failed; stderr says why"),
        (3, "no mail arrived"),
        (130, "interrupted while waiting; nothing was marked as shown"),
    ),
)
@click.option("--wait", metavar="DURATION", type=Duration(), default=0.0, help="Wait for mail: 30s, 10m; at most 1d.")
@click.option(
    "--format",
    metavar="FORMAT",
    type=OneOf(_FORMATS),
    help=(
        "text, for a person or an agent (default); json, for a program; hook, for a script that is the client's Stop "
        "hook: JSON that keeps the agent going, or nothing; context, for a script at SessionStart or "
        "UserPromptSubmit: text for the agent, or nothing."
    ),
)
@click.option("--verbose", is_flag=True, help="Print the agent, the waiting time and the number of messages to stderr.")
@caller_options
def poll(caller: CallerOptions, *, wait: float, verbose: bool, **given: Any) -> int:
    """Show new mail; `--wait 10m` blocks until there is some.

    Each message is shown once: this marks it as shown.
    """
    if wait > _MAX_WAIT:
        raise UsageError(f"--wait: at most 1d, got {wait:g} s")
    options = Options(given["format"] or ("json" if caller.as_json else "text"), wait, verbose)
    document = _ask(options, caller)
    if options.verbose:
        _print_summary(document)
    _print(document, options, caller)
    return exit_code(document, options)


def _ask(options: Options, caller: CallerOptions) -> Document:
    """Return the daemon's document with new mail, or without messages once `options.wait` seconds are over.

    If the daemon stops meanwhile, ask the next one. Raise `FairleadError` if none answers.
    """
    deadline = current().started_at + options.wait
    poll_id = f"poll-{current().message_key()}"  # the same at each attempt, so that a lost answer loses no mail
    while True:
        left = max(0.0, deadline - monotonic())
        request = to_request(options, left, poll_id)
        try:
            document: Document = ask_mail(request, caller, timeout=left + _GRACE)
        except ConnectionLost:
            if monotonic() >= deadline:
                raise
            continue
        if document["messages"] or monotonic() >= deadline:
            return document
        sleep(_RETRY_INTERVAL)  # the daemon is stopping and has ended all waits; ask the next one


def _print(document: Document, options: Options, caller: CallerOptions) -> None:
    """Print the mail and give its receipt. If that fails, have the mail queued again, and raise `FairleadError`."""
    try:
        current().begin_printing(document["id"])
        print_lines(to_text(document, options))
        current().stdout.flush()
        current().give_receipt(document["id"])
    except OSError as error:
        with suppress(FairleadError):
            ask_mail(Request("POST", "poll", {"undo": document["id"]}), caller)
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that Python does not complain once more when it exits
        raise FairleadError(f"the mail cannot be printed, so it counts as not shown: {error.strerror}") from None


def _print_summary(document: Document) -> None:
    count = len(document["messages"])
    print_error(
        f"fairlead: for {document['you']}, known by {document['how']}; waited {document['waited']:.1f} s; "
        f"{count} new, {document['left']} more waiting"
    )
