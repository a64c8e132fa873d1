"""The mistakes in a policy file: a `Diagnostic` for each wrong value, and the error with all of them. Knows no YAML."""

from __future__ import annotations

from fairlead.errors import FairleadError
from fairlead.structs import Struct

MAX_MISTAKES = 100
"""The maximum number of mistakes that are reported for one file."""


class Diagnostic(Struct, frozen=True, order=True):
    """A mistake or a hint, with its position. Lines and columns count from 1; 0 is the file as a whole."""

    file: str
    line: int
    column: int
    message: str
    """The mistake, and how to correct it."""

    def __str__(self) -> str:
        position = f":{self.line}:{self.column}" if self.line else ""
        return f"{self.file}{position}: {self.message}"


class PolicyError(FairleadError, ValueError):
    """A policy that cannot be used, with all its mistakes in the order of the file."""

    def __init__(self, mistakes: tuple[Diagnostic, ...]) -> None:
        super().__init__("\n".join(map(str, mistakes)))
        self.mistakes = mistakes


class TooManyMistakes(Exception):
    """A file has `MAX_MISTAKES` mistakes."""


class DiagnosticCollector:
    """Collects the mistakes of one file, or the hints on it, up to `limit`; `None` is no limit."""

    def __init__(self, file: str, *, limit: int | None = MAX_MISTAKES) -> None:
        self.file = file
        self._limit = limit
        self._collected: dict[Diagnostic, None] = {}

    def add(self, line: int, column: int, message: str) -> None:
        """Add a diagnostic. If an alias repeats a wrong value, its diagnostic is added once.

        Raise `TooManyMistakes` if the limit is reached.
        """
        self._collected[Diagnostic(self.file, line, column, message)] = None
        if self._limit is not None and len(self._collected) >= self._limit:
            raise TooManyMistakes

    def result(self) -> tuple[Diagnostic, ...]:
        """Return the diagnostics in the order of the file."""
        return tuple(sorted(self._collected))
