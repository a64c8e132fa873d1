"""Reads a command line of words and options, for the commands that take both in any order."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_OPTION = re.compile(r"(--?[A-Za-z][\w-]*)(?:=(.*))?", re.DOTALL)
"""`- a list` and `-5 degrees` are text, and so is a lone dash."""

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST_NUMBER = 9


class Given:
    """What stands on a command line."""

    def __init__(self, words: Sequence[tuple[str, bool]], options: Mapping[str, tuple[str, ...]]) -> None:
        """Hold what is no option, each with whether it stands after one; and the values of each option, in order."""
        self.words = words
        self.options = options

    def __contains__(self, option: str) -> bool:
        """Tell whether an option is there."""
        return option in self.options

    def value(self, option: str, usual: str = "") -> str:
        """Give an option's value; of several, the last."""
        return self.options[option][-1] if option in self.options else usual

    def texts(self) -> list[str]:
        """Give what is no option."""
        return [word for word, _ in self.words]


def read(command: str, args: Sequence[str], *, flags: Collection[str] = (), values: Collection[str] = ()) -> Given:
    """Read a command line: `--name value`, `--name=value`, flags, and words. After `--` everything is a word."""
    words: list[tuple[str, bool]] = []
    options: dict[str, tuple[str, ...]] = {}
    rest = iter(args)
    for word in rest:
        if word == "--":
            words += [(text, True) for text in rest]
            break
        match = _OPTION.fullmatch(word)
        if match is None or (" " in word and match[2] is None):
            words.append((word, bool(options)))
            continue
        name, value = match[1], match[2]
        if name in values:
            value = next(rest, None) if value is None else value
            if value is None:
                raise UsageError(f"{name} needs a value")
        elif name not in flags or value is not None:
            raise UsageError(f"unknown option {word!r}; see fairlead {command} --help")
        options[name] = (*options.get(name, ()), value or "")
    return Given(words, options)


def read_span(option: str, text: str) -> float:
    """Read a time as 30s, 10m, 2h or 1d, in seconds."""
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not (number.isascii() and number.isdecimal() and len(number) <= _LONGEST_NUMBER):
        raise UsageError(f"{option}: expected a time like 30s, 10m, 2h or 1d, got {text!r}")
    return float(int(number) * _UNITS[unit])


def read_number(option: str, text: str) -> int:
    """Read a whole number above 0; `#12` is one, too."""
    number = text.removeprefix("#")
    if not (number.isascii() and number.isdecimal() and len(number) <= 2 * _LONGEST_NUMBER and int(number)):
        raise UsageError(f"{option}: expected a whole number above 0, got {text!r}")
    return int(number)


def choose(option: str, text: str, allowed: Sequence[str]) -> str:
    """Read one of a few words."""
    if text not in allowed:
        raise UsageError(f"{option}: expected one of {', '.join(allowed)}, got {text!r}")
    return text
