"""Texts about the used part of the account's limits. All sessions share the limits and report them."""

from __future__ import annotations

from time import localtime, strftime
from typing import TYPE_CHECKING, NamedTuple

from fairlead.durations import DAY, HOUR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.clients import Usage

_MIN_ELAPSED = 0.05
"""The fraction of a limit's window that must have passed before the rate is shown."""
_FULL = 100.0


class Quota(NamedTuple):
    """The used part of one limit, in percent."""

    percent: float
    resets: float = 0.0
    """When the limit resets, in Unix time; 0 if unknown."""


def quota_texts(usages: Iterable[Usage], now: float) -> list[str]:
    """Return texts about the used part of the limits, the rate of use, and when a limit is reached at that rate.

    The full text comes first, then two shorter ones for narrow lines, which are only about the most used limit. Empty
    if nothing is known.
    """
    listed = list(usages)
    five_hours = _newest(((u.five_hour_percent, u.five_hour_resets) for u in listed), now)
    seven_days = _newest(((u.seven_day_percent, u.seven_day_resets) for u in listed), now)
    windows = (("5 h", five_hours, 5 * HOUR, HOUR), ("7 d", seven_days, 7 * DAY, DAY))
    known = [
        (quota.percent, list(_parts(name, quota, window, unit, now))) for name, quota, window, unit in windows if quota
    ]
    if not known:
        return []
    most = max(known, key=lambda pair: pair[0])[1]
    return [" · ".join(" ".join(parts) for _, parts in known), " ".join(most), " ".join(most[:2])]


def _newest(reports: Iterable[tuple[float | None, float | None]], now: float) -> Quota | None:
    """Return the newest report of (percent, reset time); `None` if there is none, or if all windows have ended.

    It is the highest percentage of the latest window, because usage only grows within a window.
    """
    known = [Quota(percent, resets or 0.0) for percent, resets in reports if percent is not None]
    current = [report for report in known if not report.resets or report.resets > now]
    return max(current, key=lambda report: (report.resets, report.percent), default=None)


def _parts(name: str, quota: Quota, window: float, unit: float, now: float) -> Iterator[str]:
    yield f"{name} {quota.percent:.0f}%"
    elapsed = window - (quota.resets - now)
    if not quota.resets or not _MIN_ELAPSED * window < elapsed <= window or quota.percent <= 0:
        return
    rate = quota.percent / elapsed
    yield f"+{rate * unit:.0f}%/{'h' if unit == HOUR else 'd'}"
    full_at = now + (_FULL - quota.percent) / rate
    if quota.percent < _FULL and full_at < quota.resets:
        yield f"full {strftime('%H:%M' if unit == HOUR else '%a', localtime(full_at))}"
