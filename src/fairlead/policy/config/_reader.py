"""Parses the text of a policy file to a `Policy`, or to all mistakes in it. Opens no file.

The types define what is valid, and the YAML nodes have the position of each value: each node is read by its type.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
from msgspec import inspect

from fairlead.policy.config._conclaude import map_old_keys
from fairlead.policy.config._errors import Diagnostic, DiagnosticCollector, PolicyError, TooManyMistakes
from fairlead.policy.config._messages import describe_type, describe_value, format_path, unknown_key
from fairlead.policy.config._types import USER_WIDE, Policy, ToolRule
from fairlead.policy.config._validators import HINTS, Advice, find_check
from fairlead.policy.config._yaml_nodes import MAX_POLICY_BYTES, Node, compose

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.policy.config._messages import Path
    from fairlead.policy.config._validators import Check

__all__ = ["MAX_POLICY_BYTES", "policy_from", "read_document", "read_hints", "read_policy"]

Document: TypeAlias = dict[str, Any]
"""The values that a file sets: camelCase keys, plain values, no defaults."""


def read_policy(text: str | bytes, file: str) -> Policy:
    """Parse a policy; `file` is its name in errors. Raises `PolicyError` with every mistake."""
    return policy_from(read_document(text, file))


def read_document(text: str | bytes, file: str) -> Document:
    """Parse and validate the values that a file sets. Raises `PolicyError` with every mistake."""
    return _parse(text, file)[0]


def read_hints(text: str | bytes, file: str) -> tuple[Diagnostic, ...]:
    """Return hints on entries that are valid but probably mistakes. Raises `PolicyError` if the text is invalid."""
    return tuple(sorted((*_parse(text, file)[1], *_absolute_schemas(_decoded(text, file), file))))


_ABSOLUTE_SCHEMA = re.compile(r"^#[ \t]*yaml-language-server:[ \t]*\$schema=(?:file:|/)", re.MULTILINE)


def _absolute_schemas(text: str, file: str) -> Iterator[Diagnostic]:
    """Yield a hint for each line that names a schema by an absolute path.

    None for the user-wide file, which is on one machine only.
    """
    if os.path.basename(file) == USER_WIDE:
        return
    for match in _ABSOLUTE_SCHEMA.finditer(text):
        message = (
            "the schema for editors is named by an absolute path, which is wrong on other machines; run `fairlead "
            "schema > fairlead.schema.json`, and write `$schema=fairlead.schema.json` here"
        )
        yield Diagnostic(file, text.count("\n", 0, match.start()) + 1, 1, message)


def _parse(text: str | bytes, file: str) -> tuple[Document, tuple[Diagnostic, ...]]:
    root = compose(_decoded(text, file), file)
    if root is None or root.kind == "null":
        return {}, ()
    walker = _Walker(file)
    root = map_old_keys(root, walker.hints.add)
    try:
        document: Any = walker.value(root, _policy_type(), None, None)
    except TooManyMistakes:
        document = None
    if mistakes := walker.mistakes.result():
        raise PolicyError(mistakes)
    return document, walker.hints.result()


def policy_from(document: Document) -> Policy:
    """Return the policy of a document that `read_document` has validated."""
    return msgspec.convert(document, Policy)


def _decoded(text: str | bytes, file: str) -> str:
    if len(text) > MAX_POLICY_BYTES:
        message = f"larger than {MAX_POLICY_BYTES} bytes, the limit; a policy is a page or two"
        raise PolicyError((Diagnostic(file, 0, 0, message),))
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        column = error.start - text.rfind(b"\n", 0, error.start)
        message = f"the byte 0x{text[error.start]:02X} is not UTF-8; save the file as UTF-8"
        raise PolicyError((Diagnostic(file, line, column, message),)) from None


# -- the types -------------------------------------------------------------------------------

_types: dict[type, inspect.Type] = {}
_tables: dict[type, dict[str, tuple[inspect.Field, Check | None]]] = {}


def _policy_type() -> inspect.Type:
    if Policy not in _types:
        _types[Policy] = inspect.type_info(Policy)
    return _types[Policy]


def _fields(struct: inspect.StructType) -> dict[str, tuple[inspect.Field, Check | None]]:
    table = _tables.get(struct.cls)
    if table is None:
        table = {field.encode_name: (field, find_check(struct.cls, field.name)) for field in struct.fields}
        _tables[struct.cls] = table
    return table


def _counts_as_missing(value: Node, field: inspect.Field, owner: type) -> bool:
    """Return whether a value counts as missing: an empty section, or the empty pattern that conclaude requires."""
    if value.kind == "null":
        return not field.required and _is_collection(field.type)
    return value.kind == "text" and not value.text and (owner, field.name) == (ToolRule, "pattern")


def _is_collection(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.UnionType):
        return any(map(_is_collection, kind.types))
    return isinstance(kind, inspect.StructType | inspect.DictType | inspect.ListType)


def _must_be_pattern(kind: inspect.DictType) -> bool:
    return isinstance(kind.key_type, inspect.StrType) and bool(kind.key_type.min_length)


# -- the walk ------------------------------------------------------------------------------------------


class _Walker:
    """Reads each node by its type, and records mistakes. A wrong value is read as `None`, which is never used."""

    def __init__(self, file: str) -> None:
        self.mistakes = DiagnosticCollector(file)
        self.hints = DiagnosticCollector(file, limit=None)

    def value(self, node: Node, kind: inspect.Type, path: Path, check: Check | None) -> Any:
        """Validate the value of a node, and return it as a plain Python value."""
        accepted, read = _READERS[type(kind)]
        if node.kind not in accepted:
            return self._add_wrong_value(node, kind, path)
        return read(self, node, kind, path, check)

    def read_struct(self, node: Node, kind: inspect.StructType, path: Path, _check: Check | None) -> Document:
        fields, document = _fields(kind), {}
        written = {key.text for key, _ in node.value}
        for key, value in self._pairs(node, path):
            if key.text not in fields:
                written.add(self._unknown_key(key, kind, path))
                continue
            field, check = fields[key.text]
            if _counts_as_missing(value, field, kind.cls):
                continue
            document[key.text] = self.value(value, field.type, (path, key.text), check)
        for name, (field, _) in fields.items():
            if field.required and name not in written:
                self._add(
                    node,
                    f"`{name}` is missing{format_path(path, ' in ')}; add it: expected {describe_type(field.type)}",
                )
        if kind.cls in HINTS and (hint := HINTS[kind.cls](document, self.hints.file)):
            self.hints.add(node.line, node.column, f"{format_path(path)} {hint}")
        return document

    def _unknown_key(self, key: Node, kind: inspect.StructType, path: Path) -> str:
        """Record an unknown key. Return the key that was probably meant, or else the key itself.

        The result is not reported as missing.
        """
        from fairlead.policy.config._suggestions import advice_on_key, closest_key

        known, advice = list(_fields(kind)), advice_on_key(key.text, kind.cls)
        closest = None if advice else closest_key(key.text, known, kind.cls)
        self._add(key, unknown_key(key.text, known, path, closest, advice))
        return closest or key.text

    def read_dict(self, node: Node, kind: inspect.DictType, path: Path, check: Check | None) -> Document:
        document = {}
        for key, value in self._pairs(node, path):
            at = (path, key.text)
            if key.text or not _must_be_pattern(kind):
                self.read_str(key, kind.key_type, at, check)
            else:
                self._add(key, f"{format_path(at)} is an invalid pattern: it is empty; write `*` for everything")
            document[key.text] = self.value(value, kind.value_type, at, None)
        return document

    def _pairs(self, node: Node, path: Path) -> Iterator[tuple[Node, Node]]:
        """Yield the keys with their values; a key that is not text, or is repeated, is a mistake."""
        lines: dict[str, int] = {}
        for key, value in node.value:
            if key.kind in {"list", "mapping"}:
                self._add(key, f"{describe_value(key)} as a key{format_path(path, ' in ')}; expected text")
            elif key.text in lines:
                self._add(key, f"the key `{key.text}` is already on line {lines[key.text]}; merge the two")
            else:
                lines[key.text] = key.line
                yield key, value

    def read_list(self, node: Node, kind: inspect.ListType, path: Path, check: Check | None) -> list[Any]:
        return [self.value(item, kind.item_type, (path, index), check) for index, item in enumerate(node.value)]

    def read_union(self, node: Node, kind: inspect.UnionType, path: Path, check: Check | None) -> Any:
        for option in kind.types:
            if node.kind in _READERS[type(option)][0]:
                return self.value(node, option, path, check)
        return self._add_wrong_value(node, kind, path)

    def read_str(self, node: Node, kind: inspect.Type, path: Path, check: Check | None) -> Any:
        min_length = kind.min_length if isinstance(kind, inspect.StrType) else None
        if len(node.text) < (min_length or 0):
            return self._add_wrong_value(node, kind, path)
        problem = "contains a NUL character; remove it" if "\0" in node.text else check and check(node.text)
        if isinstance(problem, Advice):
            self.hints.add(node.line, node.column, f"{format_path(path)} {problem}")
        elif problem:
            self._add(node, f"{format_path(path)} {problem}")
        return node.text

    def read_int(self, node: Node, kind: inspect.IntType, path: Path, _check: Check | None) -> Any:
        number: int = node.value
        below = kind.ge is not None and number < kind.ge
        above = kind.le is not None and number > kind.le
        return self._add_wrong_value(node, kind, path) if below or above else number

    def read_literal(self, node: Node, kind: inspect.LiteralType, path: Path, _check: Check | None) -> Any:
        return node.value if node.value in kind.values else self._add_wrong_value(node, kind, path)

    def read_plain(self, node: Node, _kind: inspect.Type, _path: Path, _check: Check | None) -> Any:
        return node.value

    def read_any(self, node: Node, kind: inspect.AnyType, path: Path, _check: Check | None) -> Any:
        if node.kind == "list":
            return [self.read_any(item, kind, (path, index), None) for index, item in enumerate(node.value)]
        if node.kind == "mapping":
            return {
                key.text: self.read_any(value, kind, (path, key.text), None) for key, value in self._pairs(node, path)
            }
        return node.value

    def _add_wrong_value(self, node: Node, kind: inspect.Type, path: Path) -> Any:
        from fairlead.policy.config._suggestions import wrong_value

        self._add(node, wrong_value(node, kind, path))

    def _add(self, node: Node, message: str) -> None:
        self.mistakes.add(node.line, node.column, message)


_ALL_KINDS = frozenset({"null", "bool", "int", "float", "text", "list", "mapping"})

_READERS: dict[type, tuple[frozenset[str], Callable[..., Any]]] = {
    inspect.StructType: (frozenset({"mapping"}), _Walker.read_struct),
    inspect.DictType: (frozenset({"mapping"}), _Walker.read_dict),
    inspect.ListType: (frozenset({"list"}), _Walker.read_list),
    inspect.UnionType: (_ALL_KINDS, _Walker.read_union),
    inspect.StrType: (frozenset({"text"}), _Walker.read_str),
    inspect.IntType: (frozenset({"int"}), _Walker.read_int),
    inspect.LiteralType: (frozenset({"text"}), _Walker.read_literal),
    inspect.BoolType: (frozenset({"bool"}), _Walker.read_plain),
    inspect.NoneType: (frozenset({"null"}), _Walker.read_plain),
    inspect.AnyType: (_ALL_KINDS, _Walker.read_any),
}
"""Type → the kinds of nodes that it accepts, and the method that reads them."""
