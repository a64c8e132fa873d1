"""Text for terminals and people: safe to print, cut to a width, units. Standard library and rich only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.text._unicode import replace_surrogates
    from fairlead.text._units import money, span
    from fairlead.text._width import fit, fit_end, harmless, width

__all__ = [
    "fit",
    "fit_end",
    "harmless",
    "money",
    "replace_surrogates",
    "span",
    "width",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_unicode": ("replace_surrogates",),
        "_units": (
            "money",
            "span",
        ),
        "_width": (
            "fit",
            "fit_end",
            "harmless",
            "width",
        ),
    },
)
