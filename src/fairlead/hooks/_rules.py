"""What a rule is, what can be wrong with one, and which values it takes. Knows no file and no form of document."""

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

ABOUT_THE_FILE = frozenset({"$schema", "description"})
RULE_KEYS = frozenset({"matcher", "hooks"})

_NOT_HONOURED = {
    "if": "not honoured here: the command runs at every event that the matcher accepts",
    "async": "not honoured here: the event waits for the command",
    "asyncRewake": "not honoured here: the event waits for the command",
    "once": "not honoured here: the command runs at every such event",
}
"""What the client does with a key and we do not → what happens instead."""

ACTION_KEYS = frozenset(
    {
        *("type", "hook_type", "command", "timeout", "timeout_secs", "args", "shell"),
        *_NOT_HONOURED,
        *("onFailure", "rewakeMessage", "rewakeSummary", "statusMessage"),  # the client's own affair
    }
)
SHORT_KEYS = ACTION_KEYS | {"matcher"}
ALL_KEYS = SHORT_KEYS | RULE_KEYS

_LONGEST = 1_000_000.0
"""Seconds. More is as good as for ever, and some systems cannot wait much longer than that."""


class HookAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a rule does. Only the type `command` is run: by a shell, or, if `args` is given, directly."""

    hook_type: str = msgspec.field(name="type")
    command: str | None = None
    timeout: float | None = None
    """Seconds."""
    args: tuple[str, ...] | None = None
    shell: str | None = None

    def to_hook_config(self, matcher: str | None = None) -> str | dict[str, Any] | None:
        """Give the short form that settings hold: a string or an object; `None` without a command to run."""
        if self.hook_type != "command" or self.command is None:
            return None
        wishes = {"timeout_secs": self.timeout, "matcher": matcher, "args": self.args, "shell": self.shell}
        given = {key: wish for key, wish in wishes.items() if wish is not None}
        return {"command": self.command, **given} if given else self.command


class HookRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """Actions, and which subjects they are for. Every form that a file may use comes down to this."""

    matcher: str | None = None
    hooks: tuple[HookAction, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """What is wrong in a file, and where."""

    source: str
    """The file."""
    path: str
    """The place in the document: `hooks.PreToolUse[0].hooks[1].timeout`; `$` is the document itself."""
    message: str
    dropped: bool
    """The entry is not registered; otherwise this is a remark, and nothing is lost."""
    event: HookEvent | None = None
    """The event in whose section it is, or that its section may have meant."""

    def __str__(self) -> str:
        """Say it in one line."""
        return f"{self.source}: {'' if self.path == '$' else f'{self.path}: '}{self.message}"


class Rules(msgspec.Struct, frozen=True):
    """What a file asks for, in its own order, and what is wrong with it."""

    hooks: tuple[CommandHook, ...] = ()
    problems: tuple[Problem, ...] = ()

    def register(self, manager: HookManager) -> list[Registration]:
        """Register the hooks. Where a name is taken, by another file perhaps, the later hook gets a number after it."""
        return [manager.register(_renamed(hook, free_name(hook.name, manager.has_hook))) for hook in self.hooks]


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Give the name, with a number after it if it is taken: `lint`, `lint-2`, `lint-3`."""
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
    """Tell a plugin's events without `hooks` around them from settings that have no hooks."""
    return _file_name(source) == "hooks.json" or any(HookEvent.find(key) for key in document)


def is_named_map(section: Mapping[Any, object]) -> bool:
    """Tell hooks by name from a single entry, which has a key we know and not only objects as values."""
    return ALL_KEYS.isdisjoint(section) or all(isinstance(entry, Mapping) for entry in section.values())


def owner_prefix(source: str, plugin_root: str | None) -> str:
    """Name the plugin, and the skill or subagent: what they bring is not the user's own."""
    folder, _, file = source.rpartition("/")
    owners = [_file_name(plugin_root or "")]
    if file.lower().endswith(".md"):
        owners.append(_file_name(folder) if file == "SKILL.md" else file[: -len(".md")])
    return "".join(f"{name}:" for name in owners if name)


def _file_name(path: str) -> str:
    return path.rpartition("/")[2]


# -- places --------------------------------------------------------------------------------------------


class Place(msgspec.Struct, frozen=True):
    """Where in a document we are, and in which event's section."""

    path: str = ""
    event: HookEvent | None = None

    def __truediv__(self, step: str | int) -> Place:
        return Place(f"{self.path}{_shown(step)}".removeprefix("."), self.event)


class Fault(Exception):
    """Why an entry cannot be registered."""

    def __init__(self, at: Place, message: str) -> None:
        super().__init__(message)
        self.at = at


def _shown(step: str | int) -> str:
    if isinstance(step, str) and re.fullmatch(r"[\w$-]+", step):
        return f".{step}"
    return f"[{step!r}]"


# -- problems ------------------------------------------------------------------------------------------


class Reporter:
    """Collects what is wrong in one file."""

    def __init__(self, source: str) -> None:
        """Start without a problem."""
        self.source = source
        self.problems: list[Problem] = []

    def report(self, at: Place, message: str, *, dropped: bool = True) -> None:
        """Note that an entry is dropped."""
        self.problems.append(Problem(self.source, at.path or "$", message, dropped, at.event))

    def remark(self, at: Place, message: str) -> None:
        """Note something that drops no entry."""
        self.report(at, message, dropped=False)

    def remark_on_keys(self, entry: Mapping[Any, object], at: Place, known: frozenset[str]) -> None:
        """Note the keys that have no effect, or not the one that the client gives them."""
        for key, value in entry.items():
            if not isinstance(key, str):
                self.remark(at, f"expected a string as key, got {type_of(key)}; ignored")
            elif key not in known:
                self.report(at / key, _unknown_key(key, known), dropped=key == "command")
            elif value and key in _NOT_HONOURED:
                self.remark(at / key, _NOT_HONOURED[key])
            elif value is None and key not in {"command", "hooks"}:
                self.remark(at / key, "null, as if left out")

    def named(self, mapping: Mapping[Any, object], at: Place) -> Iterator[tuple[str, object]]:
        """Give the items whose key can be a name: YAML has keys that are numbers, dates or null."""
        for name, value in mapping.items():
            if not isinstance(name, str):
                self.report(at, f"expected a string as key, got {type_of(name)}")
            elif flaw := _flaw_of(name):
                self.report(at / name, f"the name {flaw}")
            else:
                yield name, value

    def either(self, entry: Mapping[Any, Any], at: Place, key: str, alias: str) -> tuple[Any, Place]:
        """Give a value that goes by two names, and its place."""
        if entry.get(key) is None:
            return entry.get(alias), at / alias
        if entry.get(alias) is not None:
            self.remark(at / alias, f"ignored: `{key}` is given too")
        return entry[key], at / key


# -- values --------------------------------------------------------------------------------------------


def read_command(value: object, at: Place) -> str:
    """Read a command line, a program or a shell."""
    command = read_text(value, at)
    if not command.strip():
        raise Fault(at, "empty; expected a command")
    return command


def read_timeout(value: object, at: Place) -> float | None:
    """Read a number of seconds, whole or not."""
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise Fault(at, f"expected a number of seconds, got {type_of(value)}")
    if not value > 0:
        raise Fault(at, "expected a number of seconds above 0")
    return float(min(value, _LONGEST))


def read_args(value: object, at: Place) -> tuple[str, ...] | None:
    """Read the arguments of a program that is run without a shell."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise Fault(at, f"expected a list of strings, got {type_of(value)}")
    return tuple(read_text(arg, at / index) for index, arg in enumerate(value))


def read_text(value: object, at: Place) -> str:
    """Read a string that can be part of a command line."""
    if not isinstance(value, str):
        raise Fault(at, f"expected a string, got {type_of(value)}")
    if flaw := _flaw_of(value):
        raise Fault(at, flaw)
    return value


def _flaw_of(text: str) -> str | None:
    """Say what keeps a text from being part of a command line."""
    if "\0" in text:
        return "holds a NUL character"
    try:
        text.encode()
    except UnicodeEncodeError:
        return "holds half a surrogate pair"
    return None


# -- wording -------------------------------------------------------------------------------------------


def type_of(value: object) -> str:
    """Name a value's type as someone who writes JSON or YAML would."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    other = "a number" if isinstance(value, int | float) else f"a {type(value).__name__}"
    return names.get(type(value), other)


def other_type(kind: object) -> str:
    """Say why an action of another type is not run."""
    if isinstance(kind, str):
        return f"type {kind!r} is not run by Fairlead, only 'command'"
    return f"expected a string, got {type_of(kind)}"


def _unknown_key(key: str, known: frozenset[str]) -> str:
    """Say what becomes of a key that has no meaning where it stands, and which may have been meant."""
    if key in ALL_KEYS:
        return f"ignored: it belongs {'beside' if key == 'matcher' else 'in an entry of'} `hooks`"
    from difflib import get_close_matches

    near = get_close_matches(key, sorted(known), n=1)
    return f"unknown key, ignored; did you mean `{near[0]}`?" if near else "unknown key, ignored"
