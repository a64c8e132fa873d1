"""The words of error messages about a policy: what was found, what was expected, where, and what may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from fairlead.policy import _types as t

if TYPE_CHECKING:
    from fairlead.policy._nodes import Node

    Path = tuple[Any, str | int] | None
    """The place of a value in the document: the place of what holds it, and its key or index there."""

_SHOWN = 40
_KEYS_SHOWN = 6
_SWITCHES = {
    "yes": "true",
    "on": "true",
    "true": "true, without quotes",
    "no": "false",
    "off": "false",
    "false": "false, without quotes",
}

_MOVED: dict[type, dict[str, str]] = {
    t.Stop: {
        "rounds": "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it",
        "run": "write it as the `run` of an entry in `commands`",
    },
    t.Policy: {"rules": "its keys are in `preToolUse` now"},
}
"""Keys that conclaude once had."""


def spell(path: Path, before: str = "") -> str:
    """Write a place as `` `stop.commands[0].run` ``, after a word; the whole document is nothing."""
    text = ""
    while path is not None:
        path, key = path
        text = _step(key, is_first=path is None) + text
    return f"{before}`{text}`" if text else ""


def _step(key: str | int, *, is_first: bool) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key.replace("_", "").isalnum():
        return key if is_first else f".{key}"
    return f'["{_shortened(key)}"]'


def found(node: Node) -> str:
    """Say what stands there."""
    if node.kind == "text":
        return f'the text "{_shortened(node.text)}"' if node.text else "an empty text"
    if node.kind in {"int", "float"}:
        return f"the number {_shortened(node.text)}"
    return {"null": "nothing", "bool": node.text, "list": "a list", "mapping": "a mapping"}[node.kind]


def expected(kind: inspect.Type) -> str:
    """Say what may stand there, in the words of YAML."""
    if isinstance(kind, inspect.UnionType):
        options = (option for option in kind.types if not isinstance(option, inspect.NoneType))
        return ", or ".join(map(expected, options))
    if isinstance(kind, inspect.LiteralType):
        *others, last = (f"`{value}`" for value in kind.values)
        return f"{', '.join(others)} or {last}"
    if isinstance(kind, inspect.IntType):
        return f"a whole number{_range(kind)}"
    if isinstance(kind, inspect.StrType):
        return "text that is not empty" if kind.min_length else "text"
    return _expected_collection(kind)


def _expected_collection(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.ListType):
        return f"a list, each entry {expected(kind.item_type)}"
    if isinstance(kind, inspect.DictType):
        return f"a mapping from text to {expected(kind.value_type)}"
    if isinstance(kind, inspect.StructType):
        required = [field.encode_name for field in kind.fields if field.required]
        return f"a mapping with {_listed(required or [field.encode_name for field in kind.fields])}"
    return "true or false" if isinstance(kind, inspect.BoolType) else "any value"


def _range(kind: inspect.IntType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    return "" if kind.ge is None else f", {kind.ge} or more"


def hint(node: Node, kind: inspect.Type) -> str:
    """Say how to write what was probably meant."""
    if _takes(kind, inspect.StrType) and node.kind in {"bool", "int", "float"}:
        return f', so write "{_shortened(node.text)}" in quotes'
    if node.kind == "text" and node.text.lower() in _SWITCHES and _takes(kind, inspect.BoolType):
        return f", so write {_SWITCHES[node.text.lower()]}"
    if node.kind == "text" and node.text.isdecimal() and _takes(kind, inspect.IntType):
        return ", without quotes or leading zeros"
    if node.kind == "mapping" and isinstance(kind, inspect.ListType):
        return ", so begin each with `- `"
    return ""


def _takes(kind: inspect.Type, wanted: type[inspect.Type]) -> bool:
    options = kind.types if isinstance(kind, inspect.UnionType) else (kind,)
    return any(isinstance(option, wanted) for option in options)


def unknown_key(name: str, known: list[str], owner: type, path: Path) -> str:
    """Say that a key is none, and which one may be meant."""
    return f"unknown key `{_shortened(name)}`{spell(path, ' in ')}; {_meant(name, known, owner)}"


def _meant(name: str, known: list[str], owner: type) -> str:
    if name == "<<":
        return "merging is not supported: repeat the whole with an alias, or write the keys out"
    if name in _MOVED.get(owner, {}):
        return _MOVED[owner][name]
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake pays for it

    folded = {key.lower(): key for key in known}
    near = get_close_matches(name.replace("_", "").replace("-", "").lower()[:_SHOWN], folded, n=1, cutoff=0.6)
    return f"did you mean `{folded[near[0]]}`?" if near else f"the keys here are {_listed(known)}"


def _listed(names: list[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:_KEYS_SHOWN])
    return f"{shown}, …" if len(names) > _KEYS_SHOWN else shown


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return f"{line[: _SHOWN - 1]}…" if len(line) > _SHOWN else line
