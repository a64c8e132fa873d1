"""The form in which the user answers a question: its text, and the effects of keys. No screen, no daemon.

The key that allows differs from the key that opens the form, so pressing the same key twice allows nothing.
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
    """A question with options, as the daemon lists it."""

    question: str
    options: tuple[str, ...] = ()
    allows_several: bool = msgspec.field(default=False, name="several")
    """Whether more than one option can be chosen."""
    descriptions: tuple[str, ...] = ()
    """The descriptions of the options, in their order."""


class OpenQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that can be answered from this host, as the daemon lists it."""

    id: str
    session: str
    """The id of the session in the client."""
    agent: str = ""
    """The id of the subagent that asks; "" for a main session."""
    tool: str = ""
    text: str = ""
    """The command or change to allow or deny."""
    choices: tuple[ShownChoice, ...] = ()
    """The questions to be answered by options, one after the other."""
    host: str = ""
    """The other host on which the question is asked; "" for this host."""
    only_deny: str = ""
    """The reason why it can only be denied from this host; "" if it can also be allowed."""

    @property
    def session_id(self) -> str:
        """The id of the asking session or subagent in the view (`Session.id`)."""
        name = f"{self.session}/{self.agent}" if self.agent else self.session
        return f"{name}@{self.host}" if self.host else name

    @property
    def name(self) -> str:
        """The id of the question for the daemon, with `@HOST` if another host asks it."""
        return f"{self.id}@{self.host}" if self.host else self.id


class OpenQuestions(msgspec.Struct, frozen=True):
    """The daemon's list of open questions."""

    questions: tuple[OpenQuestion, ...] = ()
    enabled: bool = False
    """Whether questions on this host can be answered outside of the client."""
    hosts: dict[str, bool] = {}
    """Other host → whether it accepts answers from this host."""


class SendAnswer(NamedTuple):
    """The effect of a key that completes an answer: it is sent to the daemon."""

    body: dict[str, Any]
    """The body of the request, without who answers."""


Effect: TypeAlias = SendAnswer | Literal["", "go", "close"]
"""What a key causes outside of the form: an answer is sent, the view goes to the pane, the form closes, or nothing."""


class AnswerForm:
    """The state of the form for one question."""

    def __init__(self, question: OpenQuestion) -> None:
        self.question = question
        self._first: Mode = "deny" if question.only_deny else "choose" if question.choices else "decide"
        self.mode: Mode = self._first
        self.value = ""
        """The text that the user has typed in the mode `text` or `reason`."""
        self._answers: list[str] = []
        """The answers to the choices so far."""
        self._marked: set[int] = set()
        """The marked options of the current choice, if several can be chosen."""

    # -- keys ------------------------------------------------------------------------------------------

    def press(self, key: str, character: str | None = None) -> Effect:
        """Apply a key, and return its effect. `character` is the text that the key types, if it types any."""
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
        """Add pasted text as one line, if the user is typing."""
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
        if not choice.allows_several:
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
        """Return the lines of the question: the current choice with its options, or the complete command or change."""
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
            mark = ("[x] " if index in self._marked else "[ ] ") if choice.allows_several else ""
            before = f" {index + 1} {mark}"
            yield from _paragraph(option, before, "plain", cells)
            if about:
                yield from _paragraph(about, " " * len(before), "dim", cells)

    def prompt(self, cells: int) -> list[StyledText]:
        """Return the last line of the form: the keys, or the typed text with its label."""
        hint = _HINTS[self.mode]
        if self.mode not in ("text", "reason"):
            if self.mode == "choose" and self._choice.allows_several:
                hint = hint.replace("choose", "mark  Enter answers", 1)
            return [(fit_end(hint, cells), "dim")]
        shown = fit_end(self.value, max(1, cells - len(hint) - 1))
        return [(hint, "needs"), (shown, "plain"), ("▏", "needs"), ("" if shown else _TEXT_HINTS[self.mode], "dim")]


def _paragraph(text: str, before: str, style: StyleName, cells: int) -> Iterator[StyledText]:
    """Yield a text as lines of at most `cells` cells. The first starts with `before`, the others with spaces."""
    lines = [line.expandtabs(_TAB) for line in printable_lines(text)]
    for part in (part for line in lines for part in wrap_line(line, cells - len(before))):
        yield f"{before}{part}", style
        before = " " * len(before)


def diff_style(line: str) -> StyleName:
    """Return the style of a line: `working` for an added line (`+`), `tight` for a removed one (`-`), else `plain`."""
    return "working" if line.startswith("+") else "tight" if line.startswith("-") else "plain"
