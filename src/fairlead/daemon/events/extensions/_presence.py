"""Registers the user's presence: a prompt that a person wrote shows that they are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.sessions._presence import Presence


def create(daemon: Daemon) -> Presence:
    """Return the extension."""
    return daemon.presence
