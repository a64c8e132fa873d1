"""The rules of `toolUsageValidation`: on a tool by its file, on Bash by each command of a call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.policy._globs import any_glob_test, glob_test
from fairlead.policy.guards._verdict import RuleCheck
from fairlead.policy.paths._gitignore import Pattern
from fairlead.policy.paths._resolve import Base

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlead.policy.config._types import Layer, ToolRule
    from fairlead.policy.guards._verdict import Evaluation
    from fairlead.policy.paths._resolve import Target

_MAX_KNOWN = 256
_MAX_WORDS = 200
"""No glob on the first words of a command is longer."""


class Spoken:
    """The texts of a command that rules match. `loose` also has the program without its folder, which only denies."""

    __slots__ = ("exact", "loose")

    def __init__(self, text: str, words: Sequence[str] = (), program: str = "") -> None:
        self.exact: tuple[str, ...] = (text,) if words else (text.strip(), " ".join(text.split()))
        renamed = words and words[0] != program
        self.loose = (*self.exact, " ".join((program, *words[1:]))) if renamed else self.exact


class ToolRules:
    """All rules in order, those of the nearest file first."""

    def __init__(self, layers: Iterable[Layer]) -> None:
        self._rules = tuple(rule for layer in layers for rule in _of_layer(layer))
        self._known: dict[tuple[str, str, str], _Chosen] = {}

    def concern_files(self, case: Evaluation) -> bool:
        """Whether any rule is about the files that a tool is used on, and not only about commands."""
        return bool(self._of(case).on_files)

    def check_files(self, case: Evaluation, targets: Sequence[Target], *, is_command: bool = False) -> str | None:
        """Check the files that a tool is used on; a tool without any is matched by `*` alone."""
        chosen = self._of(case)
        rules = chosen.on_files if is_command else chosen.with_files
        if not rules:
            return None
        for target in targets or (None,):
            able = rules if target else [rule for rule in rules if rule.pattern is None]
            if blocked := _judge(case, able, target, target.given if target else case.tool):
                return blocked
        return None

    def check_commands(self, case: Evaluation, commands: Sequence[Spoken], whole: str) -> str | None:
        """Check each command of a Bash call; if there are allow rules, each command must match one.

        The whole call is checked too, for globs on several commands: `*curl*|*sh`.
        """
        chosen = self._of(case)
        rules = chosen.on_commands
        if not rules or not whole.strip():
            return None
        said = Spoken(whole)
        if chosen.are_silent((*commands, said)):
            case.about(whole)
            case.looked += [rule.missed for rule in rules]
            return None
        for command in commands:
            if blocked := _judge(case, rules, command, command.exact[0]):
                return blocked
        forbidding = [rule for rule in rules if rule.action != "allow"]
        return _judge(case, forbidding, said, said.exact[0])

    def _of(self, case: Evaluation) -> _Chosen:
        key = case.tool, case.also, case.agent
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= _MAX_KNOWN:
                self._known.clear()
            known = self._known[key] = _Chosen(tuple(rule for rule in self._rules if rule.is_for(*key)))
        return known


class _Chosen:
    """The rules for one tool and agent."""

    __slots__ = ("_any", "on_commands", "on_files", "with_files")

    def __init__(self, rules: tuple[_Rule, ...]) -> None:
        self.on_files = tuple(rule for rule in rules if rule.command is None)
        self.with_files = tuple(rule for rule in rules if rule.command is None or rule.pattern)
        """Also those on a command and a file, which apply to tools whose command is not analysed."""
        self.on_commands = tuple(rule for rule in rules if rule.command is not None)
        plain = all(rule.action != "allow" and not rule.prefix for rule in self.on_commands)
        globs = [rule.rule.command_pattern or "*" for rule in self.on_commands]
        self._any = any_glob_test(globs) if plain and globs else None

    def are_silent(self, commands: Iterable[Spoken]) -> bool:
        """Return whether certainly no rule matches: one test, which is enough for nearly every command."""
        test = self._any
        return test is not None and not any(test(way) for command in commands for way in command.loose)


class _Rule:
    __slots__ = ("_agent", "_tool", "action", "command", "missed", "pattern", "prefix", "rule")

    def __init__(self, rule: ToolRule, at: int, layer: Layer, base: Base) -> None:
        self.rule = rule
        self.action = rule.action
        self.pattern = None if rule.pattern == "*" else Pattern(rule.pattern, base, loose=layer.is_conclaude)
        self.command = None if rule.command_pattern is None else glob_test(rule.command_pattern) or _any
        self.prefix = rule.match_mode == "prefix"
        self._tool, self._agent = glob_test(rule.tool), glob_test(rule.agent)
        where = f"preToolUse.toolUsageValidation[{at}]"
        why = f"{rule.action} rule, the pattern does not match"
        self.missed = RuleCheck(where, rule.command_pattern or rule.pattern, layer.file, matched=False, why=why)

    def is_for(self, tool: str, also: str, agent: str) -> bool:
        for_tool = self._tool is None or any(map(self._tool, (tool, also)))
        return bool(for_tool) and (self._agent is None or bool(self._agent(agent)))

    def matches(self, subject: Target | Spoken | None) -> bool:
        if isinstance(subject, Spoken):
            return self._speaks_of(subject)
        return self.pattern is None or (subject is not None and self.pattern.matches(subject))

    def _speaks_of(self, command: Spoken) -> bool:
        test = self.command or _any
        ways = command.exact if self.action == "allow" else command.loose
        return any(map(test, ways)) or (self.prefix and any(_starts(way, test) for way in ways))

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
        base = Base.at(layer.folder)
        yield from (_Rule(rule, at, layer, base) for at, rule in enumerate(rules))


def _judge(case: Evaluation, rules: Sequence[_Rule], subject: Target | Spoken | None, on: str) -> str | None:
    """Apply rules: the first that matches decides; if there are allow rules, one of them must match."""
    wanted: _Rule | None = None
    case.about(on)
    for rule in rules:
        if not rule.matches(subject):
            case.looked.append(rule.missed)
            if rule.action == "allow":
                wanted = wanted or rule
        elif rule.action == "allow":
            case.found(rule.missed, f"{on!r} is allowed", "block", "")
            return None
        else:
            blocked = case.found(rule.missed, f"{on!r} matches", rule.action, rule.message(case.agent, missed=False))
            if blocked is not None:
                return blocked
    if wanted is None:
        return None
    return case.found(wanted.missed, f"{on!r} is not allowed", "block", wanted.message(case.agent, missed=True))


def _starts(text: str, test: Callable[[str], object]) -> bool:
    words = text.split()[:_MAX_WORDS]
    return any(test(" ".join(words[:count])) for count in range(1, len(words) + 1))


def _any(_: str) -> bool:
    return True
