"""Metrics: counts every event."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventExtension


def create(daemon: Daemon) -> EventExtension:
    """Return the extension."""
    return daemon.metrics
