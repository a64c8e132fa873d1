"""The form in which a question is answered: its text, and the effects of keys. Needs neither a screen nor a daemon.

The key that allows differs from the key that opens the form, so that a key pressed twice allows nothing.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import msgspec

from fairlead.text import fit_end, one_line, printable_lines, wrap_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.tui.model._layout import StyledText, StyleName

Mode: TypeAlias = Literal["decide", "deny", "choose", "text", "reason"]
"""The mode of the form.

decide  allow or deny
deny    only deny
choose  choose an option
text    type another answer
reason  type the reason of a denial
"""

_TAB = 4
_HINTS: dict[Mode, str] = {
    "decide": "y allow once  d deny  g go to its pane  Esc back",
    "deny": "d deny  g go to its pane  Esc back",
    "choose": "1-9 choose  o other answer  d deny  g go to its pane  Esc back",
    "text": "answer: ",
    "reason": "deny, because: ",
}
_TEXT_HINTS = {"text": "Enter answers, Esc goes back", "reason": "a reason, or none; Enter denies, Esc goes back"}


class ShownChoice(msgspec.Struct, frozen=True):
    """One question with options, as the daemon lists it."""

    question: str
    options: tuple[str, ...] = ()
    several: bool = False
    descriptions: tuple[str, ...] = ()


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that can be answered, as the daemon lists it."""

    id: str
    session: str
    agent: str = ""
    tool: str = ""
    text: str = ""
    choices: tuple[ShownChoice, ...] = ()
    host: str = ""
    """The other host on which the question is asked; "" for this host."""
    only_deny: str = ""
    """The reason why it cannot be allowed from here; "" if it can."""

    @property
    def session_id(self) -> str:
        """The id that the asking session has in the view."""
        name = f"{self.session}/{self.agent}" if self.agent else self.session
        return f"{name}@{self.host}" if self.host else name

    @property
    def name(self) -> str:
        """The id of the question, with its host."""
        return f"{self.id}@{self.host}" if self.host else self.id


class OpenQuestions(msgspec.Struct, frozen=True):
    """The daemon's list of open questions."""

    questions: tuple[OpenQuestion, ...] = ()
    enabled: bool = False
    hosts: dict[str, bool] = {}
    """The other hosts → whether they accept answers from this host."""


class SendAnswer(NamedTuple):
    """Send an answer to the daemon."""

    body: dict[str, Any]


Effect: TypeAlias = SendAnswer | Literal["", "go", "close"]
"""The effect of a key, besides a change of the form: send an answer, go to the pane, close the form, or nothing."""


class AnswerForm:
    """The state of the form for one question."""

    def __init__(self, question: OpenQuestion) -> None:
        self.question = question
        self._first: Mode = "deny" if question.only_deny else "choose" if question.choices else "decide"
        self.mode: Mode = self._first
        self.value = ""
        """The typed text."""
        self._answers: list[str] = []
        self._marked: set[int] = set()
        """The marked options of the current choice, if several can be chosen."""

    # -- keys ------------------------------------------------------------------------------------------

    def press(self, key: str, character: str | None = None) -> Effect:
        """Apply a key, and return its effect."""
        if self.mode in ("text", "reason"):
            return self._type(key, character)
        if key in ("escape", "q", "ctrl+c"):
            return "close"
        if key in ("g", "d"):
            return "go" if key == "g" else self._edit("reason")
        if self.mode == "deny":
            return ""
        return self._choose(key) if self.mode == "choose" else self._decide(key)

    def paste(self, text: str) -> None:
        """Add pasted text as one line."""
        if self.mode in ("text", "reason"):
            self.value += one_line(text)

    def _decide(self, key: str) -> Effect:
        return SendAnswer({"decision": "allow"}) if key == "y" else ""

    def _edit(self, mode: Mode) -> Effect:
        self.mode, self.value = mode, ""
        return ""

    def _choose(self, key: str) -> Effect:
        choice = self._choice
        if key == "o":
            return self._edit("text")
        if key == "enter" and self._marked:
            return self._answered(", ".join(choice.options[at] for at in sorted(self._marked)))
        at = int(key) - 1 if key.isascii() and key.isdigit() else -1
        if not 0 <= at < len(choice.options):
            return ""
        if not choice.several:
            return self._answered(choice.options[at])
        self._marked ^= {at}
        return ""

    def _type(self, key: str, character: str | None) -> Effect:
        if key in ("escape", "ctrl+c"):
            self.mode = self._first
        elif key == "enter":
            return self._typed()
        elif key in ("backspace", "ctrl+h"):
            self.value = self.value[:-1]
        elif key == "ctrl+u":
            self.value = ""
        elif character and character.isprintable():
            self.value += character
        return ""

    def _typed(self) -> Effect:
        if self.mode == "reason":
            return SendAnswer({"decision": "deny", "reason": self.value.strip()})
        return self._answered(self.value.strip()) if self.value.strip() else ""

    def _answered(self, text: str) -> Effect:
        self._answers.append(text)
        self._marked, self.mode = set(), "choose"
        if len(self._answers) < len(self.question.choices):
            return ""
        return SendAnswer({"decision": "allow", "choose": self._answers})

    # -- text ------------------------------------------------------------------------------------------

    @property
    def _choice(self) -> ShownChoice:
        return self.question.choices[min(len(self._answers), len(self.question.choices) - 1)]

    def lines(self, cells: int) -> list[list[StyledText]]:
        """Return the lines of the question: a choice with its options, or the whole command or change."""
        lines = self._question_lines(cells)
        if self.question.only_deny:
            why = f"It can only be denied from here: {one_line(self.question.only_deny)}."
            note: list[list[StyledText]] = [[(part, "needs")] for part in wrap_line(why, cells)]
            lines = [*note, *lines]
        return lines

    def _question_lines(self, cells: int) -> list[list[StyledText]]:
        if self.question.choices:
            return [[line] for line in self._choice_lines(cells)]
        shown = [line.expandtabs(_TAB) for line in printable_lines(self.question.text)]
        return [[(part, diff_style(line))] for line in shown for part in wrap_line(line, cells)]

    def _choice_lines(self, cells: int) -> Iterator[StyledText]:
        choice, count = self._choice, len(self.question.choices)
        of = f" ({len(self._answers) + 1} of {count})" if count > 1 else ""
        yield from _paragraph(f"{choice.question}{of}", "", "group", cells)
        for index, (option, about) in enumerate(zip_longest(choice.options, choice.descriptions, fillvalue="")):
            mark = ("[x] " if index in self._marked else "[ ] ") if choice.several else ""
            before = f" {index + 1} {mark}"
            yield from _paragraph(option, before, "plain", cells)
            if about:
                yield from _paragraph(about, " " * len(before), "dim", cells)

    def prompt(self, cells: int) -> list[StyledText]:
        """Return the last line of the form: the keys, or the typed text."""
        hint = _HINTS[self.mode]
        if self.mode not in ("text", "reason"):
            if self.mode == "choose" and self._choice.several:
                hint = hint.replace("choose", "mark  Enter answers", 1)
            return [(fit_end(hint, cells), "dim")]
        shown = fit_end(self.value, max(1, cells - len(hint) - 1))
        return [(hint, "needs"), (shown, "plain"), ("▏", "needs"), ("" if shown else _TEXT_HINTS[self.mode], "dim")]


def _paragraph(text: str, before: str, style: StyleName, cells: int) -> Iterator[StyledText]:
    """Yield a text as lines of at most `cells` cells. `before` precedes the first line, and the others are indented."""
    lines = [line.expandtabs(_TAB) for line in printable_lines(text)]
    for part in (part for line in lines for part in wrap_line(line, cells - len(before))):
        yield f"{before}{part}", style
        before = " " * len(before)


def diff_style(line: str) -> StyleName:
    """Return the style of a line of a question, which may show the change of a file."""
    return "working" if line.startswith("+") else "tight" if line.startswith("-") else "plain"
