"""Makes text safe to show to people and agents, cuts it to a width, and formats tables and units.

Nothing is imported before it is used. Only functions that measure the width of text beyond ASCII need `rich`.
"""

from __future__ import annotations

from fairlead.lazy import lazy_exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.text._printable import (
        first_line,
        one_line,
        one_lines,
        printable,
        printable_block,
        printable_bodies,
        printable_lines,
        quoted,
        truncate,
    )
    from fairlead.text._unicode import cut, replace_surrogates, replace_surrogates_in
    from fairlead.text._units import (
        ago,
        clock,
        compact_number,
        cost_or_unknown,
        cost_text,
        duration,
        money,
        start_of_day,
    )
    from fairlead.text._width import cell_width, fit, fit_end, table, wrap_line

__all__ = [
    "ago",
    "cell_width",
    "clock",
    "compact_number",
    "cost_or_unknown",
    "cost_text",
    "cut",
    "duration",
    "first_line",
    "fit",
    "fit_end",
    "money",
    "one_line",
    "one_lines",
    "printable",
    "printable_block",
    "printable_bodies",
    "printable_lines",
    "quoted",
    "replace_surrogates",
    "replace_surrogates_in",
    "start_of_day",
    "table",
    "truncate",
    "wrap_line",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_printable": (
            "first_line",
            "one_line",
            "one_lines",
            "printable",
            "printable_block",
            "printable_bodies",
            "printable_lines",
            "quoted",
            "truncate",
        ),
        "_unicode": ("cut", "replace_surrogates", "replace_surrogates_in"),
        "_units": (
            "ago",
            "clock",
            "compact_number",
            "cost_or_unknown",
            "cost_text",
            "duration",
            "money",
            "start_of_day",
        ),
        "_width": ("cell_width", "fit", "fit_end", "table", "wrap_line"),
    },
)
