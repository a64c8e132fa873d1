"""What the guards found about one tool call, and every rule that they looked at on the way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.events import HookOutput
from fairlead.policy.paths._resolve import Disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAIN_AGENT = "main"


class RuleCheck(msgspec.Struct, frozen=True):
    """One rule that was looked at."""

    setting: str
    """Where it stands: `preToolUse.uneditableFiles[2]`."""
    rule: str
    """Its pattern, or its value."""
    file: str
    """The policy file; empty for what holds without one."""
    matched: bool
    why: str


class Verdict(msgspec.Struct, frozen=True):
    """What comes of a tool call, and why."""

    output: HookOutput
    looked: tuple[RuleCheck, ...] = ()
    subjects: tuple[tuple[int, str], ...] = ()
    """From which look on which file or command was looked at."""


class Evaluation:
    """A tool call under examination: what is known of it, and what was found so far."""

    __slots__ = ("agent", "also", "cwd", "disk", "doubts", "has_command", "looked", "subjects", "tool", "warnings")

    def __init__(self, tool: str, agent: str | None, cwd: str, also: str = "") -> None:
        self.tool = tool
        self.also = also or tool
        """Another name of the tool, which rules may have too."""
        self.has_command = False
        self.agent = agent or MAIN_AGENT
        self.cwd = cwd
        self.disk = Disk(cwd)
        self.looked: list[RuleCheck] = []
        self.subjects: list[tuple[int, str]] = []
        self.warnings: list[str] = []
        self.doubts: list[str] = []
        """What could not be understood."""

    def about(self, subject: str) -> None:
        """Note which file or command is looked at from here on."""
        self.subjects.append((len(self.looked), subject))

    def found(self, missed: RuleCheck, why: str, action: Literal["block", "warn"], message: str) -> str | None:
        """Note that a rule matched; give the message if it blocks."""
        self.looked.append(msgspec.structs.replace(missed, matched=True, why=why))
        if action == "block":
            return message
        self.warnings.append(message)
        return None

    def verdict(self, blocked: str | None, unparsable: Literal["ask", "deny", "allow"]) -> Verdict:
        """Come to a verdict: a block before a doubt, and warnings to the person in any case."""
        output = HookOutput() if blocked is None else HookOutput.deny(blocked)
        if blocked is None and self.doubts and unparsable != "allow":
            doubted = _doubted(self.doubts, has_command=self.has_command)
            output = (HookOutput.ask if unparsable == "ask" else HookOutput.deny)(doubted)
        if self.warnings:
            output = output.with_system_message("\n".join(dict.fromkeys(self.warnings)))
        return Verdict(output, tuple(self.looked), tuple(self.subjects))


def _doubted(doubts: list[str], *, has_command: bool) -> str:
    shown = "; ".join(dict.fromkeys(doubts))
    if not has_command:
        return f"This call cannot be checked against the policy (preToolUse.bash.unparsable): {shown}."
    return (
        f"This command cannot be checked against the policy (preToolUse.bash.unparsable): {shown}. "
        "Write it without what cannot be known beforehand, one plain command at a time."
    )


def glob_test(pattern: str) -> Callable[[str], object] | None:
    """Make a test from a glob on a name; `None` for `*`, which needs none. It is compiled when first asked."""
    if pattern == "*":
        return None
    if not any(char in pattern for char in "*?["):
        return pattern.__eq__
    compiled: Callable[[str], object] | None = None

    def test(text: str) -> object:
        nonlocal compiled
        if compiled is None:
            compiled = any_text([pattern])
        return compiled(text)

    return test


def any_text(patterns: Iterable[str]) -> Callable[[str], object]:
    """Compile globs on a whole text, in which `*` takes everything; the test is whether any of them matches."""
    from fnmatch import translate

    return re.compile("|".join(map(translate, patterns))).match
