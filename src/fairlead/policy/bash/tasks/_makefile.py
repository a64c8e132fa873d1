"""Makefiles: the recipes of a target and of its prerequisites, with simple variables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash.tasks._types import TaskCommand, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.bash.tasks._types import ReadFile

_VARIABLE: Final = re.compile(r"(?:(?:export|override|unexport)\s+)*([\w.-]+)\s*(::?=|\?=|\+=|!=|=)\s*(.*)")
_RULE: Final = re.compile(r"([^:=#\t][^:=#]*?)\s*::?(?!=)\s*([^=;]*)(?:;(.*))?$")
_INCLUDE: Final = re.compile(r"-?s?include\s+(.+)")
_REFERENCE: Final = re.compile(r"\$(?:\(([^()$]*)\)|\{([^{}$]*)\}|(\$)|([@<^*?+%\w]))")
_SKIPPED: Final = ("ifeq", "ifneq", "ifdef", "ifndef", "else", "endif", "#", "vpath", "endef")
_MAX_INCLUDES: Final = 8
_MAX_ROUNDS: Final = 10
_MAX_LENGTH: Final = 16 * 1024
_UNKNOWN: Final = "${MAKE_FUNCTION}"
"""A variable that no shell has. It replaces a value that is only known when make runs."""


class _Rule(NamedTuple):
    prerequisites: list[str]
    recipe: list[str]


class _Makefile:
    """The rules and variables of a Makefile. Both branches of a condition are read."""

    def __init__(self, read_file: ReadFile) -> None:
        self.variables: dict[str, str] = {"MAKE": "make", "RM": "rm -f", "CURDIR": ".", "SHELL": "sh"}
        self.rules: dict[str, list[_Rule]] = {}
        self.first: str | None = None
        self._fixed: set[str] = set()
        self._read_file = read_file
        self._includes = _MAX_INCLUDES

    def override(self, name: str, value: str) -> None:
        """Set a variable as the command line of make does: assignments in the file do not change it."""
        self.variables[name] = value
        self._fixed.add(name)

    def parse(self, text: str) -> None:
        """Parse the text of a Makefile."""
        current: list[_Rule] = []
        for line in text.replace("\\\r\n", "\\\n").replace("\\\n", "\\\0").splitlines():
            if line.startswith("\t"):
                for rule in current:
                    rule.recipe.append(line[1:].replace("\\\0", "\\\n"))
                continue
            plain = " ".join(line.replace("\\\0", " ").split())  # the expressions are slow on long runs of blanks
            if plain and not plain.startswith(_SKIPPED):
                current = self._line(plain, current)

    def _line(self, line: str, current: list[_Rule]) -> list[_Rule]:
        if match := _INCLUDE.fullmatch(line):
            self._include(match[1])
        elif match := _VARIABLE.fullmatch(line):
            self._assign(*match.groups())
        elif match := _RULE.fullmatch(line):
            return self._rule(*match.groups())
        return current

    def _include(self, names: str) -> None:
        for name in self.expand(names).split():
            self._includes -= 1
            text = self._read_file(name) if self._includes >= 0 else None
            if text is not None:
                self.parse(text)

    def _assign(self, name: str, sign: str, value: str) -> None:
        value = value.partition(" #")[0].rstrip()
        if name in self._fixed or (sign == "?=" and name in self.variables):
            return
        if sign == "+=":
            value = f"{self.variables.get(name, '')} {value}"
        elif sign == "!=":
            value = f"$(shell {value})"
        self.variables[name] = value[:_MAX_LENGTH]

    def _rule(self, targets: str, prerequisites: str, recipe: str | None) -> list[_Rule]:
        needs = [word for word in self.expand(prerequisites).split() if word != "|"]
        rules = []
        for target in self.expand(targets).split():
            rule = _Rule(needs, [recipe.strip()] if recipe else [])
            self.rules.setdefault(target, []).append(rule)
            rules.append(rule)
            if self.first is None and not target.startswith(".") and "%" not in target:
                self.first = target
        return rules

    def expand(self, text: str, automatic: dict[str, str] | None = None) -> str:
        """Return a text with references to variables replaced; by `_UNKNOWN`, if a value is only known when make runs.

        `automatic`: the values of `$@`, `$<` and the like, by their names without the dollar.
        """
        automatic = automatic or {}

        def value(match: re.Match[str]) -> str:
            name = match[1] or match[2] or match[4] or ""
            if match[3]:
                return "\0"
            if name.startswith("shell "):
                return f"\0({name[len('shell ') :]})"
            if name in automatic:
                return automatic[name]
            return self.variables.get(name, "" if name.isidentifier() else _UNKNOWN.replace("$", "\0"))

        for _ in range(_MAX_ROUNDS):
            replaced = _REFERENCE.sub(value, text)[:_MAX_LENGTH]
            if replaced == text:
                break
            text = replaced
        return text.replace("\0", "$")

    def needs(self, target: str) -> list[str]:
        """Return the prerequisites of a target."""
        return [need for rule in self._rules_of(target) for need in rule.prerequisites]

    def commands(self, target: str) -> Iterator[TaskCommand]:
        """Yield the commands for a target. Each line of its recipe runs in its own shell."""
        for rule in self._rules_of(target):
            first = rule.prerequisites[0] if rule.prerequisites else ""
            automatic = {"@": target, "<": first, "^": " ".join(rule.prerequisites), "*": target.rpartition(".")[0]}
            for line in rule.recipe:
                text = self.expand(line, automatic).lstrip("@-+ \t")
                if text:
                    yield TaskCommand(text)

    def _rules_of(self, target: str) -> list[_Rule]:
        exact = self.rules.get(target)
        if exact is not None:
            return exact
        patterns = [(name, rules) for name, rules in self.rules.items() if "%" in name]
        for name, rules in patterns:
            before, _, after = name.partition("%")
            if target.startswith(before) and target.endswith(after) and len(target) >= len(name) - 1:
                stem = target[len(before) : len(target) - len(after)]
                return [_Rule([need.replace("%", stem) for need in rule.prerequisites], rule.recipe) for rule in rules]
        return []


def make_commands(text: str, args: list[str], read_file: ReadFile) -> Iterator[TaskCommand]:
    """Yield the commands of the targets that the arguments name, or of the default target."""
    makefile = _Makefile(read_file)
    for name, equals, value in (arg.partition("=") for arg in args):
        if equals:
            makefile.override(name.rstrip(":?+"), value)
    makefile.parse(text)
    goals = [arg for arg in args if "=" not in arg]
    default = makefile.variables.get(".DEFAULT_GOAL") or makefile.first
    for target in in_order(goals or ([default] if default else []), makefile.needs):
        yield from makefile.commands(target)
