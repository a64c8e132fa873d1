"""The rules of `toolUsageValidation`: on a tool by its file, on Bash by each command of a call."""

from __future__ import annotations

from fairlead.policy._globs import any_glob_test, glob_test
from fairlead.policy.guards._command_text import CommandText
from fairlead.policy.guards._evaluation import RuleCheck
from fairlead.policy.paths._gitignore import Pattern
from fairlead.policy.paths._resolve import BaseFolder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlead.policy.config._types import Layer, ToolRule
    from fairlead.policy.guards._evaluation import Evaluation
    from fairlead.policy.paths._resolve import ResolvedPath

_MAX_CACHED = 256
_MAX_WORDS = 200
"""The maximum number of words of a command that a rule on the first words is compared with."""


class ToolRules:
    """All rules in order, those of the nearest file first."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._rules = tuple(rule for layer in layers for rule in _of_layer(layer))
        self._cache: dict[tuple[str, str, str], _ApplicableRules] = {}

    def apply_to_files(self, evaluation: Evaluation) -> bool:
        """Return whether any rule is about the files that a tool is used on, and not only about commands."""
        return bool(self._rules_for(evaluation).on_files)

    def check_files(
        self, evaluation: Evaluation, targets: Sequence[ResolvedPath], *, is_command: bool = False
    ) -> str | None:
        """Return why a tool may not be used on its files; `None` if it may. Only `*` matches a tool without files.

        With `is_command`, rules that also have a pattern for commands are left to `check_commands`.
        """
        applicable = self._rules_for(evaluation)
        rules = applicable.on_files if is_command else applicable.with_files
        if not rules:
            return None
        for target in targets or (None,):
            usable = rules if target else [rule for rule in rules if rule.pattern is None]
            if blocked := _apply(evaluation, usable, target, target.given if target else evaluation.tool):
                return blocked
        return None

    def check_commands(
        self, evaluation: Evaluation, commands: Sequence[CommandText], whole: str, written: Sequence[str] = ()
    ) -> str | None:
        """Return why a Bash call is blocked; `None` if it is not. With allow rules, each command must match one.

        The whole call is checked too, for globs on several commands: `*curl*|*sh`. `written` are the files that
        redirections write, which an allow rule must name with its `>`.
        """
        applicable = self._rules_for(evaluation)
        rules = applicable.on_commands
        if not rules or not whole.strip():
            return None
        call_text = CommandText(whole)
        for command in commands:
            if applicable.may_name(command.program):
                command.add_moved_options()
        if applicable.match_nothing((*commands, call_text)):
            evaluation.start_subject(whole)
            evaluation.checks += applicable.missed
            return None
        denying = [rule for rule in rules if rule.action != "allow"]
        for command in commands:
            if blocked := _apply(evaluation, denying if command.implied else rules, command, command.exact[0]):
                return blocked
        return _apply(evaluation, denying, call_text, call_text.exact[0]) or (
            _check_redirects(evaluation, rules, call_text, written) if written else None
        )

    def _rules_for(self, evaluation: Evaluation) -> _ApplicableRules:
        key = evaluation.tool, evaluation.tool_alias, evaluation.agent
        cached = self._cache.get(key)
        if cached is None:
            if len(self._cache) >= _MAX_CACHED:
                self._cache.clear()
            cached = self._cache[key] = _ApplicableRules(tuple(rule for rule in self._rules if rule.is_for(*key)))
        return cached


class _ApplicableRules:
    """The rules that apply to one tool and agent."""

    __slots__ = ("_any", "_programs", "missed", "on_commands", "on_files", "with_files")

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self.on_files = tuple(rule for rule in rules if rule.command is None)
        self.with_files = tuple(rule for rule in rules if rule.command is None or rule.pattern)
        """The rules on files, and those on both a command and a file, for tools whose command is not analysed."""
        self.on_commands = tuple(rule for rule in rules if rule.command is not None)
        self.missed = [rule.missed for rule in self.on_commands]
        """The checks to record for a command that no rule matches."""
        plain = all(rule.action != "allow" and not rule.prefix for rule in self.on_commands)
        globs = [rule.rule.command_pattern or "*" for rule in self.on_commands]
        self._any = any_glob_test(globs) if plain and globs else None
        first = {glob.partition(" ")[0] for glob in globs}
        self._programs = None if any(c in word for word in first for c in "*?[") else first

    def may_name(self, program: str) -> bool:
        """Return whether the pattern of a rule may begin with the name of a program."""
        return self._programs is None or program in self._programs

    def match_nothing(self, commands: Iterable[CommandText]) -> bool:
        """Return `True` if certainly no rule matches any of the commands; `False` if each rule has to be tried."""
        test = self._any
        if test is None:
            return False
        for command in commands:
            for text in command.loose:
                if test(text):
                    return False
        return True


class _Rule:
    __slots__ = ("_agent", "_tool", "action", "command", "missed", "pattern", "prefix", "rule")

    def __init__(self, rule: ToolRule, index: int, layer: Layer, base: BaseFolder) -> None:
        self.rule = rule
        self.action = rule.action
        self.pattern = None if rule.pattern == "*" else Pattern(rule.pattern, base, loose=layer.is_conclaude)
        self.command = None if rule.command_pattern is None else glob_test(rule.command_pattern) or _any
        self.prefix = rule.match_mode == "prefix"
        self._tool, self._agent = glob_test(rule.tool), glob_test(rule.agent)
        where = f"preToolUse.toolUsageValidation[{index}]"
        why = f"{rule.action} rule, the pattern does not match"
        self.missed = RuleCheck(where, rule.command_pattern or rule.pattern, layer.file, matched=False, why=why)

    def is_for(self, tool: str, tool_alias: str, agent: str) -> bool:
        for_tool = self._tool is None or any(map(self._tool, (tool, tool_alias)))
        return bool(for_tool) and (self._agent is None or bool(self._agent(agent)))

    def matches(self, subject: ResolvedPath | CommandText | None) -> bool:
        if isinstance(subject, CommandText):
            return self._matches_command(subject)
        return self.pattern is None or (subject is not None and self.pattern.matches(subject))

    def _matches_command(self, command: CommandText) -> bool:
        test = self.command or _any
        texts = command.exact if self.action == "allow" else command.loose
        return any(map(test, texts)) or (self.prefix and any(_matches_prefix(text, test) for text in texts))

    def message(self, agent: str, *, missed: bool) -> str:
        scope = "" if self.rule.agent == "*" else f" (agent: {agent})"
        if self.rule.message is not None:
            return self.rule.message + scope
        if self.command is None:
            return f"Tool usage blocked by preToolUse.toolUsageValidation rule: {self.rule.pattern}{scope}"
        if missed:
            what = "Bash command blocked: does not match preToolUse.toolUsageValidation allow rule pattern"
        else:
            what = "Bash command blocked by preToolUse.toolUsageValidation rule"
        return f"{what}: {self.rule.command_pattern}{scope}"


def _of_layer(layer: Layer) -> Iterable[_Rule]:
    rules = layer.policy.pre_tool_use.tool_usage_validation
    if rules:
        base = BaseFolder.at(layer.folder)
        yield from (_Rule(rule, index, layer, base) for index, rule in enumerate(rules))


def _apply(
    evaluation: Evaluation, rules: Sequence[_Rule], subject: ResolvedPath | CommandText | None, subject_text: str
) -> str | None:
    """Return why rules block a subject; `None` if they do not.

    The first matching rule that allows or blocks decides. If there are allow rules, one of them must match.
    """
    unmatched_allow: _Rule | None = None
    evaluation.start_subject(subject_text)
    for rule in rules:
        if not rule.matches(subject):
            evaluation.checks.append(rule.missed)
            if rule.action == "allow":
                unmatched_allow = unmatched_allow or rule
        elif rule.action == "allow":
            evaluation.add_match(rule.missed, f"{subject_text!r} is allowed", "block", "")
            return None
        else:
            blocked = evaluation.add_match(
                rule.missed, f"{subject_text!r} matches", rule.action, rule.message(evaluation.agent, missed=False)
            )
            if blocked is not None:
                return blocked
    if unmatched_allow is None:
        return None
    return evaluation.add_match(
        unmatched_allow.missed,
        f"{subject_text!r} is not allowed",
        "block",
        unmatched_allow.message(evaluation.agent, missed=True),
    )


def _check_redirects(
    evaluation: Evaluation, rules: Sequence[_Rule], call: CommandText, written: Sequence[str]
) -> str | None:
    """Return why the files that redirections write are blocked; `None` if they are not.

    If there are allow rules, one with a `>` must match the whole call.
    """
    allowing = [rule for rule in rules if rule.action == "allow"]
    if not allowing or any(">" in (rule.rule.command_pattern or "") and rule.matches(call) for rule in allowing):
        return None
    why = f"the redirection to {written[0]!r} is not allowed"
    return evaluation.add_match(allowing[0].missed, why, "block", allowing[0].message(evaluation.agent, missed=True))


def _matches_prefix(text: str, test: Callable[[str], object]) -> bool:
    words = text.split()[:_MAX_WORDS]
    return any(test(" ".join(words[:count])) for count in range(1, len(words) + 1))


def _any(_: str) -> bool:
    return True
