"""Justfiles: the recipes of `just`, with their dependencies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash.tasks._types import TaskCommand, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

_RECIPE: Final = re.compile(
    r"@?([A-Za-z_][\w-]*)((?:\s+[$*+]?\w+(?:\s*=\s*(?:'[^']*'|\"[^\"]*\"|\S+))?)*)\s*:(?!=)\s*(.*)"
)
_VARIABLE: Final = re.compile(r"(?:export\s+)?([A-Za-z_][\w-]*)\s*:=\s*(.*)")
_ALIAS: Final = re.compile(r"alias\s+([\w-]+)\s*:=\s*([\w-]+)")
_LITERAL: Final = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_INTERPOLATION: Final = re.compile(r"\{\{\s*(.*?)\s*\}\}")
_MAX_LINE: Final = 2_000
_SHEBANG: Final = re.compile(r"#!\s*(?:\S*/)?(?:env\s+(?:-S\s+)?)?(?:\S*/)?([A-Za-z]+)")


class _Recipe(NamedTuple):
    parameters: list[str]
    needs: list[str]
    lines: list[str]


class _Justfile:
    def __init__(self, text: str) -> None:
        self.recipes: dict[str, _Recipe] = {}
        self.variables: dict[str, str] = {}
        self.first: str | None = None
        current: _Recipe | None = None
        for line in text.splitlines():
            if line[:1] in {" ", "\t"}:
                if current is not None:
                    current.lines.append(line.strip())
            elif line.strip():
                current = self._line(" ".join(line.split())[:_MAX_LINE])

    def _line(self, line: str) -> _Recipe | None:
        if match := _ALIAS.match(line):
            self.recipes[match[1]] = _Recipe([], [match[2]], [])
        elif match := _VARIABLE.match(line):
            literal = _LITERAL.fullmatch(match[2].strip())
            self.variables[match[1]] = (literal[1] or literal[2] or "") if literal else f"${{{match[1]}}}"
        elif match := _RECIPE.match(line):
            parameters = [word.lstrip("$*+").partition("=")[0] for word in match[2].split()]
            needs = re.findall(r"(?<![\w\"'])\(?([A-Za-z_][\w-]*)", match[3].replace("&&", " "))
            self.first = self.first or match[1]
            recipe = self.recipes[match[1]] = _Recipe(parameters, needs, [])
            return recipe
        return None

    def needs(self, name: str) -> list[str]:
        recipe = self.recipes.get(name)
        return recipe.needs if recipe else []

    def commands(self, name: str, args: list[str]) -> Iterator[TaskCommand]:
        recipe = self.recipes.get(name)
        if recipe is None or not recipe.lines:
            return
        values = {**self.variables, **dict(zip(recipe.parameters, args, strict=False))}
        lines = [_INTERPOLATION.sub(lambda match: values.get(match[1], "${JUST_VALUE}"), line) for line in recipe.lines]
        interpreter = _SHEBANG.match(lines[0])
        if interpreter:
            name = interpreter[1]
            yield TaskCommand("\n".join(lines[1:]), None if name.endswith("sh") else name)
            return
        for line in lines:
            yield TaskCommand(line.lstrip("@-"))


def just_commands(text: str, args: list[str]) -> Iterator[TaskCommand]:
    """Yield the commands of the recipes that the arguments name, or of the first recipe."""
    justfile = _Justfile(text)
    for arg in args:
        name, equals, value = arg.partition("=")
        if equals:
            justfile.variables[name] = value
    words = [arg for arg in args if "=" not in arg]
    goals = [word for word in words if word in justfile.recipes]
    goals = goals or ([justfile.first] if justfile.first and not words else [])
    for name in in_order(goals, justfile.needs):
        yield from justfile.commands(name, words[words.index(name) + 1 :] if name in words else [])
