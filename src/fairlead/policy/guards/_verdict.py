"""The evaluation of one tool call: every rule that was checked, and the verdict."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlead.events import HookOutput
from fairlead.policy._globs import glob_test
from fairlead.policy.paths._resolve import PathResolver

__all__ = ["Evaluation", "RuleCheck", "Verdict", "glob_test"]

MAIN_AGENT = "main"


class RuleCheck(msgspec.Struct, frozen=True):
    """One rule that was checked."""

    setting: str
    """The setting of the rule: `preToolUse.uneditableFiles[2]`."""
    rule: str
    """The pattern or value of the rule."""
    file: str
    """The policy file; empty for a rule that applies without one."""
    matched: bool
    why: str


class Verdict(msgspec.Struct, frozen=True):
    """The answer to a tool call, and why."""

    output: HookOutput
    looked: tuple[RuleCheck, ...] = ()
    subjects: tuple[tuple[int, str], ...] = ()
    """The file or command that was checked, each with the index of its first check."""


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
        self.disk = PathResolver(cwd)
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
