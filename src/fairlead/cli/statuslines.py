"""What `fairlead hooks` says about the status line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients import Installer, InstallPlan, StatusLineKind

STATUS_LINES: dict[StatusLineKind, tuple[str, ...]] = {
    "none": (),
    "own": ("status line: yours, and nobody listens to it",),
    "odd": ("status line: of a shape that the client does not run, so it is left alone",),
    "chained": ("status line: yours, and Fairlead listens to it",),
    "ours": ("status line: Fairlead's",),
}
"""What `status` says of each kind."""


def status_line_lines(plan: InstallPlan, scope: str, installer: Installer) -> Iterator[str]:
    """Say what an install did about the status line; offer ours to who has none."""
    kind = installer.status_line_of(plan.result.text)
    if plan.result.status_line == "updated":
        yield "  status line: brought up to date"
    elif kind == "none" and scope == "user":
        yield "  no status line: install with --status-line to see model, context and cost there"
    else:
        yield from (f"  {line}" for line in STATUS_LINES[kind])
