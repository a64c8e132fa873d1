"""gitignore patterns as regular expressions. Knows no file.

The dialect is git's own. No expression tries again what it has matched (atomic groups), so none can take longer
than the text is long, times the length of the pattern. It is not taken from a library, because importing one costs
more than all the rest of a decision on the cold road; the tests hold it against `pathspec` and against git.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_POSIX = {
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
_ANY_FOLDERS = "(?:[^/]+/)*?"


class PatternError(ValueError):
    """A pattern that git would silently ignore."""


class Glob(msgspec.Struct, frozen=True):
    """A pattern, read. `body` is an expression for the whole path of what it names."""

    body: str
    negated: bool
    only_folders: bool

    @property
    def self_or_parent(self) -> str:
        """An expression that finds what it names, or anything below that, from the start of a path."""
        return self.body + ("/" if self.only_folders else r"(?:/|\Z)")

    @property
    def itself(self) -> str:
        """An expression for exactly what it names; folders end with a slash."""
        return self.body + ("/" if self.only_folders else "/?")


def read_glob(pattern: str) -> Glob:
    """Read one pattern; raise `PatternError` if git would not understand it."""
    text = _without_trailing_blanks(pattern)
    negated = text.startswith("!")
    text = text[negated:]
    only_folders = text.endswith("/")
    inner = text.rstrip("/") if only_folders else text
    if not inner.strip("/"):
        raise PatternError(f"{pattern!r} names nothing")
    anchored = "/" in inner
    segments = [part for part in inner.split("/") if part]
    try:
        return Glob(_body(segments if anchored else ["**", *segments]), negated, only_folders)
    except PatternError as error:
        raise PatternError(f"{pattern!r}: {error}") from None


def either(expressions: Iterable[str]) -> str:
    """Join expressions; those that may begin in any folder look for it once, and not each for itself."""
    anywhere: list[str] = []
    anchored: list[str] = []
    for text in expressions:
        inner = text.removeprefix(_ANY_FOLDERS)
        (anchored if inner == text else anywhere).append(f"(?:{inner})")
    return "|".join(anchored + ([f"{_ANY_FOLDERS}(?:{'|'.join(anywhere)})"] if anywhere else []))


def _without_trailing_blanks(text: str) -> str:
    stripped = text.rstrip(" \t\r\n")
    return stripped + " " if stripped.endswith("\\") and len(stripped) < len(text) else stripped


def _body(segments: list[str]) -> str:
    """Join the segments: between two `**`, the first place where a group fits is as good as any other."""
    if segments[-1] == "**":
        segments = [*segments, "*"]
    groups = _groups(segments)
    last = len(groups) - 1
    return "".join(_group(group, first=n == 0, last=n == last) for n, group in enumerate(groups))


def _groups(segments: list[str]) -> list[list[str]]:
    groups: list[list[str]] = [[]]
    for segment in segments:
        if segment != "**":
            groups[-1].append(segment)
        elif groups[-1] or len(groups) == 1:
            groups.append([])
    return groups


def _group(segments: list[str], *, first: bool, last: bool) -> str:
    text = "/".join(map(_segment, segments))
    if first:
        return text if last else text and f"{text}/"
    return f"{_ANY_FOLDERS}{text}" if last else f"(?>{_ANY_FOLDERS}{text}/)"


def _segment(segment: str) -> str:
    if not segment.strip("*"):
        return "[^/]+"
    fixed = [""]
    for char in _characters(segment):
        if char == "*":
            fixed.append("")
        else:
            fixed[-1] += char
    start, *between = fixed
    if not between:
        return start
    *middle, end = between
    return start + "".join(f"(?>[^/]*?{piece})" for piece in middle if piece) + f"[^/]*{end}"


def _characters(segment: str) -> Iterator[str]:
    """Give an expression for each character of a segment, and `*` for each star."""
    at = 0
    while at < len(segment):
        char = segment[at]
        if char == "[":
            one_of, at = _class(segment, at + 1)
            yield one_of
            continue
        if char == "\\":
            at += 1
            if at == len(segment):
                raise PatternError("it ends with a backslash")
            yield re.escape(segment[at])
        else:
            yield {"*": "*", "?": "[^/]"}.get(char) or re.escape(char)
        at += 1


def _class(segment: str, at: int) -> tuple[str, int]:
    """Read `[abc]`, `[!a-z]`, `[[:digit:]]` from behind its bracket; also tell where it ends."""
    negated = segment[at : at + 1] in {"!", "^"}
    at += negated
    start, content = at, ""
    while segment[at : at + 1] != "]" or at == start:
        if at >= len(segment):
            raise PatternError("its [ is never closed")
        name = re.match(r"\[:(\w+):\]", segment[at:])
        if name:
            content += _posix(name[1])
            at += name.end()
            continue
        if segment[at] == "\\":
            at += 1
        content += "-" if content and segment[at : at + 1] == "-" else re.escape(segment[at : at + 1])
        at += 1
    one_of = f"(?!/)[{'^' if negated else ''}{content}]"
    try:
        re.compile(one_of)
    except re.error as error:
        raise PatternError(str(error)) from None
    return one_of, at + 1


def _posix(name: str) -> str:
    if name not in _POSIX:
        raise PatternError(f"[:{name}:] is no class of characters")
    return _POSIX[name]
