"""Diagnoses an installation. `probes` collect facts, `checks` turn facts into findings and touch nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.doctor._facts import Facts
    from fairlead.doctor._findings import Finding, Level
    from fairlead.doctor._gather import Options, gather

__all__ = [
    "Facts",
    "Finding",
    "Level",
    "Options",
    "gather",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_facts": ("Facts",),
        "_findings": ("Finding", "Level"),
        "_gather": ("Options", "gather"),
    },
)
