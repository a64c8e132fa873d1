"""Validates `hooks` in Claude Code's settings, so that an install never writes settings that the client would skip.

The rules are from the schema of client 2.1.325. For an invalid hook, 2.1.325 ignores the hook, and 2.1.197 ignores the
whole file: then other gates in it would be open without a message. Both accept unknown keys and events.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from fairlead.clients._json_text import JsonTextError, Node, position
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude.settings._events import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Check = Callable[[Any], bool]
    Fault = tuple[Node, str, str]


_URL = re.compile(r"https?://[^/?#\s]|(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_nonempty(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_seconds(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_string_map(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_is_text, value.values()))


def _is_url(value: Any) -> bool:
    return isinstance(value, str) and _URL.match(value) is not None


def _is_shell(value: Any) -> bool:
    return value in ("bash", "powershell")


def _is_failure_mode(value: Any) -> bool:
    return value in ("continue", "block")


_EXPECTED: dict[Check, str] = {
    _is_text: "a string",
    _is_nonempty: "a string that is not empty",
    _is_flag: "true or false",
    _is_seconds: "a number of seconds above 0",
    _are_texts: "a list of strings",
    _is_object: "an object",
    _is_string_map: "an object of strings",
    _is_url: "a URL",
    _is_shell: '"bash" or "powershell"',
    _is_failure_mode: '"continue" or "block"',
}
_ANY: dict[str, Check] = {"if": _is_text, "timeout": _is_seconds, "statusMessage": _is_text, "once": _is_flag}
_TYPES: dict[str, tuple[dict[str, Check], dict[str, Check]]] = {
    "command": (
        {"command": _is_text},
        {
            "args": _are_texts,
            "shell": _is_shell,
            "onFailure": _is_failure_mode,
            "async": _is_flag,
            "asyncRewake": _is_flag,
            "rewakeMessage": _is_nonempty,
            "rewakeSummary": _is_nonempty,
        },
    ),
    "prompt": ({"prompt": _is_text}, {"model": _is_text, "continueOnBlock": _is_flag}),
    "agent": ({"prompt": _is_text}, {"model": _is_text}),
    "http": (
        {"url": _is_url},
        {"headers": _is_string_map, "allowedEnvVars": _are_texts, "onFailure": _is_failure_mode},
    ),
    "mcp_tool": ({"server": _is_text, "tool": _is_text}, {"input": _is_object}),
}
"""Type of a hook → its required keys, and its optional keys besides `_ANY`."""


def check(text: str, root: Node) -> None:
    """Raise `SettingsError` if the client would skip the settings or a part of them.

    Raise `JsonTextError` for a duplicate key, because then they cannot be edited safely.
    """
    if root.kind != "object":
        raise SettingsError(
            f"{position(text, root.start)}: the settings are not an object; the client skips the whole file"
        )
    check_keys(text, root)
    hooks = root.member("hooks")
    if hooks is None or hooks.value() is None:
        return
    faults = [f"{position(text, node.start)}: {path}: {what}" for node, path, what in _faults(hooks)]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise SettingsError(
            f"{faults[0]}{more}; the client does not accept this, and may skip the whole file with all its hooks: "
            f"correct it first"
        )


def check_keys(text: str, root: Node) -> None:
    """Raise `JsonTextError` if a key occurs twice in an object that we may edit: which value counts is undefined."""
    if root.keys.count("hooks") > 1:
        raise JsonTextError(_duplicate(text, root, "hooks"))
    for node in _containers(root.member("hooks")):
        if key := node.duplicate_key():
            raise JsonTextError(_duplicate(text, node, key))


def _duplicate(text: str, node: Node, key: str) -> str:
    second = node.starts[len(node.keys) - 1 - node.keys[::-1].index(key)]
    return f"{position(text, second)}: the key {key!r} is here twice; remove one"


def _containers(hooks: Node | None) -> Iterator[Node]:
    """Yield every object that we may edit."""
    if hooks is None or hooks.kind != "object":
        return
    yield hooks
    for event in hooks.items:
        for entry in event.items if event.kind == "array" else ():
            if entry.kind == "object":
                yield entry
                inner = entry.member("hooks")
                yield from (hook for hook in (inner.items if inner else ()) if hook.kind == "object")


def _faults(hooks: Node) -> Iterator[Fault]:
    if hooks.kind != "object":
        yield hooks, "hooks", f"expected an object, got {_described(hooks)}"
        return
    for event, entries in zip(hooks.keys, hooks.items, strict=True):
        if event not in EVENTS:
            continue  # only the client knows what this event may contain
        if entries.kind != "array":
            yield entries, f"hooks.{event}", f"expected a list, got {_described(entries)}"
            continue
        for index, entry in enumerate(entries.items):
            yield from _entry_faults(entry, f"hooks.{event}[{index}]")


def _entry_faults(entry: Node, path: str) -> Iterator[Fault]:
    if entry.kind != "object":
        yield entry, path, f"expected an object, got {_described(entry)}"
        return
    matcher, hooks = entry.member("matcher"), entry.member("hooks")
    if matcher is not None and not _is_text(matcher.plain):
        yield matcher, f"{path}.matcher", f"expected a string, got {_described(matcher)}"
    if hooks is None or hooks.kind != "array":
        yield hooks or entry, f"{path}.hooks", f"expected a list, got {_described(hooks) if hooks else 'nothing'}"
        return
    for index, hook in enumerate(hooks.items):
        yield from _hook_faults(hook, f"{path}.hooks[{index}]")


def _hook_faults(hook: Node, path: str) -> Iterator[Fault]:
    kind = hook.member("type")
    if hook.kind != "object":
        yield hook, path, f"expected an object, got {_described(hook)}"
        return
    if kind is None or kind.plain not in _TYPES:
        expected = ", ".join(_TYPES)
        yield kind or hook, f"{path}.type", f"expected one of {expected}; got {_described(kind) if kind else 'nothing'}"
        return
    required, allowed = _TYPES[kind.plain]
    for key, is_right in {**required, **allowed, **_ANY}.items():
        value = hook.member(key)
        if value is None and key in required:
            yield hook, f"{path}.{key}", f"expected {_EXPECTED[is_right]}, got nothing"
        elif value is not None and not is_right(value.value()):
            yield value, f"{path}.{key}", f"expected {_EXPECTED[is_right]}, got {_described(value)}"


def _described(node: Node) -> str:
    """Return a short description of a value for messages."""
    if node.kind != "plain":
        return {"object": "an object", "array": "a list"}[node.kind]
    return {True: "true", False: "false"}[node.plain] if isinstance(node.plain, bool) else _plain(node.plain)


def _plain(value: Any) -> str:
    if value is None:
        return "null"
    return f"the text {value[:40]!r}" if isinstance(value, str) else f"the number {value}"
