"""The report: one row per comparison, as a Markdown table and as JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bench._harness import Timing

NOT_INSTALLED = "not installed: pip install -e '.[bench]'"

_SCALE = {"µs": 1e6, "ms": 1e3, "MB": 1e-6, "/s": 1.0, "%": 100.0, "": 1.0}
"""Factors from seconds, bytes, events per second, shares and counts to the units shown."""

_HEADINGS = ("what", "ours", "baseline", "result", "target", "reached")


@dataclass(frozen=True)
class Target:
    """A target: a figure or a difference in the row's unit, or a ratio."""

    of: Literal["time", "difference", "ratio"]
    limit: float
    is_floor: bool = False
    """The figure must be at least `limit`, as for events per second."""

    def is_met(self, figure: float) -> bool:
        """Return whether a figure meets the target."""
        return figure >= self.limit if self.is_floor else figure <= self.limit


@dataclass(frozen=True)
class Row:
    """One comparison, in one run on one machine."""

    subject: str
    what: str
    unit: Literal["µs", "ms", "MB", "/s", "%", ""]
    ours: Timing | None
    """`None` if it cannot be measured."""
    baseline: str
    """Empty if there is no baseline."""
    theirs: Timing | None = None
    """`None` if the peer is not installed."""
    shows: Literal["difference", "ratio"] = "ratio"
    target: Target | None = None
    absent: str = NOT_INSTALLED
    """The text in place of a figure that was not measured."""

    def figure(self, of: str, which: Literal["minimum", "median"]) -> float | None:
        """Return the time, difference or ratio of the minima or of the medians."""
        scale = _SCALE[self.unit]
        if self.ours is None:
            return None
        ours = getattr(self.ours, which) * scale
        if of == "time":
            return float(ours)
        if self.theirs is None:
            return None
        theirs = getattr(self.theirs, which) * scale
        if of == "ratio" and not theirs:  # within the noise there is nothing to compare with
            return None
        return float(ours - theirs if of == "difference" else ours / theirs)

    @property
    def reached(self) -> Literal["yes", "no", "minimum only"] | None:
        """Whether the target is met; "yes" only if the minimum and the median meet it."""
        if self.target is None:
            return None
        least, middle = (self.figure(self.target.of, which) for which in ("minimum", "median"))
        if least is None or middle is None or not self.target.is_met(least):
            return None if least is None else "no"
        return "yes" if self.target.is_met(middle) else "minimum only"

    def as_json(self) -> dict[str, Any]:
        """Return all values, times in the row's unit."""
        return {
            "subject": self.subject,
            "what": self.what,
            "unit": self.unit,
            "ours": self.ours and self._both(self.ours),
            "baseline": self.baseline,
            "theirs": self.theirs and self._both(self.theirs),
            "difference": self._rounded("difference"),
            "ratio": self._rounded("ratio"),
            "target": self.target and {"of": self.target.of, self._bound(): self.target.limit},
            "reached": self.reached,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table, in the order of its headings."""
        return (
            f"{self.subject}: {self.what}",
            self.absent if self.ours is None else self._times(self.ours),
            self._compared(),
            self._result(),
            self._goal(),
            self.reached or "",
        )

    def _bound(self) -> str:
        return "at_least" if self.target and self.target.is_floor else "at_most"

    def _compared(self) -> str:
        if not self.baseline or self.ours is None:
            return self.baseline
        return f"{self.baseline}: {self.absent if self.theirs is None else self._times(self.theirs)}"

    def _both(self, timing: Timing) -> dict[str, float]:
        scale = _SCALE[self.unit]
        best = "maximum" if self._bound() == "at_least" else "minimum"
        return {best: round(timing.minimum * scale, 4), "median": round(timing.median * scale, 4)}

    def _rounded(self, of: str) -> dict[str, float] | None:
        least, middle = self.figure(of, "minimum"), self.figure(of, "median")
        if least is None or middle is None:
            return None
        return {"minimum": round(least, 4), "median": round(middle, 4)}

    def _times(self, timing: Timing) -> str:
        scale = _SCALE[self.unit]
        return f"{_short(timing.minimum * scale)} ({_short(timing.median * scale)}) {self.unit}".rstrip()

    def _result(self) -> str:
        least, middle = self.figure(self.shows, "minimum"), self.figure(self.shows, "median")
        if least is None or middle is None:
            return ""
        if self.shows == "ratio":
            return f"{_short(least)} ({_short(middle)}) x"
        return f"{_short(least, '+')} ({_short(middle, '+')}) {self.unit}"

    def _goal(self) -> str:
        if self.target is None:
            return ""
        sign = "≥" if self.target.is_floor else "≤"
        return f"{sign} {self.target.limit:g} {'x' if self.target.of == 'ratio' else self.unit}".rstrip()


def _short(figure: float, sign: str = "") -> str:
    """Format three significant digits, never an exponent."""
    digits = 2 if abs(figure) < 10 else 1 if abs(figure) < 100 else 0
    return f"{figure:{sign}.{digits}f}"


def table(rows: Sequence[Row]) -> str:
    """Format the rows as a Markdown table with aligned columns."""
    lines = [_HEADINGS, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(_HEADINGS))]
    shown = [_line(line, widths) for line in lines]
    shown.insert(1, _line(tuple("-" * width for width in widths), widths))
    return "\n".join(shown)


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    return "| " + " | ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"
