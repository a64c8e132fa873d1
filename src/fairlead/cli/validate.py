"""`fairlead validate`: says everything that is wrong with a policy, or that nothing is, and what holds then."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.errors import UsageError
from fairlead.policy import (
    MAX_MISTAKES,
    Command,
    Diagnostic,
    PolicyError,
    find_hints,
    find_layers,
    find_policy_files,
    load_policy,
    merge_layers,
    read_layer,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy import Layer, Policy

USAGE = """\
usage: fairlead validate [FILE | FOLDER] [--json]

Checks that file, or the files that hold in that folder (by default this one): the nearest policy upward, and the
user-wide one. Every mistake is a line on stderr: file:line:column: what is wrong; what would be right. A hint is about
an entry that is valid, but may not do what you meant. A policy without mistakes is kept as the last good version,
which holds if the file breaks later.

  FILE      check this file alone, whatever its name
  FOLDER    check what holds in this folder
  --json    print the result as JSON, on stdout

example:
  fairlead validate .fairlead.yaml

exit codes: 0 valid, perhaps with hints; 1 not valid, or there is no policy
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
    mistakes: tuple[Diagnostic, ...] = ()
    hints: tuple[Diagnostic, ...] = ()
    guards: tuple[str, ...] = ()
    """The single settings of `preToolUse` that are in force, by the files or by default."""
    warnings: tuple[str, ...] = ()
    """What keeps the files from being what holds for an event."""


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
        hints = tuple(hint for layer in layers for hint in find_hints(layer.file))
    except PolicyError as error:
        return Result(valid=False, mistakes=error.mistakes)
    return Result(
        valid=True,
        files=tuple(map(_checked, layers)),
        hints=hints,
        guards=tuple(_guards(layers)),
        warnings=_kept(target),
    )


def _layers(target: str) -> Sequence[Layer]:
    if not os.path.isdir(target):
        if not os.path.lexists(target):
            raise PolicyError((Diagnostic(target, 0, 0, "no such file or folder; `fairlead init` writes a policy"),))
        return (read_layer(target),)
    layers = find_layers(target)
    if not layers:
        message = "no policy here or in the folders above; `fairlead init` writes one"
        raise PolicyError((Diagnostic(os.path.abspath(target), 0, 0, message),))
    return layers


def _kept(target: str) -> tuple[str, ...]:
    """Keep what is valid as the last good version, as an event in that folder would; say what prevents it.

    Only what an event would load by itself is kept, so that nobody gains by this what the next event does not give.
    """
    folder = target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target))
    try:
        nearest = next((file for file, _ in find_policy_files(folder)), None)
        if folder != target and nearest != os.path.abspath(target):
            return ()
        return load_policy(folder, validating=True).warnings
    except PolicyError as error:
        return tuple(map(str, error.mistakes))


# -- what is in force ----------------------------------------------------------------------------------


def _checked(layer: Layer) -> Checked:
    return Checked(layer.file, _rules(layer.policy), _commands(layer.policy))


def _rules(policy: Policy) -> int:
    tools, answers = policy.pre_tool_use, policy.permission_request
    lists: list[Sequence[Any]] = [
        tools.prevent_additions,
        tools.uneditable_files,
        tools.unreadable_files,
        tools.tool_usage_validation,
        policy.subagent_start.deny,
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


def _guards(layers: Sequence[Layer]) -> Iterator[str]:
    """Name the guards that no list of rules holds: most are on unless the file says otherwise."""
    tools = merge_layers(layers).pre_tool_use
    switches = {
        "protectOwnFiles": tools.protect_own_files,
        "preventRootAdditions": tools.prevent_root_additions and _has_root(layers[0]),
        "preventGeneratedFileEdits": tools.prevent_generated_file_edits,
        "preventUpdateGitIgnored": tools.prevent_update_git_ignored,
    }
    yield from (name for name, is_on in switches.items() if is_on)
    yield f"bash.unparsable: {tools.bash.unparsable}"


def _has_root(layer: Layer) -> bool:
    """Tell whether the file lies in the folder it speaks of; the user-wide one does not."""
    return os.path.dirname(os.path.abspath(layer.file)) == layer.folder.rstrip("/")


# -- what is shown -------------------------------------------------------------------------------------


def _show(result: Result) -> None:
    for mistake in result.mistakes:
        print(mistake, file=sys.stderr)
    for hint in result.hints:
        print(_marked(hint), file=sys.stderr)
    for warning in result.warnings:
        print(warning, file=sys.stderr)
    if any(mistake.line for mistake in result.mistakes):
        more = "; there may be more" if len(result.mistakes) >= MAX_MISTAKES else ""
        print(f"{_plural(len(result.mistakes), 'mistake')}{more}", file=sys.stderr)
    for checked in result.files:
        amount = f"{_plural(checked.rules, 'rule')}, {_plural(checked.commands, 'command')}"
        print(f"{checked.file}: valid: {amount}")
    if result.guards:
        print(f"in force beside the rules: {', '.join(result.guards)}")


def _marked(hint: Diagnostic) -> str:
    return str(msgspec.structs.replace(hint, message=f"hint: {hint.message}"))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
