"""Matches the plainest gitignore patterns without regular expressions, for a process that decides one event.

There, importing `re` and compiling one pattern takes longer than deciding an edit under ten patterns. A pattern with a
class, a `?`, a backslash, several `**` or two stars in a name is left to `re`. `tests/policy/test_gitignore.py`
compares both.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Test = Callable[[str], bool]


def plain_test(options: Iterable[tuple[str, bool]]) -> Test | None:
    """Return a function that returns whether one of the patterns names a relative path, or a folder above it.

    `None` if `re` is needed.

    Each option has the text of a pattern without a `!` and a final slash, and whether it had a final slash. With that
    slash, a pattern names only folders.
    """
    tests = []
    for text, only_folders in options:
        test = _test(text, only_folders=only_folders)
        if test is None:
            return None
        tests.append(test)
    return tests[0] if len(tests) == 1 else lambda name: any(test(name) for test in tests)


def _test(text: str, *, only_folders: bool) -> Test | None:
    segments = [segment for segment in text.split("/") if segment]
    if "/" not in text:
        segments.insert(0, "**")
    if _is_any_folders(segments[-1]):
        segments.append("*")
    at = [index for index, segment in enumerate(segments) if _is_any_folders(segment)]
    if len(at) > 1 or any(segment.count("*") > 1 for index, segment in enumerate(segments) if index not in at):
        return None
    first = segments[: at[0]] if at else segments
    rest = segments[at[0] + 1 :] if at else []

    def test(name: str) -> bool:
        parts = name.split("/")
        end = len(parts) - only_folders
        if len(first) + len(rest) > end or not _match(first, parts, 0):
            return False
        if not rest:
            return True
        for start in range(len(first), end - len(rest) + 1):
            if _match(rest, parts, start):
                return True
            if not parts[start]:
                break
        return False

    return test


def _is_any_folders(segment: str) -> bool:
    return len(segment) > 1 and not segment.strip("*")


def _match(segments: Sequence[str], parts: Sequence[str], start: int) -> bool:
    return all(_names(segment, parts[start + offset]) for offset, segment in enumerate(segments))


def _names(segment: str, part: str) -> bool:
    begin, star, end = segment.partition("*")
    if not star:
        return part == segment
    return bool(part) and len(part) >= len(begin) + len(end) and part.startswith(begin) and part.endswith(end)
