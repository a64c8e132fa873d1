"""The types of hook rules and of their problems, and the readers of their values. Knows no file format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.hooks._command import CommandHook
    from fairlead.hooks._manager import HookManager, Registration

METADATA_KEYS = frozenset({"$schema", "description"})
RULE_KEYS = frozenset({"matcher", "hooks"})

_UNSUPPORTED_KEYS = {
    "async": "not supported here: the event waits for the command",
    "asyncRewake": "not supported here: the event waits for the command",
    "once": "not supported here: the command runs for every such event",
}
"""Keys of the client that have no effect here → the warning about them."""

ACTION_KEYS = frozenset(
    {
        *("type", "hook_type", "command", "timeout", "timeout_secs", "args", "shell", "if"),
        *_UNSUPPORTED_KEYS,
        *("onFailure", "rewakeMessage", "rewakeSummary", "statusMessage"),  # for the client only
    }
)
SHORT_KEYS = ACTION_KEYS | {"matcher"}
ALL_KEYS = SHORT_KEYS | RULE_KEYS

_MAX_TIMEOUT = 1_000_000.0
"""Seconds. Some systems cannot wait much longer."""


class HookAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of a rule. Only the type `command` is run: by a shell, or directly if `args` is given."""

    hook_type: str = msgspec.field(name="type")
    command: str | None = None
    timeout: float | None = None
    """Seconds."""
    args: tuple[str, ...] | None = None
    shell: str | None = None
    condition: str | None = msgspec.field(name="if", default=None)
    """The tool calls that the action is for: `Bash(git *)`."""

    def to_hook_config(self, matcher: str | None = None) -> str | dict[str, Any] | None:
        """Return the short form for settings, a string or an object; `None` if there is no command to run."""
        if self.hook_type != "command" or self.command is None:
            return None
        options = {"timeout_secs": self.timeout, "matcher": matcher, "args": self.args, "shell": self.shell}
        options["if"] = self.condition
        options = {key: value for key, value in options.items() if value is not None}
        return {"command": self.command, **options} if options else self.command


class HookRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A matcher and its actions. All forms of rules in files are converted to this one."""

    matcher: str | None = None
    hooks: tuple[HookAction, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A problem in a rule file, with its location."""

    source: str
    """The file."""
    path: str
    """The path in the document: `hooks.PreToolUse[0].hooks[1].timeout`; `$` is the document itself."""
    message: str
    dropped: bool
    """Whether the entry is not registered. If it is, this is a warning."""
    event: HookEvent | None = None
    """The event of the section; for a misspelt name, the event with the most similar name."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.source}: {'' if self.path == '$' else f'{self.path}: '}{self.message}"


class Rules(msgspec.Struct, frozen=True):
    """The hooks of a file, in order, and its problems."""

    hooks: tuple[CommandHook, ...] = ()
    problems: tuple[Problem, ...] = ()

    def register(self, manager: HookManager) -> list[Registration]:
        """Register the hooks. A hook whose name is taken gets a number appended to it."""
        return [manager.register(_renamed(hook, free_name(hook.name, manager.has_hook))) for hook in self.hooks]


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return the name, with a number appended if it is taken: `lint`, `lint-2`, `lint-3`."""
    number, free = 1, name
    while is_taken(free):
        number += 1
        free = f"{name}-{number}"
    return free


def _renamed(hook: CommandHook, name: str) -> CommandHook:
    if hook.name == name:
        return hook
    from copy import copy

    hook = copy(hook)
    hook.name = name
    return hook


# -- forms and names -----------------------------------------------------------------------------------


def is_flat(document: Mapping[Any, object], source: str) -> bool:
    """Return whether a document has events at its top level. A plugin's may; settings without hooks do not."""
    return _file_name(source) == "hooks.json" or any(HookEvent.find(key) for key in document)


def is_named_map(section: Mapping[Any, object]) -> bool:
    """Return whether a section maps names to hooks, and is not a single entry.

    A single entry has a known key, and some values that are not objects.
    """
    return ALL_KEYS.isdisjoint(section) or all(isinstance(entry, Mapping) for entry in section.values())


def owner_prefix(source: str, plugin_root: str | None) -> str:
    """Return the prefix for the names of hooks: the plugin, skill or subagent that the file belongs to."""
    folder, _, file = source.rpartition("/")
    owners = [_file_name(plugin_root or "")]
    if file.lower().endswith(".md"):
        owners.append(_file_name(folder) if file == "SKILL.md" else file[: -len(".md")])
    return "".join(f"{name}:" for name in owners if name)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


# -- locations -----------------------------------------------------------------------------------------


class RuleLocation(msgspec.Struct, frozen=True):
    """A path in a document, with the event of its section."""

    path: str = ""
    event: HookEvent | None = None

    def __truediv__(self, step: str | int) -> RuleLocation:
        return RuleLocation(f"{self.path}{_shown(step)}".removeprefix("."), self.event)


class EntryError(Exception):
    """An entry that cannot be registered."""

    def __init__(self, at: RuleLocation, message: str) -> None:
        super().__init__(message)
        self.at = at


def _shown(step: str | int) -> str:
    if isinstance(step, str) and re.fullmatch(r"[\w$-]+", step):
        return f".{step}"
    return f"[{step!r}]"


# -- problems ------------------------------------------------------------------------------------------


class Reporter:
    """Collects the problems of one file."""

    def __init__(self, source: str) -> None:
        """Create a reporter without problems."""
        self.source = source
        self.problems: list[Problem] = []

    def report(self, at: RuleLocation, message: str, *, dropped: bool = True) -> None:
        """Add a problem. By default it says that its entry is dropped."""
        self.problems.append(Problem(self.source, at.path or "$", message, dropped, at.event))

    def warn(self, at: RuleLocation, message: str) -> None:
        """Add a problem whose entry is kept."""
        self.report(at, message, dropped=False)

    def warn_about_keys(self, entry: Mapping[Any, object], at: RuleLocation, known: frozenset[str]) -> None:
        """Warn about keys that have no effect, or another effect than in the client."""
        for key, value in entry.items():
            if not isinstance(key, str):
                self.warn(at, f"expected a string as key, got {type_of(key)}; ignored")
            elif key not in known:
                self.report(at / key, _unknown_key(key, known), dropped=key == "command")
            elif value and key in _UNSUPPORTED_KEYS:
                self.warn(at / key, _UNSUPPORTED_KEYS[key])
            elif value is None and key not in {"command", "hooks"}:
                self.warn(at / key, "null, treated as missing")

    def named_items(self, mapping: Mapping[Any, object], at: RuleLocation) -> Iterator[tuple[str, object]]:
        """Yield the items whose key is a valid name. YAML keys can also be numbers, dates or null."""
        for name, value in mapping.items():
            if not isinstance(name, str):
                self.report(at, f"expected a string as key, got {type_of(name)}")
            elif error := _text_error(name):
                self.report(at / name, f"the name {error}")
            else:
                yield name, value

    def aliased_value(
        self, entry: Mapping[Any, Any], at: RuleLocation, key: str, alias: str
    ) -> tuple[Any, RuleLocation]:
        """Return the value of a key, or of its alias, and its location."""
        if entry.get(key) is None:
            return entry.get(alias), at / alias
        if entry.get(alias) is not None:
            self.warn(at / alias, f"ignored: `{key}` is set too")
        return entry[key], at / key


# -- values --------------------------------------------------------------------------------------------


def read_command(value: object, at: RuleLocation) -> str:
    """Read a command line, a program or a shell."""
    command = read_string(value, at)
    if not command.strip():
        raise EntryError(at, "empty; expected a command")
    return command


def read_timeout(value: object, at: RuleLocation) -> float | None:
    """Read a number of seconds."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise EntryError(at, f"expected a number of seconds, got {type_of(value)}")
    if not value > 0:
        raise EntryError(at, "expected a number of seconds above 0")
    return float(min(value, _MAX_TIMEOUT))


def read_args(value: object, at: RuleLocation) -> tuple[str, ...] | None:
    """Read the arguments of a program that runs without a shell."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise EntryError(at, f"expected a list of strings, got {type_of(value)}")
    return tuple(read_string(arg, at / index) for index, arg in enumerate(value))


def read_string(value: object, at: RuleLocation) -> str:
    """Read a string that can be part of a command line."""
    if not isinstance(value, str):
        raise EntryError(at, f"expected a string, got {type_of(value)}")
    if error := _text_error(value):
        raise EntryError(at, error)
    return value


def _text_error(text: str) -> str | None:
    """Return the reason why a text cannot be part of a command line; `None` if it can."""
    if "\0" in text:
        return "contains a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains an unpaired surrogate"
    return None


# -- wording -------------------------------------------------------------------------------------------


def type_of(value: object) -> str:
    """Return the name of a value's type in JSON and YAML."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    other = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return names.get(type(value), other)


def unsupported_type(kind: object) -> str:
    """Return the message about an action whose type is not `command`."""
    if isinstance(kind, str):
        return f"type {kind!r} is not run by Fairlead, only 'command'"
    return f"expected a string, got {type_of(kind)}"


def _unknown_key(key: str, known: frozenset[str]) -> str:
    """Return the message about a key that is not valid at its location, with a suggestion."""
    if key in ALL_KEYS:
        return f"ignored: it belongs {'beside' if key == 'matcher' else 'in an entry of'} `hooks`"
    from difflib import get_close_matches

    similar = get_close_matches(key, sorted(known), n=1)
    return f"unknown key, ignored; did you mean `{similar[0]}`?" if similar else "unknown key, ignored"
