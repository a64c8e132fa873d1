"""Globs on a whole text: a tool's name, an agent's type, a shell command. `*` matches everything, slashes too."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def glob_test(pattern: str) -> Callable[[str], object] | None:
    """Return a function that is truthy for the texts that a glob matches; `None` for `*`, which matches every text.

    The glob is compiled when the function is first called.
    """
    if pattern == "*":
        return None
    if not any(char in pattern for char in "*?["):
        return pattern.__eq__
    compiled: Callable[[str], object] | None = None

    def test(text: str) -> object:
        nonlocal compiled
        if compiled is None:
            compiled = any_glob_test([pattern])
        return compiled(text)

    return test


def any_glob_test(patterns: Iterable[str]) -> Callable[[str], object]:
    """Return a function that is truthy for the texts that one of the globs matches; without globs, for every text."""
    from fnmatch import translate

    return re.compile("|".join(map(translate, patterns))).match
