"""What `fairlead hooks` says about the status line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients._json_text import parse
from fairlead.clients.claude._status_line_entry import Kind, read_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients.claude._install import Plan

STATUS_LINES: dict[Kind, tuple[str, ...]] = {
    "none": (),
    "own": ("status line: yours, and nobody listens to it",),
    "odd": ("status line: of a shape that the client does not run, so it is left alone",),
    "chained": ("status line: yours, and Fairlead listens to it",),
    "ours": ("status line: Fairlead's",),
}
"""What `status` says of each kind."""


def status_line_lines(plan: Plan, scope: str) -> Iterator[str]:
    """Say what an install did about the status line; offer ours to who has none."""
    kind = read_line(parse(plan.done.text)).kind
    if plan.done.status_line == "updated":
        yield "  status line: brought up to date"
    elif kind == "none" and scope == "user":
        yield "  no status line: install with --status-line to see model, context and cost there"
    else:
        yield from (f"  {line}" for line in STATUS_LINES[kind])
