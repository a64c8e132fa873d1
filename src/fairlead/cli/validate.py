"""`fairlead validate`: says everything that is wrong with a policy, or that nothing is."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.errors import UsageError
from fairlead.policy._file import find_layers, read_layer
from fairlead.policy._mistakes import Mistake, PolicyError
from fairlead.policy._types import Command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.policy._types import Layer, Policy

USAGE = """\
usage: fairlead validate [FILE|FOLDER] [--json]

Checks that file, or the files that hold in that folder (by default this one): the nearest policy upward, and the
user-wide one. Every mistake is a line on stderr: file:line:column: what is wrong; what would be right.

example:
  fairlead validate .fairlead.yaml

exit codes: 0 valid; 1 not, or there is no policy
"""


class Checked(msgspec.Struct, frozen=True):
    """A file that is valid, and how much it asks for."""

    file: str
    rules: int
    commands: int


class Result(msgspec.Struct, frozen=True):
    """What `--json` prints."""

    valid: bool
    files: tuple[Checked, ...] = ()
    mistakes: tuple[Mistake, ...] = ()


def run(args: Sequence[str]) -> int:
    """Check a policy and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    target, as_json = _options(args)
    result = _check(target)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        _show(result)
    return 0 if result.valid else 1


def _options(args: Sequence[str]) -> tuple[str, bool]:
    targets = [word for word in args if word != "--json"]
    unknown = next((word for word in targets if word.startswith("-")), None)
    if unknown is not None:
        raise UsageError(f"unknown option {unknown!r}; the only one is --json")
    if len(targets) > 1:
        raise UsageError(f"validate takes one file or folder, got {len(targets)}")
    return (targets[0] if targets else "."), "--json" in args


def _check(target: str) -> Result:
    try:
        layers = _layers(target)
    except PolicyError as error:
        return Result(valid=False, mistakes=error.mistakes)
    return Result(valid=True, files=tuple(map(_checked, layers)))


def _layers(target: str) -> Sequence[Layer]:
    if not os.path.isdir(target):  # noqa: PTH112 - pathlib costs an import
        if not os.path.lexists(target):
            raise PolicyError((Mistake(target, 0, 0, "no such file or folder; `fairlead init` writes a policy"),))
        return (read_layer(target),)
    layers = find_layers(target)
    if not layers:
        message = "no policy here or in the folders above; `fairlead init` writes one"
        raise PolicyError((Mistake(os.path.abspath(target), 0, 0, message),))  # noqa: PTH100 - likewise
    return layers


def _show(result: Result) -> None:
    for mistake in result.mistakes:
        print(mistake, file=sys.stderr)
    for checked in result.files:
        amount = f"{_plural(checked.rules, 'rule')}, {_plural(checked.commands, 'command')}"
        print(f"{checked.file}: valid: {amount}")


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _checked(layer: Layer) -> Checked:
    return Checked(layer.file, _rules(layer.policy), _commands(layer.policy))


def _rules(policy: Policy) -> int:
    tools, answers = policy.pre_tool_use, policy.permission_request
    lists: list[Sequence[Any]] = [
        tools.prevent_additions,
        tools.uneditable_files,
        tools.unreadable_files,
        tools.tool_usage_validation,
        policy.user_prompt_submit.context_rules,
    ]
    if answers is not None:
        lists += [answers.allow or [], answers.deny or []]
    return sum(map(len, lists))


def _commands(value: Any) -> int:
    """Count the commands in a policy, wherever they are."""
    if isinstance(value, Command):
        return 1
    if isinstance(value, msgspec.Struct):
        return sum(_commands(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return sum(map(_commands, value.values()))
    return sum(map(_commands, value)) if isinstance(value, list) else 0
