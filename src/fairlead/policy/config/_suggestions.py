"""Suggestions for wrong values and unknown keys: what was probably meant, and how to write it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec import inspect

from fairlead.policy.config import _types as t
from fairlead.policy.config._messages import MAX_QUOTED, describe_type, describe_value, format_path, shorten
from fairlead.policy.config._yaml_nodes import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.config._messages import Path
    from fairlead.policy.config._yaml_nodes import Node

_UNITS = {"timeout": "seconds", "grace": "seconds", "wait": "seconds"}
"""Key → the unit of its number."""
_BOOLEANS = {
    "yes": "true",
    "on": "true",
    "true": "true, without quotes",
    "no": "false",
    "off": "false",
    "false": "false, without quotes",
}
_SYNONYMS = (
    {"block", "deny", "forbid", "refuse", "reject", "prevent", "disallow"},
    {"allow", "permit", "approve", "accept", "pass"},
    {"warn", "warning"},
    {"ask", "confirm", "prompt"},
    {"full", "exact", "whole"},
    {"prefix", "starts", "startswith"},
)
_TIME = re.compile(r"(\d+) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_UNQUOTED = re.compile(r"[\w./~][\w./~ \-*?]*")
"""Text that needs no quotes in YAML, in any position."""


# -- values --------------------------------------------------------------------------------------------


def wrong_value(node: Node, kind: inspect.Type, path: Path) -> str:
    """Return the message about a value of the wrong type: the value, what was expected, and a suggestion."""
    where = format_path(path, " for ") or " as the policy"
    expected = describe_type(kind)
    if path and path[1] in _UNITS:
        expected = expected.replace("a whole number", f"a whole number of {_UNITS[path[1]]}", 1)
    return f"{describe_value(node)}{where}; expected {expected}{_suggestion(node, kind, path)}"


def _suggestion(node: Node, kind: inspect.Type, path: Path) -> str:
    if node.kind in {"list", "mapping"}:
        return _for_collection(node, kind, path)
    return next(filter(None, _for_scalar(node, kind, path)), "")


def _for_scalar(node: Node, kind: inspect.Type, path: Path) -> Iterator[str]:
    text = node.text.lower()
    if _accepts(kind, inspect.StrType) and node.kind in {"bool", "int", "float"}:
        yield f', so write "{shorten(node.text)}" in quotes'
    if _accepts(kind, inspect.BoolType) and node.kind == "text" and text in _BOOLEANS:
        yield f", so write {_BOOLEANS[text]}"
    if _accepts(kind, inspect.IntType):
        yield _as_number(node, path)
    if isinstance(kind, inspect.LiteralType):
        synonym = next((value for words in _SYNONYMS if text in words for value in kind.values if value in words), None)
        yield f", so write `{synonym}`" if synonym else ""
    if node.kind != "null" and node.text:
        written = _as_collection(node, kind, path)
        yield f", so write {written}" if written else ""


def _as_number(node: Node, path: Path) -> str:
    if node.kind == "text" and node.text.isdecimal():
        return ", without quotes or leading zeros"
    if path is None or path[1] not in _UNITS:
        return ""
    time = _TIME.fullmatch(node.text)
    if time:
        milliseconds = time[2].lower().startswith(("ms", "milli"))
        seconds = int(time[1][:9]) * (1 if milliseconds else 1000 * _SECONDS[time[2][0].lower()]) // 1000
        return f", so write {seconds}" if 1 <= seconds <= t.MAX_SECONDS else ""
    if node.kind == "int" and node.value % 1000 == 0 and 1 <= node.value // 1000 <= t.MAX_SECONDS:
        return f", so write {node.value // 1000} if milliseconds were meant"
    return ""


def _as_collection(node: Node, kind: inspect.Type, path: Path) -> str:
    """Return a single value, written as the expected list or mapping: `x` → `[x]`; empty if that is ambiguous."""
    text = node.text if node.kind != "text" or _UNQUOTED.fullmatch(node.text) else quoted(node.text)
    if len(text) > MAX_QUOTED or "\n" in text:
        text = "…"
    if isinstance(kind, inspect.ListType):
        inner = text if _accepts(kind.item_type, inspect.StrType) else _as_struct(text, kind.item_type)
        if inner and path and path[1] == "run":  # `run` is read as a pattern, but was meant as the key of a command
            return f'{{"*": [{inner}]}}: the key of a list is a pattern'
        return f"[{inner}]" if inner else ""
    if isinstance(kind, inspect.DictType):
        return _by_pattern(kind, path)
    return _as_struct(text, kind)


def _as_struct(text: str, kind: inspect.Type) -> str:
    """Return a value, written as the only required text of a mapping: `x` → `{run: x}`; empty if there is none."""
    structs = [option for option in _options(kind) if isinstance(option, inspect.StructType)]
    required = [field for struct in structs for field in struct.fields if field.required]
    is_unambiguous = len(required) == 1 and isinstance(required[0].type, inspect.StrType)
    return f"{{{required[0].encode_name}: {text}}}" if is_unambiguous else ""


def _for_collection(node: Node, kind: inspect.Type, path: Path) -> str:
    if isinstance(kind, inspect.DictType) and node.kind == "list":
        example = _by_pattern(kind, path)
        return f", so write {example}" if example else ""
    if isinstance(kind, inspect.ListType) and node.kind == "mapping":
        if path == (None, "hooks"):  # as in the client's settings
            return ": Python files. Hooks by event belong in the client's settings (see fairlead hooks)"
        lists = node.value and all(value.kind == "list" for _, value in node.value)
        return ", so write the list alone, without a pattern before it" if lists else ", so begin each with `- `"
    return ""


def _by_pattern(kind: inspect.DictType, path: Path) -> str:
    """Return an example of a mapping whose keys are patterns; empty for other mappings."""
    if isinstance(kind.value_type, inspect.ListType):
        inner = _as_struct("make check", kind.value_type.item_type)
        return f'`{path[1]}: {{"*": [{inner}]}}`, with a pattern before each list' if inner and path else ""
    is_text = isinstance(kind.value_type, inspect.StrType)
    return f'`{path[1]}: {{"*": the text}}`, with a pattern before each text' if is_text and path else ""


def _accepts(kind: inspect.Type, wanted: type[inspect.Type]) -> bool:
    return any(isinstance(option, wanted) for option in _options(kind))


def _options(kind: inspect.Type) -> Sequence[inspect.Type]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


# -- keys ----------------------------------------------------------------------------------------------

_KEY_SYNONYMS: dict[type, dict[str, str]] = {
    t.Command: dict.fromkeys(("command", "cmd", "script", "exec", "shellcommand"), "run"),
    t.FileRule: dict.fromkeys(("file", "path", "files", "glob"), "pattern"),
    t.ToolRule: {"command": "commandPattern", "file": "pattern", "path": "pattern", "name": "tool", "matcher": "tool"},
}
"""Type → a synonym of a key → the key."""

_MOVED_KEYS: dict[type, dict[str, str]] = {
    t.Stop: {
        "rounds": "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it",
        "run": "write it as the `run` of an entry in `commands`",
    },
    t.Policy: {
        "rules": "its keys are in `preToolUse` now",
    },
}
"""Type → a key of earlier versions of conclaude, or of another file → what to write instead."""


def closest_key(name: str, known: Sequence[str], owner: type) -> str | None:
    """Return the key of `known` that was probably meant, by synonym or by spelling; `None` if no key is similar."""
    folded = _folded(name)
    for base in owner.__mro__:
        if folded in _KEY_SYNONYMS.get(base, {}):
            return _KEY_SYNONYMS[base][folded]
    keys = {key.lower(): key for key in known}
    closest = get_close_matches(folded, keys, n=1, cutoff=0.6)
    return keys[closest[0]] if closest else None


def advice_on_key(name: str, owner: type) -> str | None:
    """Return the advice on a key that is wrong but not misspelt, or `None`."""
    if name == "<<":
        return "merge keys are not supported; repeat the whole value with an alias, or write the keys out"
    if name in _MOVED_KEYS.get(owner, {}):
        return _MOVED_KEYS[owner][name]
    if owner is t.Policy and name in _SECTIONS:
        return f"it belongs in `{_SECTIONS[name]}`"
    return None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()[:MAX_QUOTED]


def _sections() -> dict[str, str]:
    """Return key → section for each key that only one section has."""
    policy = inspect.type_info(t.Policy)
    owners: dict[str, list[str]] = {}
    for field in policy.fields if isinstance(policy, inspect.StructType) else ():
        for struct in (option for option in _options(field.type) if isinstance(option, inspect.StructType)):
            for inner in struct.fields:
                owners.setdefault(inner.encode_name, []).append(field.encode_name)
    return {name: sections[0] for name, sections in owners.items() if len(sections) == 1}


_SECTIONS = _sections()
