"""`fairlead visualize`: shows each rule on tool calls, and the files that it matches now."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.policy.validate import describe_count, find_checked_layers
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.errors import UsageError
from fairlead.policy import matched_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy import Layer, PatternMatches

_SHOWN = 5
"""How many files of a rule are shown without `--show-matches`."""
_PATTERN_LISTS = ("uneditableFiles", "unreadableFiles", "preventAdditions")
_SWITCHES = {
    "preventRootAdditions": "new files in the folder of the policy are blocked",
    "preventGeneratedFileEdits": "changes to files that are marked as generated are blocked",
    "preventUpdateGitIgnored": "changes to files that git ignores are blocked",
    "protectOwnFiles": "changes to the policy, the client's settings and Fairlead's own files are blocked",
}
RULES = (*_PATTERN_LISTS, "toolUsageValidation", *_SWITCHES)


class ShownRule(msgspec.Struct, frozen=True):
    """A rule, and what it matches, as `--json` prints it."""

    setting: str
    policy: str
    rule: str
    """The rule in words."""
    matches: str = ""
    """How many files it matches now, in words; empty for a rule without a file pattern."""
    count: int | None = None
    """How many files it matches now; `None` for a rule without a file pattern."""
    files: tuple[str, ...] = ()
    """The first of the matched files."""


def shown_rules(layers: Sequence[Layer], only: str | None) -> Iterator[ShownRule]:
    """Yield the rules of all layers, or only those named `only`, with the files that they match now."""
    matched = {(matches.policy, matches.setting): matches for matches in matched_files(layers)}
    for layer in layers:
        for name in RULES if only is None else (only,):
            for rule in _rules(layer, name):
                matches = matched.get((layer.file, rule.setting))
                yield rule if matches is None else _with_files(rule, matches)


def _with_files(rule: ShownRule, matches: PatternMatches) -> ShownRule:
    return msgspec.structs.replace(rule, matches=describe_count(matches), count=matches.count, files=matches.files)


def _rules(layer: Layer, name: str) -> Iterator[ShownRule]:
    section: dict[str, Any] = msgspec.to_builtins(layer.policy.pre_tool_use)
    value, setting = section[name], f"preToolUse.{name}"
    if name in _SWITCHES:
        if value:
            yield ShownRule(setting, layer.file, _SWITCHES[name])
        return
    for index, entry in enumerate(value):
        words = _tool_rule(entry) if name == "toolUsageValidation" else _file_rule(entry)
        yield ShownRule(f"{setting}[{index}]", layer.file, words)


def _file_rule(entry: str | dict[str, Any]) -> str:
    if isinstance(entry, str):
        return entry
    return f"{entry['pattern']}{_details(entry, action='block', agent='*')}"


def _tool_rule(entry: dict[str, Any]) -> str:
    command, pattern = entry.get("commandPattern"), entry["pattern"]
    subject = f" with the command {command}" if command else ""
    subject += f" on {pattern}" if pattern != "*" else ""
    return f"{entry['action']} {entry['tool']}{subject}" + _details(entry, matchMode="full", agent="*")


def _details(entry: dict[str, Any], **defaults: str) -> str:
    """Return the values of an entry that differ from `defaults`, such as ` (agent: coder)`; "" if none does."""
    others = [f"{key}: {entry[key]}" for key, default in defaults.items() if entry.get(key, default) != default]
    return f" ({', '.join(others)})" if others else ""


# -- text ----------------------------------------------------------------------------------------------


def to_text(rules: Sequence[ShownRule], *, show_all: bool) -> Iterator[str]:
    """Yield the rules below their policy file, each with five of its `files` or, with `show_all`, all."""
    policy = ""
    for rule in rules:
        if rule.policy != policy:
            policy = rule.policy
            yield policy
        yield f"  {rule.setting}  {rule.rule}" + (f": {rule.matches}" if rule.matches else "")
        shown = rule.files if show_all else rule.files[:_SHOWN]
        yield from (f"      {_relative(file, os.path.dirname(os.path.abspath(policy)))}" for file in shown)
        if rule.count is not None and rule.count > len(shown) > 0:
            more = rule.count - len(shown)
            yield f"      and {more} more" + ("" if show_all else "; --show-matches lists them")


def _relative(file: str, folder: str) -> str:
    return file.removeprefix(f"{folder.rstrip('/')}/")


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "visualize",
    cls=Command,
    arguments=(
        ("FILE", "show the rules of this file alone"),
        ("FOLDER", "show the rules that apply in this folder (default: the current one)"),
    ),
    examples=("fairlead visualize", "fairlead visualize --rule uneditableFiles --show-matches"),
    exit_codes=((0, "shown"), (1, "the policy is not valid, or there is none")),
)
@click.argument("target", metavar="[FILE | FOLDER]", default=".", type=click.Path())
@click.option("-r", "--rule", metavar="NAME", help=f"Show this rule alone: {', '.join(RULES)}.")
@click.option("--show-matches", is_flag=True, help="List all files that a rule matches, not only the first.")
@click.option("--json", "as_json", is_flag=True, help="Print the rules as JSON.")
def visualize(*, target: str, rule: str | None, show_matches: bool, as_json: bool) -> int:
    """Show which files each rule of a policy matches now.

    It finds files as the guards do: with the pattern rules of .gitignore, and without `.git`. If there are very many
    files, it reads only the first ones, and says so. For what a rule does to a tool call, see fairlead explain.
    """
    if rule is not None and rule not in RULES:
        raise UsageError(f"no such rule: {rule}; the rules are {', '.join(RULES)}")
    checked = find_checked_layers(target)
    for warning in checked.warnings:
        print(warning, file=sys.stderr)
    rules = tuple(shown_rules(checked.layers, rule))
    if as_json:
        print(msgspec.json.format(msgspec.json.encode(rules), indent=2).decode())
    else:
        print_lines(to_text(rules, show_all=show_matches))
    return 0
