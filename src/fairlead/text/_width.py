"""Measures and cuts text by the cells that it takes in a terminal. Imports `rich` only for text beyond ASCII."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_MIN_LAST_COLUMN = 20
"""The minimum width of the last column of a table, in cells."""


def cell_width(text: str) -> int:
    """Return how many cells a text takes in a terminal. The text must be printable."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, cells: int) -> str:
    """Return a text of exactly `cells` cells: padded with spaces, or cut with `…` at its end."""
    if cells <= 0:
        return ""
    missing = cells - cell_width(text)
    if missing >= 0:
        return text + " " * missing
    if text.isascii():
        return f"{text[: cells - 1]}…"
    from rich.cells import set_cell_size

    return set_cell_size(text, cells - 1) + "…"


def fit_end(text: str, cells: int) -> str:
    """Return a text of at most `cells` cells. `…` replaces the start of a longer one: the end of a path says more."""
    if cell_width(text) <= cells:
        return text
    kept = text[-cells:]
    while kept and cell_width(kept) > cells - 1:
        kept = kept[1:]
    return f"…{kept}" if cells > 0 else ""


def wrap_line(text: str, cells: int) -> list[str]:
    """Return a printable line in parts of at most `cells` cells (at least 2). A part may end within a word."""
    cells = max(2, cells)
    if text.isascii():
        return [text[start : start + cells] for start in range(0, len(text), cells)] or [""]
    parts, width = [""], 0
    for char in text:
        char_width = cell_width(char)
        if width + char_width > cells:
            parts.append("")
            width = 0
        parts[-1] += char
        width += char_width
    return parts


def table(
    rows: Sequence[Sequence[str]], *, width: int | None = None, style: Callable[[str], str] | None = None
) -> Iterator[str]:
    """Yield rows as lines with aligned columns, two spaces apart. Empty columns are left out, except the last.

    With the `width` of the terminal, the last column is cut to the remaining cells, but not below 20. `style` adds
    escape sequences to each padded text, except in the last column.
    """
    columns = list(zip(*rows, strict=True))
    *shown, last = [column for column in columns if any(column) or column is columns[-1]] or [()]
    widths = [max(map(cell_width, column)) for column in shown]
    room = None if width is None else max(_MIN_LAST_COLUMN, width - sum(widths) - 2 * len(widths))
    for *cells, text in zip(*shown, last, strict=True):
        padded = [fit(cell, cells_wide) for cell, cells_wide in zip(cells, widths, strict=True)]
        end = fit(text, room) if room is not None and cell_width(text) > room else text
        yield "  ".join((*(map(style, padded) if style else padded), end)).rstrip()
