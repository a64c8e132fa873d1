r"""Detects regular expressions that may backtrack for exponential time, or are slow. Knows nothing of policies.

A loop is safe if the next character always decides whether it repeats or ends, and which alternative it takes. Then no
text can be matched in two ways, and there is nothing to backtrack to. `(a+)+` and `(\w+\s?)*` are unsafe, `(\w+,\s*)+`
is safe. `may_backtrack` is conservative: it may refuse a safe loop, but never accepts one that takes exponential time.
It accepts an expression that is only slow on long lines, such as `.*a.*b.*c`.

`is_slow` detects these by trying them. Two repeats that can match the same characters take a time that grows with the
third power of the length. On a text of a thousand characters that occur in the expression, such a search takes a tenth
of a second, and any other about a millisecond.
"""

from __future__ import annotations

import re
from re import _constants as op  # type: ignore[attr-defined]  # the parser is part of `re`, but not of its stubs
from re import _parser  # type: ignore[attr-defined]
from time import process_time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_MIN_REPEATS = 10
"""The number of repeats from which a loop is checked. Fewer multiply the time, but do not make it exponential."""

_SAMPLES = frozenset(map(chr, range(128))) | frozenset("éßяδ中٣\u00a0\u2003")
_REPEATS = {op.MAX_REPEAT, op.MIN_REPEAT}
_SINGLE = {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}
_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    op.CATEGORY_DIGIT: str.isdigit,
    op.CATEGORY_SPACE: str.isspace,
    op.CATEGORY_WORD: lambda c: c.isalnum() or c == "_",
    op.CATEGORY_NOT_DIGIT: lambda c: not c.isdigit(),
    op.CATEGORY_NOT_SPACE: lambda c: not c.isspace(),
    op.CATEGORY_NOT_WORD: lambda c: not (c.isalnum() or c == "_"),
}

_LENGTHS = (60, 120, 240, 480, 1200)
"""The lengths of the texts that are searched as a trial. If the shortest is slow, the longest would take minutes."""
_MAX_SECONDS = 0.02
_MAX_WORDS = 24
_WORDS = (*"a0 -A/.", "a ", "a1")

Item = tuple[Any, Any]
Chars = frozenset[str]


def may_backtrack(pattern: str) -> bool:
    """Return whether a valid pattern has a loop that can match some text in several ways."""
    tree = list(_parser.parse(pattern))
    return _Loops(_SAMPLES | frozenset(_literals(tree))).any_ambiguous(tree)


def _literals(tree: Iterable[Any]) -> Iterator[str]:
    """Yield the characters that a pattern names. If two classes overlap, one of these characters is in both."""
    for part in tree:
        if isinstance(part, tuple) and part and part[0] in {op.LITERAL, op.NOT_LITERAL}:
            yield from _both_cases(chr(part[1]))
        elif isinstance(part, tuple) and part and part[0] is op.RANGE:
            yield from (case for code in part[1] for case in _both_cases(chr(code)))
        elif isinstance(part, list | tuple | _parser.SubPattern):
            yield from _literals(part)


def _both_cases(character: str) -> Chars:
    return frozenset({character, character.lower()[:1], character.upper()[:1]})


class _Loops:
    """Analyses the loops of one pattern. `universe` is the set of characters that are considered."""

    def __init__(self, universe: Chars) -> None:
        self._universe = universe

    def any_ambiguous(self, items: Iterable[Item]) -> bool:
        """Return whether any loop in the items is ambiguous."""
        for item in items:
            for body in _parts(item):
                if self.any_ambiguous(body):
                    return True
                if item[0] in _REPEATS and item[1][1] >= _MIN_REPEATS and self._ambiguous(body, self._first(body)[0]):
                    return True
        return False

    def _ambiguous(self, items: Sequence[Item], follow: Chars) -> bool:
        """Return whether the next character may not decide how to match the items, before one of `follow`."""
        for item in reversed(items):
            if self._ambiguous_item(item, follow):
                return True
            first, empty = self._first_of(item)
            follow = first | follow if empty else first
        return False

    def _ambiguous_item(self, item: Item, follow: Chars) -> bool:
        if item[0] in _REPEATS:
            least, most, body = item[1]
            first, empty = self._first(body)
            if least != most and (empty or first & follow):
                return True
            return self._ambiguous(body, first | follow if most > 1 else follow)
        if item[0] is op.BRANCH:
            return self._ambiguous_choice(item[1][1], follow)
        if item[0] is op.SUBPATTERN:
            return self._ambiguous(item[1][-1], follow)
        return item[0] is op.GROUPREF_EXISTS

    def _ambiguous_choice(self, choices: Sequence[Sequence[Item]], follow: Chars) -> bool:
        if any(self._ambiguous(choice, follow) for choice in choices):
            return True
        if _distinct_words(choices):
            return False
        seen: Chars = frozenset()
        for choice in choices:
            first, empty = self._first(choice)
            first |= follow if empty else frozenset()
            if first & seen:
                return True
            seen |= first
        return False

    def _first(self, items: Iterable[Item]) -> tuple[Chars, bool]:
        """Return the characters that a sequence may start with, and whether it may be empty."""
        start: Chars = frozenset()
        for item in items:
            first, empty = self._first_of(item)
            start |= first
            if not empty:
                return start, False
        return start, True

    def _first_of(self, item: Item) -> tuple[Chars, bool]:
        kind, value = item
        if kind in _SINGLE:
            return self._chars(kind, value), False
        if kind in _REPEATS or kind is op.POSSESSIVE_REPEAT:
            first, empty = self._first(value[2])
            return first, empty or value[0] == 0
        if kind in {op.AT, op.ASSERT, op.ASSERT_NOT}:
            return frozenset(), True
        if kind in {op.SUBPATTERN, op.ATOMIC_GROUP, op.BRANCH}:
            firsts = [self._first(part) for part in _parts(item)]
            return frozenset().union(*(first for first, _ in firsts)), any(empty for _, empty in firsts)
        return self._universe, True

    def _chars(self, kind: Any, value: Any) -> Chars:
        if kind is op.ANY:
            return self._universe
        if kind is op.LITERAL:
            return _both_cases(chr(value))
        if kind is op.NOT_LITERAL:
            return self._universe - {chr(value)}
        members = frozenset(c for c in self._universe if any(_is_in(c, part) for part in value))
        if value[0][0] is op.NEGATE:
            return self._universe - members
        return frozenset(case for c in members for case in _both_cases(c))


def _is_in(character: str, part: Item) -> bool:
    kind, value = part
    if kind is op.LITERAL:
        return bool(ord(character) == value)
    if kind is op.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    return kind is op.CATEGORY and _CATEGORIES[value](character)


def _parts(item: Item) -> Sequence[Any]:
    """Return the sequences that an item is made of."""
    kind, value = item
    if kind in _REPEATS or kind is op.POSSESSIVE_REPEAT:
        return (value[2],)
    if kind is op.BRANCH:
        return tuple(value[1])
    if kind in {op.SUBPATTERN, op.ASSERT, op.ASSERT_NOT}:
        return (value[-1],)
    if kind is op.ATOMIC_GROUP:
        return (value,)
    if kind is op.GROUPREF_EXISTS:
        return tuple(part for part in value[1:] if part is not None)
    return ()


def _distinct_words(choices: Sequence[Sequence[Item]]) -> bool:
    """Return whether all alternatives are plain words, none a prefix of another, so that at most one can match."""
    if any(item[0] is not op.LITERAL for choice in choices for item in choice):
        return False
    words = ["".join(chr(item[1]) for item in choice).lower() for choice in choices]
    return not any(a.startswith(b) for i, a in enumerate(words) for j, b in enumerate(words) if i != j)


# -- slow ----------------------------------------------------------------------------------------------


def is_slow(pattern: str) -> bool:
    """Return whether the search for a valid pattern takes long on a text of a thousand characters."""
    compiled = re.compile(pattern)
    named = "".join(_named(_parser.parse(pattern)))
    prefixes = [named[:end] for end in range(1, min(len(named), _MAX_WORDS) + 1)]
    words = dict.fromkeys((*_WORDS, *named[:_MAX_WORDS], *prefixes, f"{named} "))
    return any(_takes_long(compiled, (word * length)[:length]) for length in _LENGTHS for word in words)


def _takes_long(compiled: re.Pattern[str], text: str) -> bool:
    started = process_time()
    compiled.search(text)
    return process_time() - started > _MAX_SECONDS


def _named(tree: Iterable[Any]) -> Iterator[str]:
    """Yield the literal characters of a pattern, in order."""
    for part in tree:
        if isinstance(part, tuple) and part and part[0] is op.LITERAL:
            yield chr(part[1])
        elif isinstance(part, list | tuple | _parser.SubPattern):
            yield from _named(part)
