"""The paths that file tools have written. These changes were allowed, so the integrity check does not report them."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_PATHS = 1000


class WrittenPaths:
    """The latest paths, in the order in which they were written. Each project reads the ones that are new to it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._numbers: dict[str, int] = {}
        self.count = 0
        """The number of the latest path."""

    def add(self, path: str) -> tuple[str, int] | None:
        """Add a path, which may contain links.

        Beyond `MAX_PATHS`, remove the oldest path and return it with its number; otherwise return `None`.
        """
        with self._lock:
            self.count += 1
            self._numbers.pop(path, None)
            self._numbers[path] = self.count
            if len(self._numbers) <= MAX_PATHS:
                return None
            oldest = next(iter(self._numbers))
            return oldest, self._numbers.pop(oldest)

    def since(self, number: int) -> Iterator[str]:
        """Yield the paths that were added after the one with this number."""
        if number < self.count:
            with self._lock:
                numbers = list(self._numbers.items())
            yield from (path for path, added in numbers if added > number)
