"""The evaluation of one tool call: every rule that was checked, and the result."""

from __future__ import annotations

from fairlead.events import NO_OPINION, HookOutput
from fairlead.policy.paths._resolve import PathResolver, ResolvedPath
from fairlead.structs import LIGHT, Struct, replace

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Literal  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy.config._errors import Diagnostic

MAIN_AGENT = "main"


class RuleCheck(Struct, frozen=True):
    """One rule that was checked."""

    setting: str
    """The setting of the rule: `preToolUse.uneditableFiles[2]`."""
    rule: str
    """The pattern or value of the rule."""
    file: str
    """The policy file; empty for a rule that applies without one."""
    matched: bool
    why: str
    """Why the rule matched, or why it did not."""


class FileChange(Struct, frozen=True):
    """A file or folder that a call changes."""

    target: ResolvedPath
    whole: bool = False
    """Of a folder: whether what is below it is changed too."""


class GuardResult(Struct, frozen=True):
    """The answer to a tool call, and why."""

    output: HookOutput
    checks: tuple[RuleCheck, ...] = ()
    subjects: tuple[tuple[int, str], ...] = ()
    """The files and commands that were checked, each with the index of its first check."""
    unknowns: tuple[str, ...] = ()
    """What is only known when the call runs, if the result depends on it."""


class _InFolder:
    """A context manager in which an evaluation resolves paths in another folder."""

    def __init__(self, evaluation: Evaluation, folder: str) -> None:
        self._evaluation = evaluation
        self._folder = folder

    def __enter__(self) -> None:
        evaluation = self._evaluation
        self._before = evaluation.cwd, evaluation.paths
        evaluation.cwd = evaluation.paths.resolve(self._folder).real
        evaluation.paths = PathResolver(evaluation.cwd)

    def __exit__(self, *_: object) -> None:
        self._before[1].include(self._evaluation.paths)
        self._evaluation.cwd, self._evaluation.paths = self._before


class Evaluation:
    """A tool call that is checked: its tool, agent and folder, and the result so far."""

    __slots__ = (
        *("agent", "checks", "cwd", "has_command", "leaves_out", "may_leave_out", "may_wait", "paths", "tool_alias"),
        *("changed_folders", "changes", "rules_at_risk", "subjects", "tool", "unknowns", "warnings"),
    )

    def __init__(self, tool: str, agent: str | None, cwd: str, tool_alias: str = "", *, may_wait: bool = True) -> None:
        self.tool = tool
        self.may_wait = may_wait
        """Whether a check may wait for a process; if not, it raises `NeedsThread`."""
        self.tool_alias = tool_alias or tool
        """Another name of the tool, by which rules may name it; by default the same."""
        self.has_command = False
        self.leaves_out: dict[str, None] | None = None
        """Globs of files that a search has to leave out; `None` if the tool cannot leave any out."""
        self.may_leave_out: dict[str, None] = {}
        """Globs of files because of which a search in a command is blocked, and which it could leave out."""
        self.agent = agent or MAIN_AGENT
        self.cwd = cwd
        self.paths = PathResolver(cwd)
        self.checks: list[RuleCheck] = []
        self.subjects: list[tuple[int, str]] = []
        self.warnings: list[str] = []
        self.unknowns: list[str] = []
        """What is only known when the call runs, each as text for the user."""
        self.rules_at_risk: list[str] = []
        """The rules that the unknown parts of the call may break."""
        self.changed_folders: dict[str, None] = {}
        """The folders that the call changes, or in which it changes files."""
        self.changes: list[FileChange] = []
        """What the call changes. Not complete if a rule has blocked it: checking ends there."""

    def start_subject(self, subject: str) -> None:
        """Record the file or command that the following checks are about."""
        self.subjects.append((len(self.checks), subject))

    def in_folder(self, folder: str) -> _InFolder:
        """Return a context manager in which `cwd` and `paths` are those of another folder, relative to `cwd`."""
        return _InFolder(self, folder)

    def ask_about_policies(self, errors: Sequence[Diagnostic], *, reads_matter: bool) -> None:
        """Add a question for each broken policy in a folder that the call changes.

        With `reads_matter`, also for each broken policy in a folder that the call reads as a whole.
        """
        if not errors:
            return
        folders = {**self.changed_folders, **(self.paths.whole_folders if reads_matter else {})}
        above = tuple(f"{folder.rstrip('/')}/" for folder in folders)
        for error in errors:
            if error.file.startswith(above):
                self.unknowns.append(f"the policy in {error.file.rpartition('/')[0]} cannot be read ({error})")

    def add_match(self, missed: RuleCheck, why: str, action: Literal["block", "warn"], message: str) -> str | None:
        """Record that a rule matched; return the message if it blocks, or `None` if it only warns.

        `missed` is the check to record if the rule does not match.
        """
        self.checks.append(replace(missed, matched=True, why=why))
        if action == "block":
            return message
        self.warnings.append(message)
        return None

    def result(
        self, blocked: str | None, unparsable: Literal["ask", "deny", "allow"], *, headless: bool = False
    ) -> GuardResult:
        """Return the result: a block wins over open questions; warnings are always shown to the user.

        `unparsable` is the answer to open questions. `headless`: no person can be asked, so the client denies instead.
        """
        output = NO_OPINION if blocked is None else HookOutput.deny(blocked)
        unknowns: tuple[str, ...] = ()
        if blocked is None and self.unknowns and unparsable != "allow":
            unknowns = tuple(dict.fromkeys(self.unknowns))
            output = self._unknown_output(unparsable, headless=headless)
        if self.warnings:
            output = output.with_system_message("\n".join(dict.fromkeys(self.warnings)))
        return GuardResult(output, tuple(self.checks), tuple(self.subjects), unknowns)

    def _unknown_output(self, unparsable: Literal["ask", "deny"], *, headless: bool) -> HookOutput:
        """Return the output for a call that cannot be checked completely: a question or a denial.

        The user sees the reason of a question, the agent its context. Only the agent sees the reason of a denial, or
        that of a question in a headless session.
        """
        advice = _COMMAND_ADVICE if self.has_command else _CALL_ADVICE
        question = self._question()
        if unparsable == "deny":
            return HookOutput.deny(f"{question} {advice}")
        if headless:
            return HookOutput.ask(f"{question} {_HEADLESS_NOTE} {advice}")
        return HookOutput.ask(question).with_context(f"{_ASKED} {advice}")

    def _question(self) -> str:
        what = "command" if self.has_command else "call"
        reasons = "; ".join(dict.fromkeys(self.unknowns))
        text = f"This {what} cannot be checked against the policy (preToolUse.bash.unparsable): {reasons}."
        if not self.rules_at_risk or "protects it" in reasons:
            return text
        return f"{text} It may touch what {' and '.join(dict.fromkeys(self.rules_at_risk))} protects."


_ASKED = "A person was asked about this call, because the guards cannot tell before it runs which files it touches."
_HEADLESS_NOTE = "A person should be asked, but this session runs without one, so it is denied."
_COMMAND_ADVICE = (
    "To need no question: name programs and files literally, without variables and substitutions; run one plain "
    "command at a time; change files with the tools for that, not with inline code; leave protected files out."
)
_CALL_ADVICE = "To need no question: name the files in the call, or use a tool whose arguments are known."
