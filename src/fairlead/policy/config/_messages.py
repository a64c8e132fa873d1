"""The words of error messages about a policy: what was found, what was expected, where, and what may be meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

from fairlead.text import one_line

if TYPE_CHECKING:
    from fairlead.policy.config._yaml_nodes import Node

    Path = tuple[Any, str | int] | None
    """The place of a value in the document: the place of what holds it, and its key or index there."""

SHOWN = 40
_KEYS_SHOWN = 6


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
    return f'["{one_line(key, SHOWN)}"]'


def found(node: Node) -> str:
    """Say what stands there."""
    if node.kind == "text":
        return f'the text "{one_line(node.text, SHOWN)}"' if node.text else "an empty text"
    if node.kind in {"int", "float"}:
        return f"the number {one_line(node.text, SHOWN)}"
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
        return f"a mapping from {_key(kind)} to {expected(kind.value_type)}"
    if isinstance(kind, inspect.StructType):
        required = [field.encode_name for field in kind.fields if field.required]
        return f"a mapping with {listed(required or [field.encode_name for field in kind.fields])}"
    return "true or false" if isinstance(kind, inspect.BoolType) else "any value"


def _key(kind: inspect.DictType) -> str:
    """Name the keys; those that must not be empty are patterns."""
    return "patterns" if isinstance(kind.key_type, inspect.StrType) and kind.key_type.min_length else "text"


def _range(kind: inspect.IntType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    return "" if kind.ge is None else f", {kind.ge} or more"


def unknown_key(name: str, known: list[str], path: Path, meant: str | None, advice: str | None) -> str:
    """Say that a key is none, and what to do about it; `meant` is the key that it probably should be."""
    text = advice or (f"did you mean `{meant}`?" if meant else f"the keys here are {listed(known)}")
    return f"unknown key `{one_line(name, SHOWN)}`{spell(path, ' in ')}; {text}"


def listed(names: list[str]) -> str:
    """Name some keys, the first few of them if there are many."""
    shown = ", ".join(f"`{name}`" for name in names[:_KEYS_SHOWN])
    return f"{shown}, …" if len(names) > _KEYS_SHOWN else shown
