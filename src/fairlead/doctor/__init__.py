"""Diagnoses an installation: `probes` collect facts, and `checks`, which are pure, turn facts into findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.doctor._examine import examine
    from fairlead.doctor._facts import Facts, RunRoute
    from fairlead.doctor._findings import Finding, Level
    from fairlead.doctor._gather import DoctorOptions, gather
    from fairlead.doctor.checks._runs import level_of

__all__ = [
    "DoctorOptions",
    "Facts",
    "Finding",
    "Level",
    "RunRoute",
    "examine",
    "gather",
    "level_of",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_examine": ("examine",),
        "_facts": ("Facts", "RunRoute"),
        "_findings": ("Finding", "Level"),
        "_gather": ("DoctorOptions", "gather"),
        "checks._runs": ("level_of",),
    },
)
