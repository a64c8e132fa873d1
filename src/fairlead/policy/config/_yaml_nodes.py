"""From YAML text to a tree of nodes, each with its place. Knows the words of YAML 1.2, and nothing of policies.

Nothing is expanded: an alias is the very node that it repeats. What would exhaust memory or stack is refused before
anybody walks the tree.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.policy.config._errors import Mistake, PolicyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

MAX_POLICY_BYTES = 4 * 1024 * 1024
_MAX_REPEATED = 100_000
_MAX_DEPTH = 100

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?[1-9][0-9]{18,}"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_WORDS = dict.fromkeys(("", "~", "null", "Null", "NULL")) | {
    word: word in {"true", "True", "TRUE"} for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}
_PLAIN_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}


class Node(msgspec.Struct):
    """A value and where it stands.

    `value` is a list of nodes, a list of pairs of nodes (a mapping, whose keys may repeat), or a plain value.
    """

    kind: str
    """`null`, `bool`, `int`, `float`, `text`, `list` or `mapping`."""
    line: int
    column: int
    value: Any
    text: str = ""
    """A scalar as it is written."""
    size: int = 1
    """How many values it holds, itself and what its aliases repeat included."""
    height: int = 1


def compose(text: str, file: str) -> Node | None:
    """Read the one document of a file; `None` if it holds nothing."""
    import yaml

    _refuse_odd_characters(text, file)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Composer(file, text).compose(yaml.parse(text, loader))
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(error, text, file) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise PolicyError((Mistake(file, 1, 1, f"not valid YAML: {' '.join(str(error).split())}"),)) from None


def _refuse_odd_characters(text: str, file: str) -> None:
    found = _UNPRINTABLE.search(text)
    if found:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        message = f"the character U+{ord(found[0]):04X} cannot stand in YAML; remove it, or write it in double quotes"
        raise PolicyError((Mistake(file, line, column, f"{message} as \\u{ord(found[0]):04x}"),))


class _Composer:
    """Builds the tree from the parser's events, with a stack of its own."""

    def __init__(self, file: str, text: str) -> None:
        self._file = file
        self._text = text
        self._anchors: dict[str | None, Node | None] = {}  # None while the node is open
        self._open: list[tuple[Node, str | None]] = []
        self._root: Node | None = None
        self._repeated = 0

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
                    raise self._wrong(event, "a second document begins here; a policy is one, so remove the line `---`")
        return self._root

    def _scalar(self, event: yaml.ScalarEvent) -> Node:
        tag = self._tag(event, ("str", "int", "float", "bool", "null"))
        plain = event.implicit[0] and tag is None
        kind, value = _resolve(event.value) if plain or tag not in {None, "str"} else ("text", event.value)
        if tag not in {None, "str", kind}:
            raise self._wrong(event, f"{event.value!r} is no !!{tag}; remove the tag")
        return Node(kind, *_place(event.start_mark), value, event.value)

    def _tag(self, event: yaml.NodeEvent, known: tuple[str, ...]) -> str | None:
        tag: str | None = event.tag  # type: ignore[attr-defined]  # every event that comes here has one
        if tag in {None, "!"}:
            return None if tag is None else "str"
        name = _PLAIN_TAGS.get(str(tag))
        if name not in known:
            if str(tag).startswith("!"):
                raise self._wrong(event, _must_be_quoted(self._text, *_place(event.start_mark)))
            raise self._wrong(event, f"the tag {tag} means nothing here; remove it")
        return name

    def _start(self, event: yaml.CollectionStartEvent, kind: str) -> None:
        self._tag(event, ("str", "seq") if kind == "list" else ("str", "map"))
        if len(self._open) >= _MAX_DEPTH:
            raise self._wrong(event, f"nested more than {_MAX_DEPTH} deep; a policy needs less than 10")
        if event.anchor:
            self._anchors[event.anchor] = None
        node = Node(kind, *_place(event.start_mark), [])
        self._open.append((node, event.anchor))

    def _end(self) -> None:
        node, anchor = self._open.pop()
        if node.kind == "mapping":
            node.value = list(zip(node.value[::2], node.value[1::2], strict=True))
        self._put(node, anchor)

    def _alias(self, event: yaml.AliasEvent) -> None:
        node = self._anchors.get(event.anchor, _UNKNOWN)
        if node is None:
            raise self._wrong(event, f"the alias *{event.anchor} stands inside of what it repeats; write it out")
        if node is _UNKNOWN:
            in_quotes = _in_quotes(self._text, *_place(event.start_mark))
            raise self._wrong(event, f"nothing above is named &{event.anchor}; for a text write {in_quotes}")
        self._repeated += node.size
        if self._repeated > _MAX_REPEATED:
            raise self._wrong(event, f"aliases repeat more than {_MAX_REPEATED} values; write out what is meant")
        if len(self._open) + node.height > _MAX_DEPTH:
            raise self._wrong(event, f"nested more than {_MAX_DEPTH} deep; a policy needs less than 10")
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

    def _wrong(self, event: yaml.Event, message: str) -> PolicyError:
        return PolicyError((Mistake(self._file, *_place(event.start_mark), message),))


_UNKNOWN = Node("null", 0, 0, None)


def _resolve(text: str) -> tuple[str, object]:
    """Give the kind and value of a plain scalar. `yes`, `no` and dates are text, as YAML 1.2 has it."""
    if text in _WORDS:
        value = _WORDS[text]
        return ("null" if value is None else "bool"), value
    if _INT.fullmatch(text):
        return "int", int(text, 0)
    if _FLOAT.fullmatch(text):
        return "float", float(text.replace(".inf", "inf").replace(".nan", "nan").replace(".I", "I").replace(".N", "N"))
    return "text", text


def _place(mark: yaml.Mark | yaml._yaml.Mark | None) -> tuple[int, int]:
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


# -- syntax errors -------------------------------------------------------------------------------------

_BRACKET = "the bracket that opens here is not closed, or a comma is missing in it; close it, or add the comma"
_INDENT = "not indented like the lines that it belongs to; give the entries of one list or mapping the same indent"
_EXPLAINED = (
    # words of the parser, what they mean, and whether the place to look at is where the construct begins
    ("quoted scalar found unexpected end", "the quote that opens here is never closed; close it", True),
    ("flow sequence", _BRACKET, True),
    ("flow mapping", _BRACKET, True),
    (
        "mapping values are not allowed",
        "a second `:` in one line, or a key that is indented too far; put text that holds `: ` in quotes",
        False,
    ),
    ("block collection", _INDENT, False),
    ("block mapping", _INDENT, False),
    (
        "unknown escape character",
        "this backslash means nothing in double quotes; use single quotes, or double the backslash",
        False,
    ),
    ("found a tab character", "a tab; indent with spaces", False),
)


def _syntax_error(error: yaml.MarkedYAMLError, text: str, file: str) -> PolicyError:
    words = f"{error.context or ''} {error.problem or ''}".strip()
    at_its_start = False
    if "scanning an alias" in words or "scanning a tag" in words:
        at_its_start = True
        message = _must_be_quoted(text, *_place(error.context_mark))
    elif "cannot start any token" in words:
        message = _must_be_quoted(text, *_place(error.problem_mark))
    else:
        otherwise = f"not valid YAML: {words}; look at the indentation, colons and quotes here"
        found = (entry[1:] for entry in _EXPLAINED if entry[0] in words)
        message, at_its_start = next(found, (otherwise, False))
    mark = error.context_mark if at_its_start and error.context_mark else error.problem_mark
    return PolicyError((Mistake(file, *_place(mark), message),))


def _must_be_quoted(text: str, line: int, column: int) -> str:
    """Say what to do about a character that has a meaning of its own in YAML, and so cannot begin a text."""
    character = _from(text, line, column)[:1]
    if character == "\t":
        return "a tab; indent with spaces"
    return f"text that begins with {character} must stand in quotes; write {_in_quotes(text, line, column)}"


def _in_quotes(text: str, line: int, column: int) -> str:
    """Write what was probably meant to be one text as one."""
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
    """Put a text in quotes, as YAML has it."""
    return f'"{text}"' if not set(text) & set('"\\') else "'" + text.replace("'", "''") + "'"
