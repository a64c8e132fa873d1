"""Parses YAML text to a tree of nodes, each with its position. Knows YAML 1.2, and nothing of policies.

Aliases are not expanded: an alias becomes the node that it refers to. A document whose tree would exhaust memory or
stack is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.policy.config._errors import Diagnostic, PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

MAX_POLICY_BYTES = 4 * 1024 * 1024
_MAX_ALIASED = 100_000
_MAX_DEPTH = 100

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?[1-9][0-9]{18,}"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CONSTANTS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word in {"true", "True", "TRUE"} for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class Node(msgspec.Struct):
    """A value and its position.

    `value` is a list of nodes, a list of pairs of nodes (a mapping, whose keys may repeat), or a plain value.
    """

    kind: str
    """`null`, `bool`, `int`, `float`, `text`, `list` or `mapping`."""
    line: int
    column: int
    value: Any
    text: str = ""
    """The source of a scalar."""
    size: int = 1
    """The number of values in it, itself and the values of its aliases included."""
    height: int = 1
    """The number of nested levels; 1 for a plain value."""


def compose(text: str, file: str) -> Node | None:
    """Parse the only document of a file; `None` if the file is empty. Raise `PolicyError` if it cannot be parsed."""
    import yaml

    _refuse_unprintable(text, file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Composer(file, text).compose(yaml.parse(text, loader))
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise PolicyError((Diagnostic(file, 1, 1, f"not valid YAML: {' '.join(str(error).split())}"),)) from None


def _refuse_unprintable(text: str, file: str) -> None:
    match = _UNPRINTABLE.search(text)
    if match:
        line = text.count("\n", 0, match.start()) + 1
        column = match.start() - text.rfind("\n", 0, match.start())
        message = f"YAML does not allow the character U+{ord(match[0]):04X}; remove it, or write it in double quotes"
        raise PolicyError((Diagnostic(file, line, column, f"{message} as \\u{ord(match[0]):04x}"),))


class _Composer:
    """Builds the tree from the parser's events, with an explicit stack."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._anchors: dict[str | None, Node | None] = {}  # None while the node is open
        self._open: list[tuple[Node, str | None]] = []
        self._root: Node | None = None
        self._aliased = 0

    def compose(self, events: Iterator[yaml.Event]) -> Node | None:
        import yaml

        documents = 0
        for event in events:
            if isinstance(event, yaml.ScalarEvent):
                self._put(self._scalar(event), event.anchor)
            elif isinstance(event, yaml.CollectionStartEvent):
                self._start(event, "list" if isinstance(event, yaml.SequenceStartEvent) else "mapping")
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._error(
                        event, "a second document starts here; a policy is one document, so remove the line `---`"
                    )
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        tag = self._tag(event, ("str", "int", "float", "bool", "null"))
        plain = event.implicit[0] and tag is None
        kind, value = _resolve(event.value) if plain or tag not in {None, "str"} else ("text", event.value)
        if tag not in {None, "str", kind}:
            raise self._error(event, f"{event.value!r} is not a !!{tag}; remove the tag")
        return Node(kind, *_position(event.start_mark), value, event.value)

    def _tag(self, event: yaml.NodeEvent, known: tuple[str, ...]) -> str | None:
        tag: str | None = event.tag  # type: ignore[attr-defined]  # every event that is passed here has one
        if tag in {None, "!"}:
            return None if tag is None else "str"
        name = _PLAIN_TAGS.get(str(tag))
        if name not in known:
            if str(tag).startswith("!"):
                raise self._error(event, _must_be_quoted(self._text, *_position(event.start_mark)))
            raise self._error(event, f"the tag {tag} is not supported; remove it")
        return name

    def _start(self, event: yaml.CollectionStartEvent, kind: str) -> None:
        self._tag(event, ("str", "seq") if kind == "list" else ("str", "map"))
        if len(self._open) >= _MAX_DEPTH:
            raise self._error(event, f"nested more than {_MAX_DEPTH} levels deep; a policy needs fewer than 10")
        if event.anchor:
            self._anchors[event.anchor] = None
        node = Node(kind, *_position(event.start_mark), [])
        self._open.append((node, event.anchor))

    def _end(self) -> None:
        node, anchor = self._open.pop()
        if node.kind == "mapping":
            node.value = list(zip(node.value[::2], node.value[1::2], strict=True))
        self._put(node, anchor)

    def _alias(self, event: yaml.AliasEvent) -> None:
        node = self._anchors.get(event.anchor, _UNKNOWN)
        if node is None:
            raise self._error(
                event, f"the alias *{event.anchor} is inside the value that it refers to; write the value out"
            )
        if node is _UNKNOWN:
            in_quotes = _in_quotes(self._text, *_position(event.start_mark))
            raise self._error(event, f"there is no &{event.anchor} above; to write it as text, use {in_quotes}")
        self._aliased += node.size
        if self._aliased > _MAX_ALIASED:
            raise self._error(event, f"aliases refer to more than {_MAX_ALIASED} values; write the values out")
        if len(self._open) + node.height > _MAX_DEPTH:
            raise self._error(event, f"nested more than {_MAX_DEPTH} levels deep; a policy needs fewer than 10")
        self._put(node, None)

    def _put(self, node: Node, anchor: str | None) -> None:
        if anchor:
            self._anchors[anchor] = node
        if self._open:
            parent = self._open[-1][0]
            parent.value.append(node)
            parent.size += node.size
            parent.height = max(parent.height, node.height + 1)
        else:
            self._root = node

    def _error(self, event: yaml.Event, message: str) -> PolicyError:
        return PolicyError((Diagnostic(self._file, *_position(event.start_mark), message),))


_UNKNOWN = Node("null", 0, 0, None)


def _resolve(text: str) -> tuple[str, object]:
    """Return the kind and value of a plain scalar. `yes`, `no` and dates are text, as in YAML 1.2."""
    if text in _CONSTANTS:
        value = _CONSTANTS[text]
        return ("null" if value is None else "bool"), value
    if _INT.fullmatch(text):
        return "int", int(text, 0)
    if _FLOAT.fullmatch(text):
        return "float", float(text.replace(".inf", "inf").replace(".nan", "nan").replace(".I", "I").replace(".N", "N"))
    return "text", text


def _position(mark: yaml.Mark | yaml._yaml.Mark | None) -> tuple[int, int]:
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


# -- syntax errors -------------------------------------------------------------------------------------

_BRACKET = "the bracket that opens here is not closed, or a comma is missing in it; close it, or add the comma"
_INDENT = "wrong indentation; give the entries of one list or mapping the same indentation"
_EXPLAINED = (
    # text of the parser, our message, and whether it points to the start of the construct
    ("quoted scalar found unexpected end", "the quote that opens here is never closed; close it", True),
    ("flow sequence", _BRACKET, True),
    ("flow mapping", _BRACKET, True),
    (
        "mapping values are not allowed",
        "a second `:` in one line, or a key that is indented too far; put text that contains `: ` in quotes",
        False,
    ),
    ("block collection", _INDENT, False),
    ("block mapping", _INDENT, False),
    (
        "unknown escape character",
        "not an escape sequence of double quotes; use single quotes, or double the backslash",
        False,
    ),
    ("found a tab character", "a tab in the indentation; use spaces", False),
)


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> PolicyError:
    parser_text = f"{error.context or ''} {error.problem or ''}".strip()
    at_start = False
    if "scanning an alias" in parser_text or "scanning a tag" in parser_text:
        at_start = True
        message = _must_be_quoted(text, *_position(error.context_mark))
    elif "cannot start any token" in parser_text:
        message = _must_be_quoted(text, *_position(error.problem_mark))
    else:
        fallback = f"not valid YAML: {parser_text}; check the indentation, colons and quotes here"
        explained = (entry[1:] for entry in _EXPLAINED if entry[0] in parser_text)
        message, at_start = next(explained, (fallback, False))
    mark = error.context_mark if at_start and error.context_mark else error.problem_mark
    return PolicyError((Diagnostic(file, *_position(mark), message),))


def _must_be_quoted(text: str, line: int, column: int) -> str:
    """Return the message about text that starts with a special character of YAML, or with a tab."""
    character = _from(text, line, column)[:1]
    if character == "\t":
        return "a tab in the indentation; use spaces"
    return f"text that starts with {character} must be quoted; write {_in_quotes(text, line, column)}"


def _in_quotes(text: str, line: int, column: int) -> str:
    """Return the text at a position in quotes, up to its probable end."""
    before, rest = _from(text, line, 1)[: column - 1], _from(text, line, column)
    in_brackets = any(before.count(opens) > before.count(closes) for opens, closes in ("[]", "{}"))
    end = (_END_IN_BRACKETS if in_brackets else _END).match(rest)
    return quoted((end[0] if end else rest).strip().rstrip(","))


_END = re.compile(r"(?:(?! #|:(?: |$)).)*")
_END_IN_BRACKETS = re.compile(r"(?:\[[^\]]*\]|(?! #|:(?: |$))[^,\]}])*")


def _from(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    return lines[line - 1][column - 1 :].rstrip("\r") if line <= len(lines) else ""


def quoted(text: str) -> str:
    """Return a text in YAML quotes."""
    return f'"{text}"' if not set(text) & set('"\\') else "'" + text.replace("'", "''") + "'"
