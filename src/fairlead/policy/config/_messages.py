"""The parts of error messages about a policy: the value, what was expected, its path in the document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import inspect

if TYPE_CHECKING:
    from fairlead.policy.config._yaml_nodes import Node

    Path = tuple[Any, str | int] | None
    """The path of a value: the path of its parent, and its key or index there. `None` is the whole document."""

MAX_QUOTED = 40
"""The maximum number of characters of a value that a message quotes."""
_MAX_KEYS = 6


def format_path(path: Path, before: str = "") -> str:
    """Format a path as `` `stop.commands[0].run` ``, after the text `before`; return "" for the whole document."""
    text = ""
    while path is not None:
        path, key = path
        text = _format_key(key, is_first=path is None) + text
    return f"{before}`{text}`" if text else ""


def _format_key(key: str | int, *, is_first: bool) -> str:
    if isinstance(key, int):
        return f"[{key}]"
    if key.replace("_", "").isalnum():
        return key if is_first else f".{key}"
    return f'["{shorten(key)}"]'


def describe_value(node: Node) -> str:
    """Describe the value of a node, such as `the number 3` or `a list`."""
    if node.kind == "text":
        return f'the text "{shorten(node.text)}"' if node.text else "an empty text"
    if node.kind in {"int", "float"}:
        return f"the number {shorten(node.text)}"
    return {"null": "nothing", "bool": node.text, "list": "a list", "mapping": "a mapping"}[node.kind]


def describe_type(kind: inspect.Type) -> str:
    """Describe the values that a type accepts, in YAML terms."""
    if isinstance(kind, inspect.UnionType):
        options = (option for option in kind.types if not isinstance(option, inspect.NoneType))
        return ", or ".join(map(describe_type, options))
    if isinstance(kind, inspect.LiteralType):
        *others, last = (f"`{value}`" for value in kind.values)
        return f"{', '.join(others)} or {last}"
    if isinstance(kind, inspect.IntType):
        return f"a whole number{_range(kind)}"
    if isinstance(kind, inspect.StrType):
        return "text that is not empty" if kind.min_length else "text"
    return _describe_collection(kind)


def _describe_collection(kind: inspect.Type) -> str:
    if isinstance(kind, inspect.ListType):
        return f"a list, each entry {describe_type(kind.item_type)}"
    if isinstance(kind, inspect.DictType):
        return f"a mapping from {_describe_keys(kind)} to {describe_type(kind.value_type)}"
    if isinstance(kind, inspect.StructType):
        required = [field.encode_name for field in kind.fields if field.required]
        return f"a mapping with {list_keys(required or [field.encode_name for field in kind.fields])}"
    return "true or false" if isinstance(kind, inspect.BoolType) else "any value"


def _describe_keys(kind: inspect.DictType) -> str:
    """Describe the keys of a mapping. Keys that must not be empty are patterns."""
    return "patterns" if isinstance(kind.key_type, inspect.StrType) and kind.key_type.min_length else "text"


def _range(kind: inspect.IntType) -> str:
    if kind.ge is not None and kind.le is not None:
        return f" from {kind.ge} to {kind.le}"
    return "" if kind.ge is None else f", {kind.ge} or more"


def unknown_key(name: str, known: list[str], path: Path, closest: str | None, advice: str | None) -> str:
    """Return the message about an unknown key.

    `known` are the keys that are valid in the mapping at `path`. `closest` is the key that was probably meant. `advice`
    says what to do, and replaces any other suggestion.
    """
    text = advice or (f"did you mean `{closest}`?" if closest else f"the keys here are {list_keys(known)}")
    return f"unknown key `{shorten(name)}`{format_path(path, ' in ')}; {text}"


def list_keys(names: list[str]) -> str:
    """List keys; if there are many, the first few."""
    listed = ", ".join(f"`{name}`" for name in names[:_MAX_KEYS])
    return f"{listed}, …" if len(names) > _MAX_KEYS else listed


def shorten(text: str) -> str:
    """Return a text on one line, cut at `MAX_QUOTED` characters."""
    line = " ".join(text.split())
    return f"{line[: MAX_QUOTED - 1]}…" if len(line) > MAX_QUOTED else line
