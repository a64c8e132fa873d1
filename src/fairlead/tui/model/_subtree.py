"""The lines of one main session and of those below it: which of them a filter leaves, and which a fold. No screen.

They come one after the other, each before those that belong to it, and with how deep it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fairlead.tui.model._view import Folds, Line


def picked(lines: Sequence[Line], has: Callable[[str], bool]) -> list[Line]:
    """Give those that have what is asked for, with all that are above or below them."""
    kept = [False] * len(lines)
    found_at = -1
    for number, line in enumerate(lines):
        if 0 <= found_at < line.depth:
            kept[number] = True
        else:
            kept[number] = has(line.id)
            found_at = line.depth if kept[number] else -1
    shallowest = 0
    for number in range(len(lines) - 1, -1, -1):
        depth = lines[number].depth
        if kept[number] or depth < shallowest:
            kept[number] = True
            shallowest = depth
    return [line for line, is_kept in zip(lines, kept, strict=True) if is_kept]


def folded(lines: Sequence[Line], folds: Folds) -> Sequence[Line]:
    """Leave out what is below a line that is closed."""
    if folds.all_open and not folds.others:
        return lines
    shown: list[Line] = []
    closed_at = -1
    for line in lines:
        if 0 <= closed_at < line.depth:
            continue
        is_closed = line.has_fold and not folds.is_open(line.key)
        closed_at = line.depth if is_closed else -1
        shown.append(line._replace(is_open=False) if is_closed else line)
    return shown
