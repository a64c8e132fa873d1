"""The evaluation of one tool call: every rule that was checked, and the verdict."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.events import HookOutput
from fairlead.policy.paths._resolve import PathResolver

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    checks: tuple[RuleCheck, ...] = ()
    subjects: tuple[tuple[int, str], ...] = ()
    """The file or command that was checked, each with the index of its first check."""


class Evaluation:
    """A tool call that is checked: its tool, agent and folder, and the result so far."""

    __slots__ = (
        *(
            "agent",
            "also",
            "checks",
            "cwd",
            "has_command",
            "leaves_out",
            "may_block",
            "paths",
            "subjects",
            "tool",
            "unknowns",
        ),
        "warnings",
    )

    def __init__(self, tool: str, agent: str | None, cwd: str, also: str = "", *, may_block: bool = True) -> None:
        self.tool = tool
        self.may_block = may_block
        """Whether a check may wait for a process; if not, it raises `NotCached`."""
        self.also = also or tool
        """Another name of the tool, which rules may have too."""
        self.has_command = False
        self.leaves_out: dict[str, None] | None = None
        """Globs of files that a search has to leave out; `None` if the tool cannot leave any out."""
        self.agent = agent or MAIN_AGENT
        self.cwd = cwd
        self.paths = PathResolver(cwd)
        self.checks: list[RuleCheck] = []
        self.subjects: list[tuple[int, str]] = []
        self.warnings: list[str] = []
        self.unknowns: list[str] = []
        """What is not known before the call runs."""

    def start_subject(self, subject: str) -> None:
        """Record the file or command that the following checks are about."""
        self.subjects.append((len(self.checks), subject))

    @contextmanager
    def in_folder(self, folder: str) -> Iterator[None]:
        """Resolve paths in another folder, relative to this one."""
        before = self.cwd, self.paths
        self.cwd = self.paths.resolve(folder).real
        self.paths = PathResolver(self.cwd)
        try:
            yield
        finally:
            before[1].include(self.paths)
            self.cwd, self.paths = before

    def add_match(self, missed: RuleCheck, why: str, action: Literal["block", "warn"], message: str) -> str | None:
        """Record that a rule matched; return the message if it blocks."""
        self.checks.append(msgspec.structs.replace(missed, matched=True, why=why))
        if action == "block":
            return message
        self.warnings.append(message)
        return None

    def verdict(self, blocked: str | None, unparsable: Literal["ask", "deny", "allow"]) -> Verdict:
        """Return the verdict: a block wins over what is not known; warnings are always shown to the user."""
        output = HookOutput() if blocked is None else HookOutput.deny(blocked)
        if blocked is None and self.unknowns and unparsable != "allow":
            message = _cannot_check(self.unknowns, has_command=self.has_command)
            output = (HookOutput.ask if unparsable == "ask" else HookOutput.deny)(message)
        if self.warnings:
            output = output.with_system_message("\n".join(dict.fromkeys(self.warnings)))
        return Verdict(output, tuple(self.checks), tuple(self.subjects))


def _cannot_check(unknowns: list[str], *, has_command: bool) -> str:
    reasons = "; ".join(dict.fromkeys(unknowns))
    if not has_command:
        return f"This call cannot be checked against the policy (preToolUse.bash.unparsable): {reasons}."
    return (
        f"This command cannot be checked against the policy (preToolUse.bash.unparsable): {reasons}. "
        "Write it without variables and substitutions, one plain command at a time."
    )
