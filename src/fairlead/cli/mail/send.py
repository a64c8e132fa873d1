"""`fairlead send`: a message to agents, a topic, everyone in the project, or the user."""

from __future__ import annotations

import re
from time import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.caller import CallerOptions, caller_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_agents
from fairlead.cli.support.daemon_client import Request, ask_mail, print_document, read_body
from fairlead.cli.support.invocation import current
from fairlead.cli.support.param_types import CallerPath, Duration, OneOf
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairlead.cli.support.daemon_client import Document

_PRIORITIES = ("urgent", "normal", "low")
_INTENTS = ("request", "inform", "ack")
_ADDRESS = re.compile(r"#?[\w.-]+(/[\w.-]+)*(,#?[\w.-]+(/[\w.-]+)*)*")
_FIRST_OPTION = "\1"
"""A mark in the list of words, at the position of the first option. No word of a command line is equal to it."""


class MessageOptions(msgspec.Struct, frozen=True):
    """The options that `send` and `reply` share."""

    subject: str = ""
    body: str | None = None
    file: str | None = None
    """The file that contains the text; `-` is stdin."""
    request: bool = False
    """Whether the intent is `request`: an answer is owed."""
    ack: bool = False
    """Whether the intent is `ack`."""
    intent: str | None = None
    """`request`, `inform` or `ack`, which overrides the options before; `None` if it was not given."""
    deadline: float | None = None
    """Seconds from now; `None` for no deadline."""
    urgent: bool = False
    low: bool = False
    priority: str | None = None
    key: str = ""
    """The idempotency key; "" for a default one."""

    def fields(self, now: float, key: str) -> dict[str, object]:
        """Return the fields of the request that the options set. `now` is the Unix time.

        `key` is the default idempotency key. Every message needs one, because a request may be sent twice.
        """
        priority = "urgent" if self.urgent else "low" if self.low else "normal"
        intent = "request" if self.request else "ack" if self.ack else "inform"
        if self.deadline is not None and intent == "inform":
            intent = "request"
        return {
            "subject": self.subject,
            "priority": self.priority or priority,
            "intent": self.intent or intent,
            "deadline": now + self.deadline if self.deadline is not None else 0.0,
            "key": self.key or key,
        }

    def body_source(self, word: str = "") -> tuple[str, str]:
        """Return `(text, "")`, or `("", file)` if the text has to be read from a file; the file `-` is stdin.

        The option `file` comes first, then `body`, then `word`, the argument. A text of `-` means stdin, too.
        """
        if self.file is not None:
            return "", self.file
        text = self.body if self.body is not None else word
        return ("", "-") if text == "-" else (text, "")


def split_words(words: Sequence[str], to: Sequence[str], draft: MessageOptions) -> tuple[list[str], str]:
    """Return the recipients and the text. The text is the last word, or "" if every word is a recipient.

    The last word is a recipient if it is the only one and `to` is empty, if an option gives the text, or if there is a
    subject and the word looks like a name and precedes all options. `to` are the values of `--to`. `words` has a mark
    at the position of the first option. Raise `UsageError` if `to` is given and words other than the text are left.
    """
    index = words.index(_FIRST_OPTION) if _FIRST_OPTION in words else len(words)
    names = [word for word in words if word != _FIRST_OPTION]
    named = [name for value in to for name in value.split(",")]
    body = ""
    is_given = draft.file is not None or draft.body is not None
    if names and not is_given and (named or (len(names) > 1 and _is_text(names, index, draft))):
        body = names.pop()
    if named and names:
        raise UsageError(f"send: unexpected argument {names[0]!r}; put the text in quotes")
    addresses = (*named, *(name for word in names for name in word.split(",")))
    return [name.strip() for name in addresses if name.strip()], body


def _is_text(names: Sequence[str], before_options: int, draft: MessageOptions) -> bool:
    return not draft.subject or len(names) > before_options or not _ADDRESS.fullmatch(names[-1])


def to_request(names: Sequence[str], body: str, draft: MessageOptions, now: float, key: str) -> Request:
    """Return the request that sends a message. Raise `UsageError` without a recipient, or without text and subject.

    `now` is the Unix time, `key` the default idempotency key.
    """
    if not names:
        raise UsageError("send: to whom? Name an agent; fairlead agents lists them")
    if not (body.strip() or draft.subject.strip()):
        raise UsageError("send: there is nothing to send; give a text, --file FILE, or a subject")
    return Request("POST", "send", {"to": list(names), "body": body, **draft.fields(now, key)})


def to_text(document: Document) -> Iterator[str]:
    """Yield one line with the number of the message and its recipients."""
    from fairlead.cli.support.mail_text import sent_line

    yield sent_line(document)


def draft_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a `MessageOptions` to a command."""
    for option in reversed(_DRAFT_OPTIONS):
        function = option(function)
    return function


_DRAFT_OPTIONS = (
    click.option("--subject", metavar="TEXT", default="", help="What it is about; without one, the text's first line."),
    click.option("--body", metavar="TEXT", help="The text, in place of the last word."),
    click.option(
        "--file", metavar="FILE", type=CallerPath(), help="Read the text from this file; a dash reads it from stdin."
    ),
    click.option("--request", is_flag=True, help="Ask for an answer; it is owed until there is one."),
    click.option("--ack", is_flag=True, hidden=True),
    click.option("--intent", metavar="INTENT", type=OneOf(_INTENTS), help="request, inform (default) or ack."),
    click.option(
        "--deadline",
        metavar="DURATION",
        type=Duration(),
        help="Ask for an answer within 30m, 2h or 1d; you are told if there is none.",
    ),
    click.option("--urgent", is_flag=True, help="Show it in the middle of a turn."),
    click.option("--low", is_flag=True, help="Show it after other mail."),
    click.option("--priority", metavar="PRIORITY", type=OneOf(_PRIORITIES), help="urgent, normal (default) or low."),
    click.option(
        "--key", metavar="KEY", default="", help="An idempotency key: a message with the same key is sent once."
    ),
)


class _SendCommand(Command):
    """A command that marks the position of the first option among its words.

    Click does not keep the order of words and options.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of a command line, with the mark before the first option."""
        options = ("--", *(name for param in self.params for name in param.opts if isinstance(param, click.Option)))
        first = next((index for index, word in enumerate(args) if word.partition("=")[0] in options), len(args))
        return super().parse_args(ctx, [*args[:first], _FIRST_OPTION, *args[first:]] if first < len(args) else args)


@click.command(
    "send",
    cls=_SendCommand,
    arguments=(
        (
            "NAME...",
            "an agent such as amber-fox, a subagent such as amber-fox/explore-2, User, #topic, or everyone",
        ),
        ("TEXT", "the message; a lone dash reads it from stdin"),
    ),
    examples=(
        'fairlead send amber-fox "The build is green again."',
        'fairlead send amber-fox jade-owl --subject "Review, please" --request --deadline 30m --file notes.md',
        'git diff | fairlead send amber-fox --subject "My patch" -',
    ),
    exit_codes=(
        (0, "sent now, or earlier with the same key"),
        (1, "nothing was sent; stderr says why"),
    ),
)
@click.argument("words", metavar="NAME... [TEXT]", nargs=-1, shell_complete=complete_agents)
@click.option("--to", metavar="NAME", multiple=True, shell_complete=complete_agents, help="A recipient; repeatable.")
@draft_options
@caller_options
def send(caller: CallerOptions, *, words: tuple[str, ...], to: tuple[str, ...], **given: Any) -> int:
    """Send a message to agents, a topic, everyone, or the user.

    The message is stored when the command returns. The agent is shown it once, at its next prompt or stop, whether it
    runs now or is resumed later; an agent that waits for mail gets it immediately.
    """
    draft = MessageOptions(**given)
    names, word = split_words(words, to, draft)
    text, file = draft.body_source(word)
    body = read_body(file) if file else text
    document = ask_mail(to_request(names, body, draft, time(), current().message_key()), caller)
    return print_document(document, caller, to_text(document))
