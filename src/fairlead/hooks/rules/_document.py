"""Reads the rules of a parsed document: of settings, a plugin, a skill or a subagent. Knows no file format.

An invalid entry is reported as a `Problem` with its location. All other entries are kept.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fairlead.errors import MatcherError, UnknownEventError
from fairlead.events import HookEvent
from fairlead.hooks._command import CommandHook
from fairlead.hooks._hook import DEFAULT_TIMEOUT
from fairlead.hooks._match import compile_matcher, is_tool_condition
from fairlead.hooks.rules._types import EntryError, HookAction, HookRule, Problem, RuleLocation, Rules, free_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_METADATA_KEYS = frozenset({"$schema", "description"})
_RULE_KEYS = frozenset({"matcher", "hooks"})

_UNSUPPORTED_KEYS = {
    "async": "not supported here: the event waits for the command",
    "asyncRewake": "not supported here: the event waits for the command",
    "once": "not supported here: the command runs for every such event",
}
"""By key of the client that has no effect here: the warning about it."""

_ACTION_KEYS = frozenset(
    {
        *("type", "hook_type", "command", "timeout", "timeout_secs", "args", "shell", "if"),
        *_UNSUPPORTED_KEYS,
        *("onFailure", "rewakeMessage", "rewakeSummary", "statusMessage"),  # for the client only
    }
)
_SHORT_KEYS = _ACTION_KEYS | {"matcher"}
_ALL_KEYS = _SHORT_KEYS | _RULE_KEYS

_MAX_TIMEOUT = 1_000_000.0
"""The maximum timeout in seconds. Some systems cannot wait much longer."""


def rules_from(document: object, source: str, *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Return the rules of a parsed document from the file `source`. Problems are returned in `problems`.

    `plugin_root` is the folder of the plugin that the rules belong to; `None` for no plugin. Commands get it in an
    environment variable, and the names of the hooks start with the name of the plugin.
    """
    root = None if plugin_root is None else os.path.abspath(plugin_root)
    reader = _Reader(source, root)
    reader.read_document(document)
    return Rules(tuple(reader.hooks), tuple(reader.problems.found))


class _Reader:
    """Reads one document, and collects its hooks in `hooks` and its problems in `problems`."""

    def __init__(self, source: str, plugin_root: str | None) -> None:
        self.problems = _Problems(source)
        self.hooks: list[CommandHook] = []
        self._env = {} if plugin_root is None else {_plugin_variable(): plugin_root}
        self._prefix = _owner_prefix(source, plugin_root)
        self._names: set[str] = set()
        self._unnamed: Counter[HookEvent] = Counter()

    def read_document(self, document: object) -> None:
        if not isinstance(document, Mapping):
            self.problems.report(RuleLocation(), f"expected an object, got {_type_of(document)}")
        elif "hooks" in document:
            self._read_events(document["hooks"], RuleLocation() / "hooks")
        elif _is_flat(document, self.problems.source):
            self._read_events({key: document[key] for key in document if key not in _METADATA_KEYS}, RuleLocation())

    def _read_events(self, events: object, at: RuleLocation) -> None:
        if not isinstance(events, Mapping):
            self.problems.report(at, f"expected an object with the names of events, got {_type_of(events)}")
            return
        for name, section in self.problems.named_items(events, at):
            try:
                event = HookEvent.parse(name)
            except UnknownEventError as error:
                self.problems.report(RuleLocation((at / name).path, HookEvent.nearest(name)), str(error))
            else:
                self._read_section(section, RuleLocation((at / name).path, event), event)

    def _read_section(self, section: object, at: RuleLocation, event: HookEvent) -> None:
        for name, entry, location in self._entries(section, at):
            try:
                rule = self._rule(entry, location, event)
            except EntryError as error:
                self.problems.report(error.at, str(error))
            else:
                for action in rule.hooks:
                    self._add(event, name, rule.matcher, action)

    def _entries(self, section: object, at: RuleLocation) -> Iterator[tuple[str, object, RuleLocation]]:
        """Yield each entry of a section as its name ("" if it has none), the entry, and its location."""
        if isinstance(section, list):
            yield from (("", entry, at / index) for index, entry in enumerate(section))
        elif isinstance(section, Mapping) and _is_named_map(section):
            yield from ((name, entry, at / name) for name, entry in self.problems.named_items(section, at))
        else:
            yield "", section, at

    def _rule(self, entry: object, at: RuleLocation, event: HookEvent) -> HookRule:
        if not isinstance(entry, Mapping):
            return HookRule(hooks=(self._action(entry, at, _SHORT_KEYS),))
        if "hooks" not in entry:
            action = self._action(entry, at, _SHORT_KEYS)
            return HookRule(self._matcher(entry, at, event), (action,))
        self.problems.warn_about_keys(entry, at, _RULE_KEYS)
        matcher = self._matcher(entry, at, event)
        return HookRule(matcher, tuple(self._actions(entry["hooks"], at / "hooks")))

    def _actions(self, actions: object, at: RuleLocation) -> Iterator[HookAction]:
        if not isinstance(actions, list):
            raise EntryError(at, f"expected a list, got {_type_of(actions)}")
        for index, action in enumerate(actions):
            try:
                yield self._action(action, at / index, _ACTION_KEYS)
            except EntryError as error:
                self.problems.report(error.at, str(error))

    def _action(self, action: object, at: RuleLocation, known: frozenset[str]) -> HookAction:
        if isinstance(action, str):
            return HookAction("command", _read_command(action, at))
        if not isinstance(action, Mapping):
            raise EntryError(at, f"expected a command or an object with `command`, got {_type_of(action)}")
        kind, location = self.problems.aliased_value(action, at, "type", "hook_type")
        if kind is not None and kind != "command":
            raise EntryError(location, _unsupported_type(kind))
        self.problems.warn_about_keys(action, at, known)
        if "command" not in action:
            raise EntryError(at, "missing `command`")
        shell = action.get("shell")
        return HookAction(
            "command",
            _read_command(action["command"], at / "command"),
            _read_timeout(*self.problems.aliased_value(action, at, "timeout", "timeout_secs")),
            _read_args(action.get("args"), at / "args"),
            None if shell is None else _read_command(shell, at / "shell"),
            self._condition(action, at / "if"),
        )

    def _condition(self, action: Mapping[Any, Any], at: RuleLocation) -> str | None:
        """Return the `if` of an action; `None` if it has none. Warn about an invalid one, and ignore it.

        A check that runs too often is safer than none.
        """
        value = action.get("if")
        if value is None or (isinstance(value, str) and is_tool_condition(value)):
            return value
        self.problems.warn(at, "expected a tool call as Bash(git *); ignored, so the command runs for every such event")
        return None

    def _matcher(self, entry: Mapping[Any, Any], at: RuleLocation, event: HookEvent) -> str | None:
        matcher, at = entry.get("matcher"), at / "matcher"
        if matcher is None:
            return None
        pattern = _read_string(matcher, at)
        try:
            accepts_all = compile_matcher(pattern) is None
        except MatcherError as error:
            raise EntryError(at, str(error)) from None
        if accepts_all:
            return None
        if event.type.subject_field is None:
            self.problems.warn(at, f"ignored, as in the client: {event.value} has nothing to match")
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


def _plugin_variable() -> str:
    from fairlead.clients import DEFAULT_CLIENT, client_named

    return client_named(DEFAULT_CLIENT).variables.plugin_root


# -- forms and names -----------------------------------------------------------------------------------


def _is_flat(document: Mapping[Any, object], source: str) -> bool:
    """Return whether the top-level keys of a document without `hooks` are to be read as events.

    They are if one of them is an event, or if the file is a `hooks.json`. Any other file configures no hooks.
    """
    return _file_name(source) == "hooks.json" or any(HookEvent.find(key) for key in document)


def _is_named_map(section: Mapping[Any, object]) -> bool:
    """Return whether a section maps names to hooks, and is not a single entry.

    A single entry has a known key, and at least one value that is not an object.
    """
    return _ALL_KEYS.isdisjoint(section) or all(isinstance(entry, Mapping) for entry in section.values())


def _owner_prefix(source: str, plugin_root: str | None) -> str:
    """Return the prefix for the names of hooks: the plugin, and the skill or subagent, that the file belongs to.

    Examples are `tools:`, `review:` and `tools:review:`; "" if the file belongs to none.
    """
    folder, _, file = source.rpartition("/")
    owners = [_file_name(plugin_root or "")]
    if file.lower().endswith(".md"):
        owners.append(_file_name(folder) if file == "SKILL.md" else file[: -len(".md")])
    return "".join(f"{name}:" for name in owners if name)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


# -- problems ------------------------------------------------------------------------------------------


class _Problems:
    """Collects the problems of one file."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.found: list[Problem] = []

    def report(self, at: RuleLocation, message: str, *, dropped: bool = True) -> None:
        """Add a problem. `dropped` says whether its entry is left out."""
        self.found.append(Problem(self.source, at.path or "$", message, dropped, at.event))

    def warn(self, at: RuleLocation, message: str) -> None:
        """Add a problem whose entry is kept."""
        self.report(at, message, dropped=False)

    def warn_about_keys(self, entry: Mapping[Any, object], at: RuleLocation, known: frozenset[str]) -> None:
        """Warn about keys that have no effect, or another effect than in the client.

        `known` are the keys that have an effect at this location.
        """
        for key, value in entry.items():
            if not isinstance(key, str):
                self.warn(at, f"expected a string as key, got {_type_of(key)}; ignored")
            elif key not in known:
                self.report(at / key, _unknown_key(key, known), dropped=key == "command")
            elif value and key in _UNSUPPORTED_KEYS:
                self.warn(at / key, _UNSUPPORTED_KEYS[key])
            elif value is None and key not in {"command", "hooks"}:
                self.warn(at / key, "null, treated as missing")

    def named_items(self, mapping: Mapping[Any, object], at: RuleLocation) -> Iterator[tuple[str, object]]:
        """Yield the items whose key is a valid name; report the others. YAML keys can be numbers or null, too."""
        for name, value in mapping.items():
            if not isinstance(name, str):
                self.report(at, f"expected a string as key, got {_type_of(name)}")
            elif error := _text_error(name):
                self.report(at / name, f"the name {error}")
            else:
                yield name, value

    def aliased_value(
        self, entry: Mapping[Any, Any], at: RuleLocation, key: str, alias: str
    ) -> tuple[Any, RuleLocation]:
        """Return the value of a key, or else of its alias, and its location. If both are set, warn about the alias."""
        if entry.get(key) is None:
            return entry.get(alias), at / alias
        if entry.get(alias) is not None:
            self.warn(at / alias, f"ignored: `{key}` is set too")
        return entry[key], at / key


# -- values --------------------------------------------------------------------------------------------


def _read_command(value: object, at: RuleLocation) -> str:
    """Return a command line, a program or a shell. Raise `EntryError` if it is no string, or blank."""
    command = _read_string(value, at)
    if not command.strip():
        raise EntryError(at, "empty; expected a command")
    return command


def _read_timeout(value: object, at: RuleLocation) -> float | None:
    """Return a timeout, at most `_MAX_TIMEOUT`; `None` for null. Raise `EntryError` unless it is a number above 0."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise EntryError(at, f"expected a number of seconds, got {_type_of(value)}")
    if not value > 0:
        raise EntryError(at, "expected a number of seconds above 0")
    return float(min(value, _MAX_TIMEOUT))


def _read_args(value: object, at: RuleLocation) -> tuple[str, ...] | None:
    """Return the arguments of a program that runs without a shell; `None` for null.

    Raise `EntryError` if the value is not a list of strings.
    """
    if value is None:
        return None
    if not isinstance(value, list):
        raise EntryError(at, f"expected a list of strings, got {_type_of(value)}")
    return tuple(_read_string(arg, at / index) for index, arg in enumerate(value))


def _read_string(value: object, at: RuleLocation) -> str:
    """Return a value that can be part of a command line. Raise `EntryError` if it is not such a string."""
    if not isinstance(value, str):
        raise EntryError(at, f"expected a string, got {_type_of(value)}")
    if error := _text_error(value):
        raise EntryError(at, error)
    return value


def _text_error(text: str) -> str | None:
    """Return why a text cannot be part of a command line; `None` if it can."""
    if "\0" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains an unpaired surrogate"
    return None


# -- wording -------------------------------------------------------------------------------------------


def _type_of(value: object) -> str:
    """Return the name of a value's type in JSON and YAML."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    other = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return names.get(type(value), other)


def _unsupported_type(kind: object) -> str:
    """Return the message about an action whose type is not `command`."""
    if isinstance(kind, str):
        return f"type {kind!r} is not run by Fairlead, only 'command'"
    return f"expected a string, got {_type_of(kind)}"


def _unknown_key(key: str, known: frozenset[str]) -> str:
    """Return the message about a key that is not one of the `known` ones at its location, maybe with a suggestion."""
    if key in _ALL_KEYS:
        return f"ignored: it belongs {'beside' if key == 'matcher' else 'in an entry of'} `hooks`"
    from difflib import get_close_matches

    similar = get_close_matches(key, sorted(known), n=1)
    return f"unknown key, ignored; did you mean `{similar[0]}`?" if similar else "unknown key, ignored"
