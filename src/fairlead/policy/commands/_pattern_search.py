"""Searches a prompt for the regular expressions of a policy, in bounded time.

Policies may use look-around and backreferences, which a linear-time engine such as RE2 does not have. So a search that
may take long only runs where it can be interrupted: in the main thread of a process that handles one event. There it
ends after half a second, and the pattern counts as not found. Patterns that may take exponential time are refused when
the policy is read.
"""

from __future__ import annotations

import re
import signal
import sys
from contextlib import contextmanager
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]  # the parser is part of `re`, but not of its stubs
from re import _parser  # type: ignore[attr-defined]
from threading import current_thread, main_thread
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.errors import NeedsCaller

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

MAX_SEARCH_SECONDS = 0.5
"""The maximum number of seconds for the searches of all patterns of one event."""
_MAX_STEPS = 10_000_000
"""The maximum number of steps of a search that cannot be interrupted: about a tenth of a second."""
_MIN_COSTLY_REPEATS = 100
"""The number of repeats from which a part makes the search time grow with the length of the text."""


class PatternSearch:
    """Searches one text for several patterns, within one time limit.

    Raises `NeedsCaller` if a search may take long, and this thread cannot be interrupted during one.
    """

    def __init__(self, text: str, seconds: float = MAX_SEARCH_SECONDS) -> None:
        self._text = text
        self._longest_line = max(map(len, text.split("\n")))
        self._seconds = seconds

    def finds(self, pattern: str, *, case_insensitive: bool = False) -> bool:
        """Return whether a regular expression matches somewhere; `False` if it is invalid or too slow."""
        try:
            compiled, complexity = _compiled(pattern, case_insensitive)
        except (re.error, RecursionError, OverflowError):
            return False
        if self._steps(complexity) <= _MAX_STEPS:
            return compiled.search(self._text) is not None
        if not _is_interruptible():
            raise NeedsCaller("a pattern of the policy may take too long on this prompt to be searched here")
        return self._search(compiled)

    def _steps(self, complexity: _Complexity) -> int:
        """Return the order of magnitude of the maximum number of steps that a search takes."""
        length = self._longest_line if complexity.in_line else len(self._text)
        return len(self._text) * int(length**complexity.repeats)

    def _search(self, compiled: re.Pattern[str]) -> bool:
        if self._seconds <= 0:
            return False
        started = monotonic()
        try:
            with _time_limit(self._seconds):
                return compiled.search(self._text) is not None
        except TimeoutError:
            return False
        finally:
            self._seconds -= monotonic() - started


class _Complexity(NamedTuple):
    """The properties of a pattern that determine the time of a search."""

    repeats: int
    """The number of parts that may repeat at least `_MIN_COSTLY_REPEATS` times."""
    in_line: bool
    """Whether none of the parts that `repeats` counts matches beyond the end of a line."""


@lru_cache(maxsize=256)
def _compiled(pattern: str, case_insensitive: bool) -> tuple[re.Pattern[str], _Complexity]:  # noqa: FBT001 - the cache needs positional arguments
    compiled = re.compile(pattern, re.IGNORECASE if case_insensitive else 0)
    bodies = list(_repeated(_parser.parse(pattern)))
    in_line = not compiled.flags & re.DOTALL and all(_is_any(body) for body in bodies)
    return compiled, _Complexity(len(bodies), in_line)


def _repeated(items: Any) -> Iterator[Any]:
    """Yield the bodies of all parts that may repeat at least `_MIN_COSTLY_REPEATS` times, also of nested ones."""
    for item in items:
        if isinstance(item, tuple) and len(item) == 2 and item[0] in {op.MAX_REPEAT, op.MIN_REPEAT}:  # noqa: PLR2004 - a pair
            if item[1][1] >= _MIN_COSTLY_REPEATS:
                yield item[1][2]
            yield from _repeated(item[1][2])
        elif isinstance(item, tuple | list | _parser.SubPattern):
            yield from _repeated(item)


def _is_interruptible() -> bool:
    """Return whether this is the main thread, and no event loop runs in it."""
    asyncio = sys.modules.get("asyncio")
    return current_thread() is main_thread() and (asyncio is None or asyncio._get_running_loop() is None)  # noqa: SLF001 - the public one raises


def _is_any(body: Any) -> bool:
    return len(body) == 1 and body[0][0] is op.ANY


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` if the block takes longer than `seconds`. Without a limit if another timer is running."""
    if any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
