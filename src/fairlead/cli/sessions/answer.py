"""`fairlead answer`: lists the open questions of sessions, and answers one of them."""

from __future__ import annotations

import json
from time import time
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import request_daemon
from fairlead.cli.support.invocation import print_line, print_lines
from fairlead.cli.support.param_types import OneOf
from fairlead.errors import FairleadError, UsageError
from fairlead.ipc import RequestRefused
from fairlead.text import duration, one_line, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

_DECISIONS = ("allow", "deny")
_ANSWERS_OFF = (
    "questions can be answered in the client alone; set `attention: {answer: true}` in the user-wide policy, "
    "and run fairlead hooks install --answer"
)
_MAX_LINES = 12
"""How many lines of a question the list shows; --json has all of them."""
_NO_ANSWER = frozenset({400, 403, 404})


class AnswerRefused(FairleadError):
    """The daemon refused an answer."""


class Options(msgspec.Struct, frozen=True):
    """The words and options of the command line."""

    question: str = ""
    """The id of a question; "" to list the open ones."""
    decision: str | None = None
    """`allow` or `deny`; `None` if it was not given."""
    reason: str = ""
    choose: tuple[str, ...] = ()
    """The answers to the questions that need a choice, in order."""
    as_json: bool = False


def to_request(options: Options) -> tuple[str, str, dict[str, Any] | None]:
    """Return the method, path and body of the request. The body of a GET is `None`.

    Raise `UsageError` if options contradict each other, or if the decision is missing.
    """
    if not options.question:
        if options.reason or options.choose:
            raise UsageError("--reason and --choose need the id of a question; see fairlead answer")
        return "GET", "/v1/answers", None
    if not options.decision:
        raise UsageError(f"allow or deny? fairlead answer {one_line(options.question)} allow|deny")
    name, has_host, host = options.question.partition("@")
    if not _is_word(name) or (has_host and not _is_word(host.replace("-", ""))):
        raise UsageError(f"{one_line(options.question)!r} is no id of a question; see fairlead answer")
    if options.decision == "allow" and options.reason:
        raise UsageError("--reason is for deny: the client passes on no reason of an approval")
    if options.decision == "deny" and options.choose:
        raise UsageError("--choose is for allow")
    body = {"decision": options.decision, "reason": options.reason, "choose": options.choose, "by": "command"}
    return "POST", f"/v1/answers/{options.question}", body


def _is_word(text: str) -> bool:
    return text.isascii() and text.isalnum()


def to_text(document: dict[str, Any], now: float) -> Iterator[str]:
    """Yield the open questions, each with its id, its agent and what it asks."""
    questions = document["questions"]
    if not questions:
        yield "no open questions" if document["enabled"] else f"no open questions: {_ANSWERS_OFF}"
    for question in questions:
        who = f"{question['agent_type'] or 'subagent'} of " if question["agent"] else ""
        folder = (question["project"] or question["cwd"]).rstrip("/").rpartition("/")[2]
        age = duration(now - question["asked"])
        on = f" on {one_line(question['host'])}" if question.get("host") else ""
        yield f"{question['id']}  {one_line(question['tool'])}  {who}{one_line(folder)}{on}  for {age}"
        yield from (f"  {line}" for line in _question_lines(question))
        if question.get("only_deny"):
            yield f"  It can only be denied from here: {one_line(question['only_deny'])}."


def _question_lines(question: dict[str, Any]) -> Iterator[str]:
    if question["choices"]:
        for choice in question["choices"]:
            yield one_line(choice["question"]) + (" (several)" if choice["several"] else "")
            for number, option in enumerate(choice["options"]):
                about = one_line(choice["descriptions"][number])
                yield f"  {number + 1} {one_line(option)}" + (f": {about}" if about else "")
        return
    lines = list(printable_lines(question["text"]))
    yield from lines[:_MAX_LINES]
    if len(lines) > _MAX_LINES:
        yield f"... and {len(lines) - _MAX_LINES} more lines; --json has them all"


def to_result(document: dict[str, Any], options: Options) -> str:
    """Return one line with the decision and the question that it answers."""
    question = document["question"]
    verb = "denied" if options.decision == "deny" else "answered" if options.choose else "allowed once"
    verb += f" on {one_line(question['host'])}" if question.get("host") else ""
    about = one_line(question["text"].partition("\n")[0], 100)
    return f"{verb}: {one_line(question['tool'])}" + (f": {about}" if about else "")


@click.command(
    "answer",
    cls=Command,
    examples=(
        "fairlead answer",
        "fairlead answer k7qd3 allow",
        'fairlead answer k7qd3 deny --reason "Use the test database."',
        'fairlead answer m2xw8 allow --choose Blue --choose "Apple, Pear"',
    ),
    exit_codes=(
        (0, "answered, or listed"),
        (1, "not answered; stderr says why, as for a question that somebody else has answered"),
    ),
)
@click.argument("question", metavar="[ID]", default="")
@click.argument("decision", metavar="[allow|deny]", type=OneOf(_DECISIONS), required=False)
@click.option("--reason", metavar="TEXT", default="", help="The reason for denying; the agent reads it.")
@click.option(
    "--choose",
    metavar="TEXT",
    multiple=True,
    help="The answer to a question: the text or number of an option, or other text. Repeat it for each question.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def answer(**given: Any) -> int:
    """Answer a question of a session, or list the open ones.

    Without an id it lists the questions that can be answered here; in a team, also those of other hosts that take
    answers (ID@HOST, or the id alone). An answer applies to that call only. The first answer decides, here or in the
    client. Only a person can answer: the command refuses below an agent's session.
    """
    options = Options(**given)
    method, path, body = to_request(options)
    try:
        document = request_daemon(method, path, body)
    except RequestRefused as error:
        if error.status not in _NO_ANSWER:
            raise
        raise AnswerRefused(error.text) from None
    if options.as_json:
        print_line(json.dumps(document))
    elif options.question:
        print_line(to_result(document, options))
    else:
        print_lines(to_text(document, time()))
    return 0
