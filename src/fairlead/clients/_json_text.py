"""JSON that belongs to somebody else, edited as text: what is not meant to change keeps every byte.

A parser that gives each value its place in the text, and edits that touch only the places they are about. So order,
indentation, line ends, escapes and the spelling of numbers stay as their owner wrote them. Knows no client.
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
"""Levels of nesting. No settings file has as many, and the parser calls itself for each."""

_BLANK = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": True, "false": False, "null": None}
_WORD = re.compile("true|false|null")
_LINE_START = re.compile(r"(?:\r?\n|\r)([ \t]*)\Z")
_MARK = "\ufeff"


class JsonTextError(FairleadError):
    """A text that is no JSON, or JSON that cannot be edited safely; says where, as line and column."""


class Node(msgspec.Struct, frozen=True):
    """A value and its place: `text[start:end]`."""

    kind: Literal["object", "array", "plain"]
    start: int
    end: int
    plain: Any = None
    """What a string, number or word means."""
    items: tuple[Node, ...] = ()
    """The elements of an array, or the values of an object."""
    keys: tuple[str, ...] = ()
    """The keys of an object, beside `items`; one that stands there twice is here twice."""
    starts: tuple[int, ...] = ()
    """Where each member begins, which is at its key."""

    def member(self, key: str) -> Node | None:
        """Give the value of a key, as most readers do: of two, the last."""
        found = [index for index, name in enumerate(self.keys) if name == key]
        return self.items[found[-1]] if found else None

    def value(self) -> Any:
        """Give the value without its places."""
        if self.kind == "plain":
            return self.plain
        values = [item.value() for item in self.items]
        return values if self.kind == "array" else dict(zip(self.keys, values, strict=True))

    def repeated(self) -> str | None:
        """Name a key that stands there twice."""
        return next((key for index, key in enumerate(self.keys) if key in self.keys[:index]), None)


class Edit(msgspec.Struct, frozen=True):
    """Put `text` in place of what stands from `start` to `end`."""

    start: int
    end: int
    text: str


def place(text: str, at: int) -> str:
    """Say where a position is, as `line:column`."""
    before = text[:at].removeprefix(_MARK)
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


# -- reading -------------------------------------------------------------------------------------------


def parse(text: str) -> Node:
    """Read a whole text, strictly: no comments, no trailing commas, nothing after the value."""
    start = _skip(text, len(_MARK) if text.startswith(_MARK) else 0)
    node = _value(text, start, 0)
    end = _skip(text, node.end)
    if end != len(text):
        _refuse(text, end, "expected the end of the file")
    return node


def _skip(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _refuse(text: str, at: int, expected: str) -> NoReturn:
    rest = text[at : at + 2]
    if rest in {"//", "/*"} or rest[:1] == "#":
        raise JsonTextError(f"{place(text, at)}: a comment, which JSON does not have; take it out")
    found = repr(text[at]) if rest else "the end of the file"
    raise JsonTextError(f"{place(text, at)}: not valid JSON: {expected}, got {found}")


def _value(text: str, at: int, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise JsonTextError(f"{place(text, at)}: nested more than {MAX_DEPTH} levels deep")
    first = text[at : at + 1]
    if first == "{":
        return _object(text, at, depth)
    if first == "[":
        return _array(text, at, depth)
    if first == '"':
        plain, end = _string(text, at)
        return Node("plain", at, end, plain)
    if found := _NUMBER.match(text, at):
        number = found[0]
        is_whole = number.lstrip("-").isdigit() and len(number) < MAX_DEPTH
        return Node("plain", at, found.end(), int(number) if is_whole else float(number))
    if found := _WORD.match(text, at):
        return Node("plain", at, found.end(), _WORDS[found[0]])
    _refuse(text, at, "expected a value")


def _string(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        _refuse(text, at, "expected a string in double quotes, closed on its line")
    return json.loads(found[0]), found.end()


def _array(text: str, at: int, depth: int) -> Node:
    items: list[Node] = []
    here = _skip(text, at + 1)
    while text[here : here + 1] != "]" or items:
        items.append(_value(text, here, depth + 1))
        here, is_last = _after_item(text, items[-1].end, "]")
        if is_last:
            break
    return Node("array", at, here + 1, items=tuple(items))


def _object(text: str, at: int, depth: int) -> Node:
    keys: list[str] = []
    starts: list[int] = []
    items: list[Node] = []
    here = _skip(text, at + 1)
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
    return Node("object", at, here + 1, items=tuple(items), keys=tuple(keys), starts=tuple(starts))


def _after_item(text: str, at: int, closing: str) -> tuple[int, bool]:
    """Go past the comma to the next item, or stay at the end of the container."""
    here = _skip(text, at)
    if text[here : here + 1] == closing:
        return here, True
    if text[here : here + 1] != ",":
        _refuse(text, here, f"expected ',' or '{closing}'")
    after = _skip(text, here + 1)
    if text[after : after + 1] == closing:
        raise JsonTextError(f"{place(text, here)}: a comma after the last item; take it out")
    return after, False


# -- editing -------------------------------------------------------------------------------------------


def apply(text: str, edits: Iterable[Edit]) -> str:
    """Make edits, none of which overlaps another."""
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end), reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def removal(container: Node, indices: Sequence[int]) -> Iterator[Edit]:
    """Take items out of an array or an object, each with one comma and the blanks before it."""
    begins = container.starts or tuple(item.start for item in container.items)
    gone = set(indices)
    kept = [index for index in range(len(begins)) if index not in gone]
    if gone and not kept:
        yield Edit(container.start + 1, container.end - 1, "")
        return
    for index in sorted(gone):
        if index < kept[0]:  # nothing stays before it: its comma is the one behind
            yield Edit(begins[index], begins[index + 1], "")
        else:
            yield Edit(container.items[index - 1].end, container.items[index].end, "")


class Style(msgspec.Struct, frozen=True):
    """How a text is laid out, so that what is added looks like the rest of it."""

    newline: str = "\n"
    unit: str | None = "  "
    """One level of indentation; `None` if the whole text is one line."""
    comma: str = ", "
    colon: str = ": "


def style_of(text: str, root: Node) -> Style:
    """Find the style of a document by its first member; an empty one gets the usual."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if not root.items:
        return Style(newline)
    begin = (root.starts or (root.items[0].start,))[0]
    is_tight = root.kind == "object" and text[root.items[0].start - 1] == ":"
    marks = (",", ":") if is_tight else (", ", ": ")
    lead = _lead(text, root.start + 1, begin)
    return Style(newline, None if lead is None else lead.removeprefix(_indent(text, root.start)), *marks)


def insertion(text: str, container: Node, members: Sequence[tuple[str | None, Any]], style: Style) -> Edit:
    """Add items behind the last: values to an array, keys with values to an object."""
    begins = container.starts or tuple(item.start for item in container.items)
    if begins:
        previous = container.items[-2].end if len(begins) > 1 else container.start + 1
        lead = _lead(text, previous, begins[-1])
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
    """Put another value in its place: over several lines if the one before was, or if there is room for it."""
    was_long = "\n" in text[node.start : node.end] or (node.kind == "plain" and style.unit is not None)
    lead = _indent(text, node.start) if was_long else None
    return Edit(node.start, node.end, dump(value, style, lead))


def _shown(key: str | None, value: Any, style: Style, lead: str | None) -> str:
    shown = dump(value, style, lead)
    return shown if key is None else f"{json.dumps(key, ensure_ascii=False)}{style.colon}{shown}"


class Raw(msgspec.Struct, frozen=True):
    """A value that was cut out of a text, put back as it was spelt."""

    text: str


def dump(value: Any, style: Style, lead: str | None) -> str:
    """Write a value: on one line, or with what is in it one level below `lead`. A list of words stays on its line."""
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
    """Give the indentation of what begins at `end`; `None` if it does not begin its line."""
    found = _LINE_START.search(text[start:end])
    return found[1] if found else None


def _indent(text: str, at: int) -> str:
    """Give the indentation of the line that a position is on."""
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix(_MARK)
    return line[: len(line) - len(line.lstrip(" \t"))]
