"""What is wrong with a policy file: one `Mistake` a place, and the error that carries them all. Knows no YAML."""

from __future__ import annotations

import msgspec

from fairlead.errors import FairleadError

MAX_MISTAKES = 100
"""So many mistakes are told of one file; whoever has more sees the next ones after fixing these."""


class Mistake(msgspec.Struct, frozen=True, order=True):
    """One place that is wrong. Lines and columns count from 1; 0 is the file as a whole."""

    file: str
    line: int
    column: int
    message: str
    """What is wrong; what would be right."""

    def __str__(self) -> str:
        place = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{place}: {self.message}"


class PolicyError(FairleadError, ValueError):
    """A policy that cannot be used, with everything that is wrong with it, in the order of the file."""

    def __init__(self, mistakes: tuple[Mistake, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class TooManyMistakes(Exception):
    """Enough has been found wrong with one file."""


class Collector:
    """Gathers the mistakes of one file, or other remarks on it; `most` of them, and no more."""

    def __init__(self, file: str, *, most: int | None = MAX_MISTAKES) -> None:
        self.file = file
        self._most = most
        self._found: dict[Mistake, None] = {}

    def add(self, line: int, column: int, message: str) -> None:
        """Note a mistake. What an alias repeats is noted once."""
        self._found[Mistake(self.file, line, column, message)] = None
        if self._most is not None and len(self._found) >= self._most:
            raise TooManyMistakes

    def error(self) -> PolicyError | None:
        """Give all that was found, or `None` if nothing was."""
        return PolicyError(tuple(sorted(self._found))) if self._found else None
