"""Translates gitignore patterns to regular expressions."""

from __future__ import annotations

import re

from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_FOLDERS = "(?:[^/]+/)*?"
_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_SPECIAL = frozenset("()[]{}?*+-|^$\\.&~# \t\n\r\v\f")
"""What `re.escape` escapes; a process that decides one event may not need `re`."""
MAX_ALTERNATIVES = 100
_BRACES = r"(?<!\\)\{((?:[^{}\\]|\\.)*,(?:[^{}\\]|\\.)*)\}"
_POSIX_CLASS = r"\[:([^\]]*):\]"


class PatternError(ValueError):
    """A pattern that matches nothing in git."""


class Translated(Struct, frozen=True):
    """A pattern as regular expressions."""

    self_or_parent: str
    """Matches the start of a path: what the pattern names, or anything below that."""
    itself: str
    """Matches exactly what the pattern names; folders end with a slash."""
    negated: bool
    plain: tuple[tuple[str, bool], ...] = ()
    """The text of each alternative, and whether it names only folders; empty if one has `?`, `[` or `\\`."""


def translate(pattern: str) -> Translated:
    """Translate one pattern. Raises `PatternError` if it matches nothing in git."""
    text = _without_trailing_blanks(pattern)
    negated = text.startswith("!")
    text = text[negated:]
    only_folders = text.endswith("/")
    inner = text.rstrip("/") if only_folders else text
    if not inner.strip("/"):
        raise PatternError(f"{pattern!r} names nothing")
    try:
        segments = [segment for segment in _segments(inner) if segment]
    except PatternError as error:
        raise PatternError(f"{pattern!r}: {error}") from None
    anchored = "/" in inner
    body = _body(segments if anchored else [["*", "*"], *segments])
    ends = ("/", "/") if only_folders else (r"(?:/|\Z)", "/?")
    plain = () if any(char in inner for char in "[?\\") else ((inner, only_folders),)
    return Translated(body + ends[0], body + ends[1], negated, plain)


def _without_trailing_blanks(text: str) -> str:
    """Drop the blanks at the end, except one that a backslash escapes."""
    stripped = text.rstrip(" \t\r\n")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return text[: len(stripped) + 1] if backslashes % 2 else stripped


def _segments(text: str) -> Iterator[list[str]]:
    """Yield the parts between slashes, each as a list: `*` for a star, an expression for any other character."""
    segment: list[str] = []
    offset = 0
    while offset < len(text):
        char = text[offset]
        offset += 1
        if char == "/":
            yield segment
            segment = []
        elif char == "[":
            expression, offset = _character_class(text, offset)
            segment.append(expression)
        elif char == "\\":
            segment.append(_literal(_escaped(text, offset)))
            offset += 1
        else:
            segment.append({"*": "*", "?": "[^/]"}.get(char) or _literal(char))
    yield segment


def _literal(char: str) -> str:
    return f"\\{char}" if char in _SPECIAL else char


def _escaped(text: str, offset: int) -> str:
    if offset >= len(text):
        raise PatternError("it ends with a backslash")
    return text[offset]


def _body(segments: list[list[str]]) -> str:
    """Join the segments. A group between two `**` matches in the first folder possible; others are not tried."""
    if _is_any_folders(segments[-1]):
        segments = [*segments, ["*"]]
    groups = _groups(segments)
    last = len(groups) - 1
    return "".join(_group(group, first=n == 0, last=n == last) for n, group in enumerate(groups))


def _is_any_folders(segment: list[str]) -> bool:
    return len(segment) > 1 and all(part == "*" for part in segment)


def _groups(segments: list[list[str]]) -> list[list[list[str]]]:
    """Split the segments at each `**`."""
    groups: list[list[list[str]]] = [[]]
    for segment in segments:
        if not _is_any_folders(segment):
            groups[-1].append(segment)
        elif groups[-1] or len(groups) == 1:
            groups.append([])
    return groups


def _group(segments: list[list[str]], *, first: bool, last: bool) -> str:
    text = "/".join(map(_segment, segments))
    if first:
        return text if last else text and f"{text}/"
    return f"{ANY_FOLDERS}{text}" if last else f"(?>{ANY_FOLDERS}{text}/)"


def _segment(parts: list[str]) -> str:
    if all(part == "*" for part in parts):
        return "[^/]+"
    between_stars = [""]
    for part in parts:
        if part == "*":
            between_stars.append("")
        else:
            between_stars[-1] += part
    start, *rest = between_stars
    if not rest:
        return start
    *middle, end = rest
    return start + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{end}"


def _character_class(text: str, offset: int) -> tuple[str, int]:
    """Translate `[abc]`, `[!a-z]` or `[[:digit:]]`, from after the bracket.

    Return the expression, and the offset after the class.
    """
    negated = text[offset : offset + 1] in {"!", "^"}
    offset += negated
    start, members = offset, ""
    while text[offset : offset + 1] != "]" or offset == start:
        member, offset = _member(text, offset)
        members += member
    return (f"[^/{members}]" if negated else f"(?!/)[{members}]"), offset + 1


def _member(text: str, offset: int) -> tuple[str, int]:
    """Translate a character, a range or a named class; return the expression, and the offset after it."""
    if named := re.compile(_POSIX_CLASS).match(text, offset):
        if named[1] not in _POSIX_CLASSES:
            raise PatternError(f"[:{named[1]}:] is not a class of characters")
        return _POSIX_CLASSES[named[1]], named.end()
    first, offset = _class_character(text, offset)
    if text[offset : offset + 1] != "-" or text[offset + 1 : offset + 2] in {"]", ""}:
        return re.escape(first), offset
    last, offset = _class_character(text, offset + 1)
    return f"{re.escape(first)}{f'-{re.escape(last)}' if first <= last else ''}", offset  # git: `[z-a]` is `[z]`


def _class_character(text: str, offset: int) -> tuple[str, int]:
    if offset >= len(text):
        raise PatternError("its [ is never closed")
    if text[offset] == "\\":
        return _escaped(text, offset + 1), offset + 2
    return text[offset], offset + 1


# -- alternatives ------------------------------------------------------------------------------------


def translate_all(texts: list[str]) -> Translated:
    """Translate alternatives to one expression. Raises `PatternError` if one matches nothing in git."""
    options = [translate(text) for text in texts]
    if len(options) == 1:
        return options[0]
    return Translated(
        f"(?:{'|'.join(option.self_or_parent for option in options)})",
        f"(?:{'|'.join(option.itself for option in options)})",
        negated=options[0].negated,
        plain=tuple(plain for option in options for plain in option.plain)
        if all(translated.plain for translated in options)
        else (),
    )


def expand_braces(text: str) -> list[str]:
    """Return the alternatives: `*.{a,b}` → `*.a`, `*.b`. Braces without a comma, or behind a backslash, stay.

    Raise `PatternError` if there are more than `MAX_ALTERNATIVES`.
    """
    if "{" not in text:
        return [text]
    expanded = [text]
    while len(expanded) <= MAX_ALTERNATIVES:
        offset = next(
            (index for index, option in enumerate(expanded) if "{" in option and re.search(_BRACES, option)), None
        )
        if offset is None:
            return expanded
        expanded[offset : offset + 1] = _alternatives(expanded[offset])
    raise PatternError(f"{text!r} has more than {MAX_ALTERNATIVES} alternatives")


def _alternatives(text: str) -> list[str]:
    """Expand the first braces that contain no braces: `{a,{b,c}}` → `{a,b}`, `{a,c}`. Without any, return the text."""
    braces = re.search(_BRACES, text)
    if braces is None:
        return [text]
    return [f"{text[: braces.start()]}{option}{text[braces.end() :]}" for option in braces[1].split(",")]
