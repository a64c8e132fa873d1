"""`fairlead validate`: lists every mistake of a policy; if there is none, what the policy enforces."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.policy.deleted import deleted_policy
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.policy import (
    MAX_MISTAKES,
    Diagnostic,
    HookFileState,
    LoadedPolicy,
    PatternMatches,
    PolicyError,
    changed_meanings,
    deleted_file_warning,
    find_hints,
    find_layers_in_force,
    find_policy_files,
    hook_file_states,
    load_policy,
    matched_files,
    merge_layers,
    read_layer,
)
from fairlead.policy import Command as PolicyCommand
from fairlead.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy import Layer, Policy


_MAX_PATTERNS = 40
"""How many patterns the text lists. `--json` has all of them."""


class CheckedFile(msgspec.Struct, frozen=True):
    """A valid file, and how many rules, commands and hook files it has."""

    file: str
    rules: int
    commands: int
    hooks: int
    deleted: bool = False
    """Whether the file was deleted. Its last good version, which is counted here, still applies."""


class Result(msgspec.Struct, frozen=True):
    """The outcome, as `--json` prints it."""

    valid: bool
    files: tuple[CheckedFile, ...] = ()
    mistakes: tuple[Diagnostic, ...] = ()
    hints: tuple[Diagnostic, ...] = ()
    guards: tuple[str, ...] = ()
    """The settings of `preToolUse` that are on, by the files or by default. Lists of rules are not among them."""
    warnings: tuple[str, ...] = ()
    """Why events are decided by other versions of the files than the current ones."""
    patterns: tuple[PatternMatches, ...] = ()
    """How many files each pattern matches now."""
    changes: tuple[str, ...] = ()
    """What the files mean now, unlike in earlier versions of Fairlead, which read only the nearest file."""
    hooks: tuple[HookFileState, ...] = ()
    """The hook files, and whether they are trusted."""


def check(target: str) -> Result:
    """Check a policy file, or the files that apply in a folder. Mistakes are part of the result, and are not raised.

    A policy without mistakes is kept as the last good version.
    """
    try:
        checked = find_checked_layers(target)
        files = tuple(map(_checked, checked.layers))
        hints = tuple(hint for file in files if not file.deleted for hint in find_hints(file.file))
    except PolicyError as error:
        return Result(valid=False, mistakes=error.mistakes)
    return Result(
        valid=not all(file.deleted for file in files),
        files=files,
        hints=hints,
        guards=tuple(_guards(checked.layers)),
        warnings=tuple(dict.fromkeys((*checked.warnings, *_keep_last_good(target)))),
        patterns=matched_files(checked.layers, max_listed=0),
        changes=tuple(changed_meanings(checked.layers)) if os.path.isdir(target) else (),
        hooks=hook_file_states(checked.layers),
    )


def find_checked_layers(target: str) -> LoadedPolicy:
    """Return the policy of a file or, for a folder, the policies that apply in it, nearest first.

    Policies of deleted files are included, and warnings name these files. Raise `PolicyError` if there is no file, or
    if one is not valid.
    """
    if not os.path.isdir(target):
        if not os.path.lexists(target):
            raise PolicyError((_missing(target),))
        return LoadedPolicy((read_layer(target),))
    loaded = find_layers_in_force(target)
    if not loaded.layers:
        message = "no policy here or in the folders above; `fairlead init` writes one"
        raise PolicyError((Diagnostic(os.path.abspath(target), 0, 0, message),))
    return loaded


def _missing(target: str) -> Diagnostic:
    """Return what is wrong with a path that does not exist. It may be a deleted policy file that still applies."""
    file = os.path.abspath(target)
    if deleted_policy(os.path.dirname(file)) == file:
        return deleted_file_warning(file)
    return Diagnostic(target, 0, 0, "no such file or folder; `fairlead init` writes a policy")


def _keep_last_good(target: str) -> tuple[str, ...]:
    """Keep a valid policy as the last good version, as an event in its folder would. Return warnings about it.

    Do nothing, and return `()`, for a file that is not the nearest policy of its folder: an event would not load it.
    """
    folder = target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target))
    try:
        nearest = next((policy.file for policy in find_policy_files(folder)), None)
        if folder != target and nearest != os.path.abspath(target):
            return ()
        return load_policy(folder, validating=True).warnings
    except PolicyError as error:
        return tuple(map(str, error.mistakes))


# -- what is enforced ----------------------------------------------------------------------------------


def _checked(layer: Layer) -> CheckedFile:
    policy, is_deleted = layer.policy, not os.path.lexists(layer.file)
    return CheckedFile(layer.file, _rules(policy), _commands(policy), len(policy.hooks), is_deleted)


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
    """Return how many commands a policy, or a part of it, contains."""
    if isinstance(value, PolicyCommand):
        return 1
    if isinstance(value, msgspec.Struct):
        return sum(_commands(getattr(value, name)) for name in value.__struct_fields__)
    if isinstance(value, dict):
        return sum(map(_commands, value.values()))
    return sum(map(_commands, value)) if isinstance(value, list) else 0


def _guards(layers: Sequence[Layer]) -> Iterator[str]:
    """Yield the guards that are on and have no list of rules, and the value of `bash.unparsable`."""
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
    """Return whether the file is in the folder that it applies to. The user-wide file is not."""
    return os.path.dirname(os.path.abspath(layer.file)) == layer.folder.rstrip("/")


# -- text ----------------------------------------------------------------------------------------------


def to_text(result: Result) -> Iterator[str]:
    """Yield the valid files and what they enforce, for stdout."""
    for checked in result.files:
        amount = f"{_plural(checked.rules, 'rule')}, {_plural(checked.commands, 'command')}"
        hooks = f", {_plural(checked.hooks, 'hook file')}" if checked.hooks else ""
        state = "deleted, its last good version still applies" if checked.deleted else "valid"
        yield f"{checked.file}: {state}: {amount}{hooks}"
    if result.guards:
        yield f"in force besides the rules: {', '.join(result.guards)}"
    several = len({*(hook.policy for hook in result.hooks), *(pattern.policy for pattern in result.patterns)}) > 1
    for hook in result.hooks:
        where = f"{hook.policy}: " if several else ""
        yield printable(f"  {where}{hook.setting}  {hook.name}: {'; '.join(filter(None, (hook.state, hook.problem)))}")
    for pattern in result.patterns[:_MAX_PATTERNS]:
        where = f"{pattern.policy}: " if several else ""
        yield f"  {where}{pattern.setting}  {pattern.pattern}: {describe_count(pattern)}"
    if len(result.patterns) > _MAX_PATTERNS:
        yield f"  and {len(result.patterns) - _MAX_PATTERNS} more patterns, see --json"


def describe_count(pattern: PatternMatches) -> str:
    """Return in words how many files a pattern matches now, with a hint if it has one."""
    number = _plural(pattern.count, "file") if pattern.count else "no file"
    if not pattern.complete:
        number = f"{number} or more" if pattern.count else "no file among the first that were checked"
    return f"{number} now" + (f"; {pattern.hint}" if pattern.hint else "")


def to_error_text(result: Result) -> Iterator[str]:
    """Yield mistakes, hints and warnings, for stderr."""
    yield from map(str, result.mistakes)
    yield from (_marked(hint) for hint in result.hints)
    yield from result.warnings
    yield from (f"changed: {change}" for change in result.changes)
    if any(mistake.line for mistake in result.mistakes):
        more = "; there may be more" if len(result.mistakes) >= MAX_MISTAKES else ""
        yield f"{_plural(len(result.mistakes), 'mistake')}{more}"


def _marked(hint: Diagnostic) -> str:
    return str(msgspec.structs.replace(hint, message=f"hint: {hint.message}"))


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "validate",
    cls=Command,
    arguments=(
        ("FILE", "check this file alone, whatever its name"),
        ("FOLDER", "check the files that apply in this folder (default: the current one)"),
    ),
    examples=("fairlead validate", "fairlead validate .fairlead.yaml --json"),
    exit_codes=((0, "valid, perhaps with hints"), (1, "not valid, or there is no policy file")),
)
@click.argument("target", metavar="[FILE | FOLDER]", default=".", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, on stdout.")
def validate(*, target: str, as_json: bool) -> int:
    """Check a policy file and list every mistake.

    In a folder it checks all policy files upward and the user-wide one. Each mistake is a line on stderr:
    file:line:column, what is wrong, and what would be right. A hint is about an entry that is valid but may not do what
    you meant. With several files, lines with `changed:` say what differs from earlier versions, which read only the
    nearest file. Hook files are listed as trusted, untrusted, changed or missing; they are not loaded. A policy without
    mistakes is kept as the last good version, which applies if the file breaks later. Of a file that was deleted after
    it decided events, the last good version still applies: it is listed, with the command that ends this.
    """
    result = check(target)
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(result), indent=2).decode())
    else:
        for line in to_error_text(result):
            print(line, file=sys.stderr)
        print_lines(to_text(result))
    return 0 if result.valid else 1
