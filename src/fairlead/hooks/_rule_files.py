"""Reads rules from files: settings, a plugin's `hooks.json`, the frontmatter of skills and subagents, YAML.

An invalid entry is reported as a `Problem` with its location. All other entries are kept.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.errors import MatcherError, UnknownEventError
from fairlead.events import HookEvent, decode_json
from fairlead.hooks._command import CommandHook
from fairlead.hooks._hook import DEFAULT_TIMEOUT
from fairlead.hooks._match import compile_matcher, is_tool_condition
from fairlead.hooks._rules import (
    ACTION_KEYS,
    METADATA_KEYS,
    RULE_KEYS,
    SHORT_KEYS,
    EntryError,
    HookAction,
    HookRule,
    Problem,
    Reporter,
    RuleLocation,
    Rules,
    free_name,
    is_flat,
    is_named_map,
    owner_prefix,
    read_args,
    read_command,
    read_string,
    read_timeout,
    type_of,
    unsupported_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import yaml

_MAX_BYTES = 4 * 1024 * 1024
_MAX_VALUES = 100_000
_MAX_DEPTH = 100
_HOOKS_KEY = re.compile(r"""hooks["']?\s*:""")


def load_rules(path: str | os.PathLike[str], *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Read the rules of a file. Problems are returned in `problems`, never raised.

    A `.json` file contains settings, or is a plugin's `hooks.json`. A `.md` file has YAML frontmatter. A `.yaml` or
    `.yml` file has a key `hooks`. `plugin_root` is explained at `rules_from`.
    """
    source = os.fspath(path)
    try:
        document = _read_file(source)
    except EntryError as error:
        return Rules(problems=(Problem(source, "$", str(error), dropped=True),))
    return rules_from(document, source, plugin_root=plugin_root)


def rules_from(document: object, source: str, *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Read the rules of a parsed document, from the file `source`.

    `plugin_root` is the folder of the plugin that the rules belong to. Commands get it in an environment variable, and
    the names of the hooks start with the name of the plugin.
    """
    root = None if plugin_root is None else os.path.abspath(plugin_root)
    reader = _Reader(source, root)
    reader.read_document(document)
    return Rules(tuple(reader.hooks), tuple(reader.problems))


def _plugin_variable() -> str:
    from fairlead.clients import DEFAULT_CLIENT, client_named

    return client_named(DEFAULT_CLIENT).variables.plugin_root


# -- from a document to hooks --------------------------------------------------------------------------


class _Reader(Reporter):
    """Reads one document and collects its hooks and problems."""

    def __init__(self, source: str, plugin_root: str | None) -> None:
        super().__init__(source)
        self.hooks: list[CommandHook] = []
        self._env = {} if plugin_root is None else {_plugin_variable(): plugin_root}
        self._prefix = owner_prefix(source, plugin_root)
        self._names: set[str] = set()
        self._unnamed: Counter[HookEvent] = Counter()

    def read_document(self, document: object) -> None:
        if not isinstance(document, Mapping):
            self.report(RuleLocation(), f"expected an object, got {type_of(document)}")
        elif "hooks" in document:
            self._read_events(document["hooks"], RuleLocation() / "hooks")
        elif is_flat(document, self.source):
            self._read_events({key: document[key] for key in document if key not in METADATA_KEYS}, RuleLocation())

    def _read_events(self, events: object, at: RuleLocation) -> None:
        if not isinstance(events, Mapping):
            self.report(at, f"expected an object with the names of events, got {type_of(events)}")
            return
        for name, section in self.named_items(events, at):
            try:
                event = HookEvent.parse(name)
            except UnknownEventError as error:
                self.report(RuleLocation((at / name).path, HookEvent.nearest(name)), str(error))
            else:
                self._read_section(section, RuleLocation((at / name).path, event), event)

    def _read_section(self, section: object, at: RuleLocation, event: HookEvent) -> None:
        for name, entry, location in self._entries(section, at):
            try:
                rule = self._rule(entry, location, event)
            except EntryError as error:
                self.report(error.at, str(error))
            else:
                for action in rule.hooks:
                    self._add(event, name, rule.matcher, action)

    def _entries(self, section: object, at: RuleLocation) -> Iterator[tuple[str, object, RuleLocation]]:
        """Yield each entry with its name, "" if it has none, and its location."""
        if isinstance(section, list):
            yield from (("", entry, at / index) for index, entry in enumerate(section))
        elif isinstance(section, Mapping) and is_named_map(section):
            yield from ((name, entry, at / name) for name, entry in self.named_items(section, at))
        else:
            yield "", section, at

    def _rule(self, entry: object, at: RuleLocation, event: HookEvent) -> HookRule:
        if not isinstance(entry, Mapping):
            return HookRule(hooks=(self._action(entry, at, SHORT_KEYS),))
        if "hooks" not in entry:
            action = self._action(entry, at, SHORT_KEYS)
            return HookRule(self._matcher(entry, at, event), (action,))
        self.warn_about_keys(entry, at, RULE_KEYS)
        matcher = self._matcher(entry, at, event)
        return HookRule(matcher, tuple(self._actions(entry["hooks"], at / "hooks")))

    def _actions(self, actions: object, at: RuleLocation) -> Iterator[HookAction]:
        if not isinstance(actions, list):
            raise EntryError(at, f"expected a list, got {type_of(actions)}")
        for index, action in enumerate(actions):
            try:
                yield self._action(action, at / index, ACTION_KEYS)
            except EntryError as error:
                self.report(error.at, str(error))

    def _action(self, action: object, at: RuleLocation, known: frozenset[str]) -> HookAction:
        if isinstance(action, str):
            return HookAction("command", read_command(action, at))
        if not isinstance(action, Mapping):
            raise EntryError(at, f"expected a command or an object with `command`, got {type_of(action)}")
        kind, location = self.aliased_value(action, at, "type", "hook_type")
        if kind is not None and kind != "command":
            raise EntryError(location, unsupported_type(kind))
        self.warn_about_keys(action, at, known)
        if "command" not in action:
            raise EntryError(at, "missing `command`")
        shell = action.get("shell")
        return HookAction(
            "command",
            read_command(action["command"], at / "command"),
            read_timeout(*self.aliased_value(action, at, "timeout", "timeout_secs")),
            read_args(action.get("args"), at / "args"),
            None if shell is None else read_command(shell, at / "shell"),
            self._condition(action, at / "if"),
        )

    def _condition(self, action: Mapping[Any, Any], at: RuleLocation) -> str | None:
        """Read the `if` of an action. An invalid one is ignored: a check that runs too often is safer than none."""
        value = action.get("if")
        if value is None or (isinstance(value, str) and is_tool_condition(value)):
            return value
        self.warn(at, "expected a tool call as Bash(git *); ignored, so the command runs for every such event")
        return None

    def _matcher(self, entry: Mapping[Any, Any], at: RuleLocation, event: HookEvent) -> str | None:
        matcher, at = entry.get("matcher"), at / "matcher"
        if matcher is None:
            return None
        pattern = read_string(matcher, at)
        try:
            accepts_all = compile_matcher(pattern) is None
        except MatcherError as error:
            raise EntryError(at, str(error)) from None
        if accepts_all:
            return None
        if event.type.subject_field is None:
            self.warn(at, f"ignored, as in the client: {event.value} has nothing to match")
            return None
        return pattern

    def _add(self, event: HookEvent, name: str, matcher: str | None, action: HookAction) -> None:
        if not name.strip():
            name = f"{event.snake.replace('_', '-')}-{self._unnamed[event]}"
            self._unnamed[event] += 1
        name = free_name(f"{self._prefix}{name}", self._names.__contains__)
        self._names.add(name)
        hook = CommandHook(
            name,
            action.command or "",
            (event,),
            matcher=matcher,
            timeout=action.timeout or DEFAULT_TIMEOUT,
            args=action.args,
            shell=action.shell,
            condition=action.condition,
            env=self._env,
        )
        self.hooks.append(hook)


# -- from a file to a document -------------------------------------------------------------------------


def _read_file(source: str) -> object:
    suffix = os.path.splitext(source)[1].lower()
    text = _read_text_file(source)
    if not text.strip():
        return {}
    if suffix == ".json":
        return _parse_json(text)
    if suffix == ".md":
        return _parse_frontmatter(text)
    if suffix in {".yaml", ".yml"}:
        return _hooks_only(_parse_yaml(text))
    raise EntryError(RuleLocation(), f"expected a file named .json, .md, .yaml or .yml, not {suffix!r}")


def _read_text_file(source: str) -> str:
    try:
        with open(source, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        raise EntryError(RuleLocation(), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise EntryError(RuleLocation(), f"larger than {_MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise EntryError(RuleLocation(), "not valid UTF-8") from None


def _parse_json(text: str) -> object:
    try:
        return decode_json(text)
    except RecursionError:
        raise EntryError(RuleLocation(), "nested too deeply") from None
    except ValueError as error:
        raise EntryError(RuleLocation(), _json_error(text, error)) from None


def _json_error(text: str, error: ValueError) -> str:
    """Return the message about invalid JSON, with line and column, which only the slower parser reports."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as detail:
        return f"not valid JSON at {detail.lineno}:{detail.colno}: {detail.msg}"
    except (ValueError, RecursionError):
        pass
    return f"not valid JSON: {error}"


def _parse_frontmatter(text: str) -> object:
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        return {}
    for number, line in enumerate(lines):
        if line.rstrip() == "---":
            block = "\n".join(["", *lines[:number]])  # the empty line keeps the line numbers correct
            # Most skills have no hooks, and the client accepts descriptions that are not valid YAML.
            return _hooks_only(_parse_yaml(block)) if _HOOKS_KEY.search(block) else {}
    raise EntryError(RuleLocation(), "the frontmatter opened in line 1 has no closing line ---")


def _hooks_only(document: object) -> object:
    """Return only the key `hooks` of a document."""
    if document is None:
        return {}
    if isinstance(document, Mapping):
        return {"hooks": document["hooks"]} if "hooks" in document else {}
    return document


def _parse_yaml(text: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_size(yaml.parse(text, loader))
        return yaml.load(text, loader)  # noqa: S506 - both loaders are safe ones
    except EntryError:
        raise
    except yaml.MarkedYAMLError as error:
        raise EntryError(RuleLocation(), f"not valid YAML{_yaml_position(error)}: {error.problem}") from None
    except Exception as error:  # for a date like 2024-99-99 PyYAML raises other errors
        raise EntryError(RuleLocation(), f"not valid YAML: {' '.join(str(error).split())}") from None


def _yaml_position(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return "" if mark is None else f" at {mark.line + 1}:{mark.column + 1}"


def _check_size(events: Iterable[yaml.Event]) -> None:
    """Raise if loading would exhaust stack or memory: the C loader recurses without limit, and aliases multiply."""
    import yaml

    sizes = [0]  # of the open collections
    anchors: list[str | None] = [None]
    known: dict[str | None, int] = {}
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            sizes.append(1)
            anchors.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            known[anchors.pop()] = size = sizes.pop()
            sizes[-1] += size
        elif isinstance(event, yaml.AliasEvent) and event.anchor in anchors:
            raise EntryError(RuleLocation(), f"the alias *{event.anchor} is inside the value that it repeats")
        else:
            sizes[-1] += known.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(sizes) > _MAX_DEPTH:
            raise EntryError(RuleLocation(), "nested too deeply")
        if sizes[-1] > _MAX_VALUES:
            raise EntryError(
                RuleLocation(), f"contains more than {_MAX_VALUES} values, including those that aliases repeat"
            )
