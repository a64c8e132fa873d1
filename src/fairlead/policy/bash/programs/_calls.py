"""A call of a program, its options, and what the call does: the words in which the table of programs speaks."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec

from fairlead.policy.bash._words import is_unknown, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Mode: TypeAlias = Literal["read", "write", "create", "delete", "move"]


class Call(msgspec.Struct, frozen=True):
    """A simple command as its program sees it. Words are marked text."""

    program: str
    args: list[str]
    stdin: str | None = None
    """The text of a here-document or here-string."""
    piped: bool = False
    """Its input comes from another command."""


class Use(msgspec.Struct, frozen=True):
    """The call does this to the file that the word names."""

    mode: Mode
    word: str
    below: bool = False
    """And to whatever lies below it."""
    if_folder: str | None = None
    """Only if this word names a folder."""
    if_exists: bool = False
    """Only if there is such a file: the word may name something else."""


class Run(NamedTuple):
    """The call runs another command."""

    words: list[str]
    folder: str | None = None
    """In this folder."""


class Script(NamedTuple):
    """The call runs a text as a shell script."""

    text: str


class Doubt(NamedTuple):
    """The call may do what nobody can tell."""

    text: str


Effect: TypeAlias = Use | Run | Script | Doubt
Program: TypeAlias = "Callable[[Call], Iterable[Effect]]"


class Options(NamedTuple):
    """The arguments of a call, sorted."""

    given: dict[str, list[str]]
    operands: list[str]

    def has(self, *names: str) -> bool:
        """Whether one of the options is given."""
        return not self.given.keys().isdisjoint(names)

    def values(self, *names: str) -> list[str]:
        """The values of these options, in no promised order."""
        return [value for name in names for value in self.given.get(name, ())]


def options(args: list[str], valued: str = "", long: str = "") -> Options:
    """Sort arguments as getopt does; `valued` letters and `long` names (by blanks) take a value.

    A long option may be shortened, as GNU programs allow.
    """
    given: dict[str, list[str]] = {}
    operands: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg[:1] != "-" or arg == "-":
            operands.append(arg)
        elif arg == "--":
            operands += rest
        elif arg[1] == "-":
            names = split_names(long)
            name, equals, value = arg[2:].partition("=")
            name = next((full for full in names if full.startswith(name)), name)
            if not equals and name in names:
                value = next(rest, "")
            given.setdefault(name, []).append(value)
        else:
            _letters(arg, valued, rest, given)
    return Options(given, operands)


@lru_cache(maxsize=256)
def split_names(long: str) -> tuple[str, ...]:
    """The names in a text of the table, of which there are as many as programs."""
    return tuple(long.split())


def _letters(arg: str, valued: str, rest: Iterator[str], given: dict[str, list[str]]) -> None:
    """The letters behind one dash; the value of the last may be the next argument."""
    for at, letter in enumerate(arg[1:], 1):
        if letter in valued:
            given.setdefault(letter, []).append(arg[at + 1 :] or next(rest, ""))
            return
        given.setdefault(letter, []).append("")


def script(word: str, who: str) -> Effect:
    """A word as shell text, if it is known."""
    if is_unknown(word):
        return Doubt(f"{who} runs a script that is only known when it runs: {plain(word)}")
    return Script(plain(word))


def uses(mode: Mode, words: Iterable[str], *, below: bool = False) -> list[Effect]:
    """The same use of each word."""
    return [Use(mode, word, below) for word in words]


def basename(word: str) -> str:
    """The last part of a path."""
    return word.rstrip("/").rpartition("/")[2]
