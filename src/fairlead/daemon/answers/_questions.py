"""Questions of agents and the answers of a person. Pure: no clock, no I/O, no process.

A question gets one answer at most. It is open while a hook waits for the answer. It is over when a person has answered
it, the hook has ended, the client has continued, the time is up, or the daemon shuts down.
"""

from __future__ import annotations

from secrets import choice as random_choice
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.clients import Choice, client_or_default
from fairlead.errors import FairleadError
from fairlead.events import HookOutput, SessionEnd, ToolEvent
from fairlead.sessions import clean_text, question_of
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.events import Event, PermissionRequest

Consent = Literal["allow", "deny"]

MAX_REASON = 2000
"""The maximum length of a reason, and of an answer to a question, in characters."""
DENIED = "The user denied this request."
"""The reason of a denial for which the person gives none."""

_ID_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"
"""The characters of an id, without those that are easily confused."""
_ID_LENGTH = 5


class AnswerError(FairleadError):
    """An answer is invalid, or cannot be passed on."""


class UnknownQuestion(AnswerError):
    """No open question has this id: it was answered, or never asked."""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A permission request or a question of an agent that a person can answer."""

    id: str
    event: str
    """The id of its event in the journal."""
    session: str
    agent: str = ""
    """The id of the subagent; "" for the main agent."""
    agent_type: str = ""
    client: str = ""
    tool: str
    text: str
    """The command, the change of a file, or the question. Its first line is a summary."""
    choices: tuple[Choice, ...] = ()
    """The choices, if a person has to choose and not only to allow or deny."""
    cwd: str = ""
    project: str = ""
    asked: float
    """The Unix time at which it was asked."""
    expires: float
    """The Unix time from which it can no longer be answered."""
    host: str = ""
    """The name of the host of the question's session; "" for this host."""
    only_deny: str = ""
    """The reason why another host can only deny it; "" if another host can allow it, too."""

    @property
    def session_id(self) -> str:
        """The id of the session or subagent in the state of sessions."""
        return f"{self.session}/{self.agent}" if self.agent else self.session


class PersonAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a person."""

    decision: Consent
    reason: str = ""
    chosen: tuple[str, ...] = msgspec.field(default=(), name="choose")
    """One text for each choice of the question: an option or its number, several with commas, or any other text."""


class Answerer(msgspec.Struct, frozen=True, kw_only=True):
    """The person who answered, and how."""

    user: str
    pid: int
    terminal: str = ""
    by: str = "command"
    """The program that was used: `command` (`fairlead answer`) or `watch`."""
    host: str = ""
    """The host on which the person answered; "" for this host."""

    def __str__(self) -> str:
        program = "fairlead watch" if self.by == "watch" else "fairlead answer"
        at = f" at {self.terminal}" if self.terminal else ""
        on = f" on {self.host}" if self.host else ""
        return f"{self.user}{on}{at}, with {program} (pid {self.pid})"


def question_about(event: PermissionRequest, *, event_id: str, project: str, asked: float, seconds: float) -> Question:
    """Return the question of an event, with a new id. It expires `seconds` after the time `asked`."""
    client = client_or_default(event.client)
    return Question(
        id=_new_id(),
        event=event_id,
        session=event.session_id,
        agent=event.agent_id or "",
        agent_type=event.agent_type or "",
        client=event.client,
        tool=clean_text(event.tool_name),
        text=question_of(event),
        choices=client.choices_of(event.tool_name, event.tool_input),
        cwd=event.cwd or "",
        project=project,
        asked=asked,
        expires=asked + seconds,
    )


def output_of(event: PermissionRequest, question: Question, answer: PersonAnswer) -> HookOutput:
    """Return the output of the hook for an answer. Raises `AnswerError` if the answer does not fit the question."""
    if answer.decision == "deny":
        if answer.chosen:
            raise AnswerError("a denial chooses nothing; leave out what was chosen")
        return HookOutput.deny(answer.reason.strip()[:MAX_REASON] or DENIED)
    if answer.reason:
        raise AnswerError("only a denial has a reason: the client passes on none of an approval")
    chosen = chosen_texts(question.choices, answer.chosen)
    return client_or_default(event.client).approval(event.tool_name, event.tool_input, chosen)


def chosen_texts(choices: Sequence[Choice], texts: Sequence[str]) -> list[str]:
    """Return the answers to all choices in the client's format.

    Raise `AnswerError` if there is not one text for each choice, or if one is empty or longer than `MAX_REASON`.
    """
    if len(choices) != len(texts):
        if not choices:
            raise AnswerError("there is nothing to choose; it can only be allowed or denied")
        raise AnswerError(f"{len(choices)} to choose, and {len(texts)} chosen; choose one for each question, in order")
    return [_chosen(choice, text) for choice, text in zip(choices, texts, strict=True)]


def _chosen(choice: Choice, text: str) -> str:
    """Return the option that `text` names, or `text` itself if it names none; several, separated by commas, if allowed.

    With the options Red and Blue: `2` → `Blue`, `1, blue` → `Red, Blue`, `green` → `green`. Raise `AnswerError` if the
    text is empty or longer than `MAX_REASON`.
    """
    text = text.strip()
    if not text:
        raise AnswerError(f"nothing is chosen for {one_line(choice.question, 60)!r}")
    if len(text) > MAX_REASON:
        raise AnswerError(f"an answer has at most {MAX_REASON} characters")
    if not choice.allows_several or _option(choice, text) is not None:
        return _option(choice, text) or text
    return ", ".join(_option(choice, part) or part for part in (part.strip() for part in text.split(",")) if part)


def _option(choice: Choice, text: str) -> str | None:
    """Return the option that `text` is, in any case, or whose number from 1 it is; `None` if there is none."""
    for option in choice.options:
        if option.casefold() == text.casefold():
            return option
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 3 else 0  # noqa: PLR2004 - two digits
    return choice.options[number - 1] if 0 < number <= len(choice.options) else None


def ends_question(asked: PermissionRequest, event: Event) -> bool:
    """Return whether a later event shows that a question is over, for example because it was answered in the client."""
    if event.session_id != asked.session_id:
        return False
    if isinstance(event, SessionEnd):
        return True
    if (event.agent_id or "") != (asked.agent_id or ""):
        return False
    if isinstance(event, ToolEvent):  # a parallel call may have the same tool, but rarely the same input
        is_same = event.tool_name == asked.tool_name and event.tool_input == asked.tool_input
        return is_same and event.event_name in _CALL_ENDS
    return event.event_name in _TURN_ENDS


_CALL_ENDS = frozenset({"PostToolUse", "PostToolUseFailure", "PermissionDenied"})
_TURN_ENDS = frozenset({"PostToolBatch", "Stop", "StopFailure", "SubagentStop", "UserPromptSubmit", "SessionStart"})


def _new_id() -> str:
    """Return a random id that a person can type.

    It is random, so that no new question has the id of an old one.
    """
    return "".join(random_choice(_ID_LETTERS) for _ in range(_ID_LENGTH))
