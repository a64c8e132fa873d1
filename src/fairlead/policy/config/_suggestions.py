"""What to write instead: from a value or a key that cannot stand in a policy to what was probably meant by it."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from msgspec import inspect

from fairlead.policy.config import _types as t
from fairlead.policy.config._messages import SHOWN, expected, found, shortened, spell
from fairlead.policy.config._yaml_nodes import quoted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.policy.config._messages import Path
    from fairlead.policy.config._yaml_nodes import Node

_UNITS = {"timeout": "seconds", "grace": "seconds", "wait": "seconds"}
"""Key → what its number counts."""
_SWITCHES = {
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
_PLAIN = re.compile(r"[\w./~][\w./~ \-*?]*")
"""What needs no quotes in YAML, wherever it stands."""


# -- values --------------------------------------------------------------------------------------------


def wrong(node: Node, kind: inspect.Type, path: Path) -> str:
    """Say that a value cannot stand where it does, what could, and how to write what was probably meant."""
    place = spell(path, " for ") or " as the policy"
    wanted = expected(kind)
    if path and path[1] in _UNITS:
        wanted = wanted.replace("a whole number", f"a whole number of {_UNITS[path[1]]}", 1)
    return f"{found(node)}{place}; expected {wanted}{_advice(node, kind, path)}"


def _advice(node: Node, kind: inspect.Type, path: Path) -> str:
    if node.kind in {"list", "mapping"}:
        return _for_collection(node, kind, path)
    return next(filter(None, _for_scalar(node, kind, path)), "")


def _for_scalar(node: Node, kind: inspect.Type, path: Path) -> Iterator[str]:
    text = node.text.lower()
    if _takes(kind, inspect.StrType) and node.kind in {"bool", "int", "float"}:
        yield f', so write "{shortened(node.text)}" in quotes'
    if _takes(kind, inspect.BoolType) and node.kind == "text" and text in _SWITCHES:
        yield f", so write {_SWITCHES[text]}"
    if _takes(kind, inspect.IntType):
        yield _as_number(node, path)
    if isinstance(kind, inspect.LiteralType):
        meant = next((value for words in _SYNONYMS if text in words for value in kind.values if value in words), None)
        yield f", so write `{meant}`" if meant else ""
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
        thousandths = time[2].lower().startswith(("ms", "milli"))
        seconds = int(time[1][:9]) * (1 if thousandths else 1000 * _SECONDS[time[2][0].lower()]) // 1000
        return f", so write {seconds}" if 1 <= seconds <= t.MAX_SECONDS else ""
    if node.kind == "int" and node.value % 1000 == 0 and 1 <= node.value // 1000 <= t.MAX_SECONDS:
        return f", so write {node.value // 1000} if milliseconds were meant"
    return ""


def _as_collection(node: Node, kind: inspect.Type, path: Path) -> str:
    """Write a single value where a list or a mapping is wanted."""
    text = node.text if node.kind != "text" or _PLAIN.fullmatch(node.text) else quoted(node.text)
    if len(text) > SHOWN or "\n" in text:
        text = "…"
    if isinstance(kind, inspect.ListType):
        inner = text if _takes(kind.item_type, inspect.StrType) else _as_struct(text, kind.item_type)
        if inner and path and path[1] == "run":  # a mapping by patterns, in which this key was meant as a command's
            return f'{{"*": [{inner}]}}: what stands before a list is a pattern'
        return f"[{inner}]" if inner else ""
    if isinstance(kind, inspect.DictType):
        return _by_pattern(kind, path)
    return _as_struct(text, kind)


def _as_struct(text: str, kind: inspect.Type) -> str:
    """Write a value as the one that a mapping cannot do without, if there is only one."""
    structs = [option for option in _options(kind) if isinstance(option, inspect.StructType)]
    required = [field for struct in structs for field in struct.fields if field.required]
    is_clear = len(required) == 1 and isinstance(required[0].type, inspect.StrType)
    return f"{{{required[0].encode_name}: {text}}}" if is_clear else ""


def _for_collection(node: Node, kind: inspect.Type, path: Path) -> str:
    if isinstance(kind, inspect.DictType) and node.kind == "list":
        form = _by_pattern(kind, path)
        return f", so write {form}" if form else ""
    if isinstance(kind, inspect.ListType) and node.kind == "mapping":
        lists = node.value and all(value.kind == "list" for _, value in node.value)
        return ", so write the list alone, without a pattern before it" if lists else ", so begin each with `- `"
    return ""


def _by_pattern(kind: inspect.DictType, path: Path) -> str:
    """Show a mapping by patterns; other mappings are of any form."""
    if isinstance(kind.value_type, inspect.ListType):
        inner = _as_struct("make check", kind.value_type.item_type)
        return f'`{path[1]}: {{"*": [{inner}]}}`, with a pattern before each list' if inner and path else ""
    is_text = isinstance(kind.value_type, inspect.StrType)
    return f'`{path[1]}: {{"*": the text}}`, with a pattern before each text' if is_text and path else ""


def _takes(kind: inspect.Type, wanted: type[inspect.Type]) -> bool:
    return any(isinstance(option, wanted) for option in _options(kind))


def _options(kind: inspect.Type) -> Sequence[inspect.Type]:
    return kind.types if isinstance(kind, inspect.UnionType) else (kind,)


# -- keys ----------------------------------------------------------------------------------------------

_OTHER_WORDS: dict[type, dict[str, str]] = {
    t.Command: dict.fromkeys(("command", "cmd", "script", "exec", "shellcommand"), "run"),
    t.FileRule: dict.fromkeys(("file", "path", "files", "glob"), "pattern"),
    t.ToolRule: {"command": "commandPattern", "file": "pattern", "path": "pattern", "name": "tool", "matcher": "tool"},
}
"""Type → another word for a key → the key."""

_ELSEWHERE: dict[type, dict[str, str]] = {
    t.Stop: {
        "rounds": "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it",
        "run": "write it as the `run` of an entry in `commands`",
    },
    t.Policy: {
        "rules": "its keys are in `preToolUse` now",
        "hooks": "hooks belong in the client's settings (see fairlead hooks); a policy has a section for each event, "
        "such as `stop`",
    },
}
"""Keys that conclaude once had, or that belong in another file."""


def meant_key(name: str, known: Sequence[str], owner: type) -> str | None:
    """Find the key that was probably meant."""
    folded = _folded(name)
    for base in owner.__mro__:
        if folded in _OTHER_WORDS.get(base, {}):
            return _OTHER_WORDS[base][folded]
    keys = {key.lower(): key for key in known}
    near = get_close_matches(folded, keys, n=1, cutoff=0.6)
    return keys[near[0]] if near else None


def advice_on_key(name: str, owner: type) -> str | None:
    """Say what to do about a key that is no slip of the pen."""
    if name == "<<":
        return "merging is not supported: repeat the whole with an alias, or write the keys out"
    if name in _ELSEWHERE.get(owner, {}):
        return _ELSEWHERE[owner][name]
    if owner is t.Policy and name in _SECTIONS:
        return f"it belongs in `{_SECTIONS[name]}`"
    return None


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()[:SHOWN]


def _sections() -> dict[str, str]:
    """Map each key that only one section has to that section."""
    policy = inspect.type_info(t.Policy)
    owners: dict[str, list[str]] = {}
    for field in policy.fields if isinstance(policy, inspect.StructType) else ():
        for struct in (option for option in _options(field.type) if isinstance(option, inspect.StructType)):
            for inner in struct.fields:
                owners.setdefault(inner.encode_name, []).append(field.encode_name)
    return {name: sections[0] for name, sections in owners.items() if len(sections) == 1}


_SECTIONS = _sections()
