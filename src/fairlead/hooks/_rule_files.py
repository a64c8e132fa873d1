"""Rules from files: settings, a plugin's `hooks.json`, the frontmatter of skills and subagents, YAML.

What cannot be understood becomes a `Problem` that says where it stands; it takes nothing else with it.
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
from fairlead.hooks._match import compile_matcher
from fairlead.hooks._rules import (
    ABOUT_THE_FILE,
    ACTION_KEYS,
    RULE_KEYS,
    SHORT_KEYS,
    Fault,
    HookAction,
    HookRule,
    Place,
    Problem,
    Reporter,
    Rules,
    free_name,
    is_flat,
    is_named_map,
    other_type,
    owner_prefix,
    read_args,
    read_command,
    read_text,
    read_timeout,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import yaml

_MAX_BYTES = 4 * 1024 * 1024
_MAX_VALUES = 100_000
_MAX_DEPTH = 100
_HOOKS_KEY = re.compile(r"""hooks["']?\s*:""")


def load_rules(path: str | os.PathLike[str], *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Read the rules of a file; what is wrong with it is in `problems`, never raised.

    `.json` is settings or a plugin's `hooks.json`, `.md` has YAML frontmatter, `.yaml` and `.yml` have a key `hooks`.
    `plugin_root` is as in `rules_from`.
    """
    source = os.fspath(path)
    try:
        document = _read_file(source)
    except Fault as fault:
        return Rules(problems=(Problem(source, "$", str(fault), dropped=True),))
    return rules_from(document, source, plugin_root=plugin_root)


def rules_from(document: object, source: str, *, plugin_root: str | os.PathLike[str] | None = None) -> Rules:
    """Read the rules of a parsed document, from the file `source`.

    `plugin_root` is the folder of the plugin that they belong to: commands get it as a variable, as
    the client gives it, and the hooks' names begin with the plugin's.
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
    """Reads one document from the outside in, and collects hooks and problems on the way."""

    def __init__(self, source: str, plugin_root: str | None) -> None:
        super().__init__(source)
        self.hooks: list[CommandHook] = []
        self._env = {} if plugin_root is None else {_plugin_variable(): plugin_root}
        self._prefix = owner_prefix(source, plugin_root)
        self._names: set[str] = set()
        self._unnamed: Counter[HookEvent] = Counter()

    def read_document(self, document: object) -> None:
        if not isinstance(document, Mapping):
            self.report(Place(), f"expected an object, got {type_of(document)}")
        elif "hooks" in document:
            self._read_events(document["hooks"], Place() / "hooks")
        elif is_flat(document, self.source):
            self._read_events({key: document[key] for key in document if key not in ABOUT_THE_FILE}, Place())

    def _read_events(self, events: object, at: Place) -> None:
        if not isinstance(events, Mapping):
            self.report(at, f"expected an object with the names of events, got {type_of(events)}")
            return
        for name, section in self.named(events, at):
            try:
                event = HookEvent.parse(name)
            except UnknownEventError as error:
                self.report(Place((at / name).path, HookEvent.nearest(name)), str(error))
            else:
                self._read_section(section, Place((at / name).path, event), event)

    def _read_section(self, section: object, at: Place, event: HookEvent) -> None:
        for name, entry, place in self._entries(section, at):
            try:
                rule = self._rule(entry, place, event)
            except Fault as fault:
                self.report(fault.at, str(fault))
            else:
                for action in rule.hooks:
                    self._add(event, name, rule.matcher, action)

    def _entries(self, section: object, at: Place) -> Iterator[tuple[str, object, Place]]:
        """Give every entry with its name, which is empty where it has none."""
        if isinstance(section, list):
            yield from (("", entry, at / index) for index, entry in enumerate(section))
        elif isinstance(section, Mapping) and is_named_map(section):
            yield from ((name, entry, at / name) for name, entry in self.named(section, at))
        else:
            yield "", section, at

    def _rule(self, entry: object, at: Place, event: HookEvent) -> HookRule:
        if not isinstance(entry, Mapping):
            return HookRule(hooks=(self._action(entry, at, SHORT_KEYS),))
        if "hooks" not in entry:
            action = self._action(entry, at, SHORT_KEYS)
            return HookRule(self._matcher(entry, at, event), (action,))
        self.remark_on_keys(entry, at, RULE_KEYS)
        matcher = self._matcher(entry, at, event)
        return HookRule(matcher, tuple(self._actions(entry["hooks"], at / "hooks")))

    def _actions(self, actions: object, at: Place) -> Iterator[HookAction]:
        if not isinstance(actions, list):
            raise Fault(at, f"expected a list, got {type_of(actions)}")
        for index, action in enumerate(actions):
            try:
                yield self._action(action, at / index, ACTION_KEYS)
            except Fault as fault:
                self.report(fault.at, str(fault))

    def _action(self, action: object, at: Place, known: frozenset[str]) -> HookAction:
        if isinstance(action, str):
            return HookAction("command", read_command(action, at))
        if not isinstance(action, Mapping):
            raise Fault(at, f"expected a command or an object with `command`, got {type_of(action)}")
        kind, place = self.either(action, at, "type", "hook_type")
        if kind is not None and kind != "command":
            raise Fault(place, other_type(kind))
        self.remark_on_keys(action, at, known)
        if "command" not in action:
            raise Fault(at, "missing `command`")
        shell = action.get("shell")
        return HookAction(
            "command",
            read_command(action["command"], at / "command"),
            read_timeout(*self.either(action, at, "timeout", "timeout_secs")),
            read_args(action.get("args"), at / "args"),
            None if shell is None else read_command(shell, at / "shell"),
        )

    def _matcher(self, entry: Mapping[Any, Any], at: Place, event: HookEvent) -> str | None:
        matcher, at = entry.get("matcher"), at / "matcher"
        if matcher is None:
            return None
        pattern = read_text(matcher, at)
        try:
            accepts_all = compile_matcher(pattern) is None
        except MatcherError as error:
            raise Fault(at, str(error)) from None
        if accepts_all:
            return None
        if event.type.subject_field is None:
            self.remark(at, f"ignored, as the client does: {event.value} has nothing to match")
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
            env=self._env,
        )
        self.hooks.append(hook)


# -- from a file to a document -------------------------------------------------------------------------


def _read_file(source: str) -> object:
    suffix = os.path.splitext(source)[1].lower()
    text = _read_text(source)
    if not text.strip():
        return {}
    if suffix == ".json":
        return _parse_json(text)
    if suffix == ".md":
        return _parse_frontmatter(text)
    if suffix in {".yaml", ".yml"}:
        return _hooks_alone(_parse_yaml(text))
    raise Fault(Place(), f"expected a file named .json, .md, .yaml or .yml, not {suffix!r}")


def _read_text(source: str) -> str:
    try:
        with open(source, "rb") as file:
            data = file.read(_MAX_BYTES + 1)
    except (OSError, ValueError) as error:  # a path that holds NUL is a ValueError
        raise Fault(Place(), f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MAX_BYTES:
        raise Fault(Place(), f"larger than the {_MAX_BYTES} bytes that are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Fault(Place(), "not valid UTF-8") from None


def _parse_json(text: str) -> object:
    try:
        return decode_json(text)
    except RecursionError:
        raise Fault(Place(), "nested too deeply") from None
    except ValueError as error:
        raise Fault(Place(), _json_mistake(text, error)) from None


def _json_mistake(text: str, error: ValueError) -> str:
    """Say what is wrong, with line and column, which only the slower parser knows."""
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as found:
        return f"not valid JSON at {found.lineno}:{found.colno}: {found.msg}"
    except (ValueError, RecursionError):
        pass
    return f"not valid JSON: {error}"


def _parse_frontmatter(text: str) -> object:
    first, *lines = text.split("\n")
    if first.rstrip() != "---":
        return {}
    for number, line in enumerate(lines):
        if line.rstrip() == "---":
            block = "\n".join(["", *lines[:number]])  # the empty line keeps the numbers of the lines right
            # Most skills have no hooks, and the descriptions of many are YAML to nobody but the client.
            return _hooks_alone(_parse_yaml(block)) if _HOOKS_KEY.search(block) else {}
    raise Fault(Place(), "the frontmatter that line 1 opens is not closed by a line ---")


def _hooks_alone(document: object) -> object:
    """Leave the keys out that are none of our business, whatever their names."""
    if document is None:
        return {}
    if isinstance(document, Mapping):
        return {"hooks": document["hooks"]} if "hooks" in document else {}
    return document


def _parse_yaml(text: str) -> object:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _refuse_bombs(yaml.parse(text, loader))
        return yaml.load(text, loader)  # noqa: S506 - both loaders are safe ones
    except Fault:
        raise
    except yaml.MarkedYAMLError as error:
        raise Fault(Place(), f"not valid YAML{_yaml_position(error)}: {error.problem}") from None
    except Exception as error:  # noqa: BLE001 - for a date like 2024-99-99 PyYAML raises whatever it trips over
        raise Fault(Place(), f"not valid YAML: {' '.join(str(error).split())}") from None


def _yaml_position(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark
    return "" if mark is None else f" at {mark.line + 1}:{mark.column + 1}"


def _refuse_bombs(events: Iterable[yaml.Event]) -> None:
    """Refuse what would exhaust stack or memory: the C loader's recursion has no bound, and aliases multiply."""
    import yaml

    sizes = [0]  # of the collections that are open
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
            raise Fault(Place(), f"the alias *{event.anchor} stands inside of what it repeats")
        else:
            sizes[-1] += known.get(event.anchor, 1) if isinstance(event, yaml.AliasEvent) else 1
        if len(sizes) > _MAX_DEPTH:
            raise Fault(Place(), "nested too deeply")
        if sizes[-1] > _MAX_VALUES:
            raise Fault(Place(), f"holds more than {_MAX_VALUES} values, with what its aliases repeat")
