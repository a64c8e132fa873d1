"""Edits the JSON of another program as text, so that everything except the edited values keeps its bytes.

The parser keeps the position of each value, and an edit replaces only the text at its positions. So order, indentation,
line endings, escapes and the spelling of numbers are preserved. Knows no client.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import msgspec

from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

MAX_DEPTH = 200
"""The maximum levels of nesting. No settings file has that many, and the parser recurses at each level."""

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")
_LINE_START = re.compile(r"(?:\r?\n|\r)([ \t]*)\Z")
_BOM = "\ufeff"


class JsonTextError(FairleadError):
    """Text that is not JSON, or JSON that cannot be edited safely. The message has line and column."""


class Node(msgspec.Struct, frozen=True):
    """A value and its position: `text[start:end]`."""

    kind: Literal["object", "array", "plain"]
    start: int
    end: int
    plain: Any = None
    """The value of a string, number, `true`, `false` or `null`."""
    items: tuple[Node, ...] = ()
    """The elements of an array, or the values of an object."""
    keys: tuple[str, ...] = ()
    """The keys of an object, parallel to `items`. A duplicate key occurs twice."""
    starts: tuple[int, ...] = ()
    """The offsets of the keys of an object."""

    def member(self, key: str) -> Node | None:
        """Return the value of a key; `None` if it is missing. A duplicate key has its last one, as in most parsers."""
        indices = [index for index, name in enumerate(self.keys) if name == key]
        return self.items[indices[-1]] if indices else None

    def value(self) -> Any:
        """Return the value as a Python object."""
        if self.kind == "plain":
            return self.plain
        values = [item.value() for item in self.items]
        return values if self.kind == "array" else dict(zip(self.keys, values, strict=True))

    def duplicate_key(self) -> str | None:
        """Return a key that occurs twice; `None` if there is none."""
        return next((key for index, key in enumerate(self.keys) if key in self.keys[:index]), None)


class Edit(msgspec.Struct, frozen=True):
    """Replaces the text from `start` to `end`."""

    start: int
    end: int
    text: str


def position(text: str, offset: int) -> str:
    """Return an offset as `line:column`, both counted from 1."""
    before = text[:offset].removeprefix(_BOM)
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# -- reading -------------------------------------------------------------------------------------------


def parse(text: str) -> Node:
    """Parse a text as strict JSON: no comments, no trailing commas, nothing after the value.

    Raise `JsonTextError` for any other text, and for more than `MAX_DEPTH` levels.
    """
    start = _skip(text, len(_BOM) if text.startswith(_BOM) else 0)
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        _refuse(text, end, "expected the end of the file")
    return node


def _skip(text: str, offset: int) -> int:
    blank = _BLANK.match(text, offset)
    return blank.end() if blank else offset


def _refuse(text: str, offset: int, expected: str) -> NoReturn:
    rest = text[offset : offset + 2]
    if rest in {"//", "/*"} or rest[:1] == "#":
        raise JsonTextError(f"{position(text, offset)}: a comment, which JSON does not allow; remove it")
    got = repr(text[offset]) if rest else "the end of the file"
    raise JsonTextError(f"{position(text, offset)}: not valid JSON: {expected}, got {got}")


def _value(text: str, offset: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise JsonTextError(f"{position(text, offset)}: nested more than {MAX_DEPTH} levels deep")
    first = text[offset : offset + 1]
    if first == "{":
        return _object(text, offset, depth)
    if first == "[":
        return _array(text, offset, depth)
    if first == '"':
        plain, end = _string(text, offset)
        return Node("plain", offset, end, plain)
    if match := _NUMBER.match(text, offset):
        number = match[0]
        is_whole = number.lstrip("-").isdigit() and len(number) < MAX_DEPTH
        return Node("plain", offset, match.end(), int(number) if is_whole else float(number))
    if match := _WORD.match(text, offset):
        return Node("plain", offset, match.end(), _WORDS[match[0]])
    _refuse(text, offset, "expected a value")


def _string(text: str, offset: int) -> tuple[str, int]:
    match = _STRING.match(text, offset)
    if match is None:
        _refuse(text, offset, "expected a string in double quotes, closed on its line")
    return json.loads(match[0]), match.end()


def _array(text: str, offset: int, depth: int) -> Node:
    items: list[Node] = []
    here = _skip(text, offset + 1)
    while text[here : here + 1] != "]" or items:
        items.append(_value(text, here, depth + 1))
        here, is_last = _after_item(text, items[-1].end, "]")
        if is_last:
            break
    return Node("array", offset, here + 1, items=tuple(items))


def _object(text: str, offset: int, depth: int) -> Node:
    keys: list[str] = []
    starts: list[int] = []
    items: list[Node] = []
    here = _skip(text, offset + 1)
    while text[here : here + 1] != "}" or items:
        starts.append(here)
        key, here = _string(text, here)
        keys.append(key)
        here = _skip(text, here)
        if text[here : here + 1] != ":":
            _refuse(text, here, "expected ':'")
        items.append(_value(text, _skip(text, here + 1), depth + 1))
        here, is_last = _after_item(text, items[-1].end, "}")
        if is_last:
            break
    return Node("object", offset, here + 1, items=tuple(items), keys=tuple(keys), starts=tuple(starts))


def _after_item(text: str, offset: int, closing: str) -> tuple[int, bool]:
    """Return the offset of the next item, or of the closing bracket, and whether it is the bracket."""
    here = _skip(text, offset)
    if text[here : here + 1] == closing:
        return here, True
    if text[here : here + 1] != ",":
        _refuse(text, here, f"expected ',' or '{closing}'")
    after = _skip(text, here + 1)
    if text[after : after + 1] == closing:
        raise JsonTextError(f"{position(text, here)}: a comma after the last item; remove it")
    return after, False


# -- editing -------------------------------------------------------------------------------------------


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits to a text. They must not overlap."""
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def removal(container: Node, indices: Sequence[int]) -> Iterator[Edit]:
    """Yield the edits that remove the items at `indices` from an array or object, and the commas that they leave."""
    starts = container.starts or tuple(item.start for item in container.items)
    removed = set(indices)
    kept = [index for index in range(len(starts)) if index not in removed]
    if removed and not kept:
        yield Edit(container.start + 1, container.end - 1, "")
        return
    for index in sorted(removed):
        if index < kept[0]:  # no item remains before this one, so the comma after it is removed
            yield Edit(starts[index], starts[index + 1], "")
        else:
            yield Edit(container.items[index - 1].end, container.items[index].end, "")


class Style(msgspec.Struct, frozen=True):
    """The layout of a JSON text, for values that are added to it."""

    newline: str = "\n"
    unit: str | None = "  "
    """One level of indentation; `None` if the whole text is one line."""
    comma: str = ", "
    colon: str = ": "


def style_of(text: str, root: Node) -> Style:
    """Return the style of a document's first member; the default style for an empty document."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not root.items:
        return Style(newline)
    start = (root.starts or (root.items[0].start,))[0]
    is_tight = root.kind == "object" and text[root.items[0].start - 1] == ":"
    marks = (",", ":") if is_tight else (", ", ": ")
    lead = _lead(text, root.start + 1, start)
    return Style(newline, None if lead is None else lead.removeprefix(_indent(text, root.start)), *marks)


def insertion(text: str, container: Node, members: Sequence[tuple[str | None, Any]], style: Style) -> Edit:
    """Return the edit that appends `members`: (key, value) pairs to an object, (`None`, value) pairs to an array."""
    starts = container.starts or tuple(item.start for item in container.items)
    if starts:
        previous = container.items[-2].end if len(starts) > 1 else container.start + 1
        lead = _lead(text, previous, starts[-1])
        shown = [_shown(key, value, style, lead) for key, value in members]
        between = style.comma if lead is None else f",{style.newline}{lead}"
        end = container.items[-1].end
        return Edit(end, end, "".join(between + item for item in shown))
    inside = (container.start + 1, container.end - 1)
    if style.unit is None:
        return Edit(*inside, style.comma.join(_shown(key, value, style, None) for key, value in members))
    outer = _indent(text, container.start)
    lead = outer + style.unit
    shown = [f"{style.newline}{lead}{_shown(key, value, style, lead)}" for key, value in members]
    return Edit(*inside, f"{','.join(shown)}{style.newline}{outer}")


def replacement(text: str, node: Node, value: Any, style: Style) -> Edit:
    """Return the edit that replaces a value.

    The new value is written on several lines if the old one was, or if the style is.
    """
    was_long = "\n" in text[node.start : node.end] or (node.kind == "plain" and style.unit is not None)
    lead = _indent(text, node.start) if was_long else None
    return Edit(node.start, node.end, dump(value, style, lead))


def _shown(key: str | None, value: Any, style: Style, lead: str | None) -> str:
    shown = dump(value, style, lead)
    return shown if key is None else f"{json.dumps(key, ensure_ascii=False)}{style.colon}{shown}"


class Raw(msgspec.Struct, frozen=True):
    """The JSON text of a value, to be inserted unchanged."""

    text: str


def dump(value: Any, style: Style, lead: str | None) -> str:
    """Return a value as JSON: on one line if `lead` is `None`, else on several.

    `lead` is the indentation of the line where the value starts; its content is indented one level more. A list of
    strings is always on one line.
    """
    if isinstance(value, Raw):
        return value.text
    if not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False)
    is_flat = lead is None or (isinstance(value, list) and all(isinstance(item, str) for item in value))
    inner = None if is_flat or lead is None else lead + (style.unit or "")
    pairs = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    shown = [_shown(key, item, style, inner) for key, item in pairs]
    first, last = "{}" if isinstance(value, dict) else "[]"
    if inner is None:
        return f"{first}{style.comma.join(shown)}{last}"
    lines = f",{style.newline}{inner}".join(shown)
    return f"{first}{style.newline}{inner}{lines}{style.newline}{lead}{last}"


def _lead(text: str, start: int, end: int) -> str | None:
    """Return the indentation of the item at offset `end`; `None` if the item does not start its line."""
    match = _LINE_START.search(text[start:end])
    return match[1] if match else None


def _indent(text: str, offset: int) -> str:
    """Return the indentation of the line at an offset."""
    line = text[text.rfind("\n", 0, offset) + 1 : offset].removeprefix(_BOM)
    return line[: len(line) - len(line.lstrip(" \t"))]
