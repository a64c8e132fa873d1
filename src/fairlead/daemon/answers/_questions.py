"""The questions that wait for an answer, and what an answer is. Pure: no clock, no I/O, no process.

A question has one answer at most. It is open from the moment a hook waits for it until somebody answers it, or nobody
can any more: the hook has gone, the client went on, the time is up, the daemon shuts down.
"""

from __future__ import annotations

from secrets import choice as random_choice
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.clients import Choice, client_or_default
from fairlead.errors import FairleadError
from fairlead.events import HookOutput, SessionEnd, ToolEvent
from fairlead.sessions import clean, question_of
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.events import Event, PermissionRequest

Decision = Literal["allow", "deny"]

MAX_REASON = 2000
"""Characters of a reason, and of an answer to a question."""
DENIED = "The user denied this request."
"""The reason of a denial without one."""

_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""Without letters and digits that are mistaken for one another."""
_ID_LENGTH = 5


class AnswerError(FairleadError):
    """An answer that cannot be given."""


class UnknownQuestion(AnswerError):
    """A question that nobody asks: it was answered, or was never asked."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked."""

    id: str
    event: str
    """The id of its event in the journal."""
    session: str
    agent: str = ""
    """The id of the subagent that asks; "" for the main agent."""
    agent_type: str = ""
    client: str = ""
    tool: str
    text: str
    """The command, the change of a file, the question. The first line says it."""
    choices: tuple[Choice, ...] = ()
    """What to choose from, where it is not only allowed or denied."""
    cwd: str = ""
    project: str = ""
    asked: float
    expires: float
    host: str = ""
    """The name of the other host of the team that it is asked on; "" for this one."""
    only_deny: str = ""
    """Why it can be denied and not allowed from another host; "" if it can be allowed."""

    @property
    def session_id(self) -> str:
        """The id under which the sessions know the agent."""
        return f"{self.session}/{self.agent}" if self.agent else self.session


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a person answers."""

    decision: Decision
    reason: str = ""
    choose: tuple[str, ...] = ()
    """One for each choice of the question: an option by its text or number, several with commas, or another text."""


class Answerer(msgspec.Struct, frozen=True, kw_only=True):
    """Who has answered."""

    user: str
    pid: int
    terminal: str = ""
    by: str = "command"
    """The program: `command` (`fairlead answer`) or `watch`."""
    host: str = ""
    """The host of the team on which; "" for this one."""

    def __str__(self) -> str:
        program = "fairlead watch" if self.by == "watch" else "fairlead answer"
        at = f" at {self.terminal}" if self.terminal else ""
        on = f" on {self.host}" if self.host else ""
        return f"{self.user}{on}{at}, with {program} (pid {self.pid})"


def question_about(event: PermissionRequest, *, event_id: str, project: str, asked: float, seconds: float) -> Question:
    """Return the question of an event, with an id of its own."""
    client = client_or_default(event.client)
    return Question(
        id=_new_id(),
        event=event_id,
        session=event.session_id,
        agent=event.agent_id or "",
        agent_type=event.agent_type or "",
        client=event.client,
        tool=clean(event.tool_name),
        text=question_of(event),
        choices=client.choices_of(event.tool_name, event.tool_input),
        cwd=event.cwd or "",
        project=project,
        asked=asked,
        expires=asked + seconds,
    )


def output_of(event: PermissionRequest, question: Question, answer: Answer) -> HookOutput:
    """Return what the hook answers. Raise `AnswerError` if the answer does not fit the question."""
    if answer.decision == "deny":
        if answer.choose:
            raise AnswerError("a denial chooses nothing; leave out what was chosen")
        return HookOutput.deny(answer.reason.strip()[:MAX_REASON] or DENIED)
    if answer.reason:
        raise AnswerError("only a denial has a reason: the client passes on none of an approval")
    chosen = chosen_texts(question.choices, answer.choose)
    return client_or_default(event.client).approval(event.tool_name, event.tool_input, chosen)


def chosen_texts(choices: Sequence[Choice], given: Sequence[str]) -> list[str]:
    """Return the answers to all choices as the client writes them. Raise `AnswerError` if they do not fit."""
    if len(choices) != len(given):
        if not choices:
            raise AnswerError("there is nothing to choose; it can only be allowed or denied")
        raise AnswerError(f"{len(choices)} to choose, and {len(given)} chosen; choose one for each question, in order")
    return [_chosen(choice, text) for choice, text in zip(choices, given, strict=True)]


def _chosen(choice: Choice, given: str) -> str:
    text = given.strip()
    if not text:
        raise AnswerError(f"nothing is chosen for {one_line(choice.question, 60)!r}")
    if len(text) > MAX_REASON:
        raise AnswerError(f"an answer has at most {MAX_REASON} characters")
    if not choice.several or _option(choice, text) is not None:
        return _option(choice, text) or text
    return ", ".join(_option(choice, part) or part for part in (part.strip() for part in text.split(",")) if part)


def _option(choice: Choice, text: str) -> str | None:
    """Return the option that a text means, by its own text or its number."""
    for option in choice.options:
        if option.casefold() == text.casefold():
            return option
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0  # noqa: PLR2004 - two digits
    return choice.options[number - 1] if 0 < number <= len(choice.options) else None


def ends_question(asked: PermissionRequest, event: Event) -> bool:
    """Return whether a later event of the client shows that a question is over, whoever answered it."""
    if event.session_id != asked.session_id:
        return False
    if isinstance(event, SessionEnd):
        return True
    if (event.agent_id or "") != (asked.agent_id or ""):
        return False
    if isinstance(event, ToolEvent):  # a call in parallel has the same tool, but seldom the same input
        is_same = event.tool_name == asked.tool_name and event.tool_input == asked.tool_input
        return is_same and event.event_name in _CALL_ENDS
    return event.event_name in _TURN_ENDS


_CALL_ENDS = frozenset({"PostToolUse", "PostToolUseFailure", "PermissionDenied"})
_TURN_ENDS = frozenset({"PostToolBatch", "Stop", "StopFailure", "SubagentStop", "UserPromptSubmit", "SessionStart"})


def _new_id() -> str:
    """Return an id that a person can type. It is random: an id of yesterday's question must not fit today's."""
    return "".join(random_choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
