"""The extensions of the daemon. A new capability is a new file here and one line in `register_extensions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events.extensions._environment import SessionEnvironment
from fairlead.daemon.events.extensions._mail import MailDelivery
from fairlead.daemon.events.extensions._policy import PolicyGate

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon

__all__ = ["register_extensions"]


def register_extensions(daemon: Daemon) -> None:
    """Register every extension. The kinds are ordered by the registry: gates, contributors, observers."""
    register = daemon.extensions.register
    register(PolicyGate())
    register(SessionEnvironment())
    register(MailDelivery(daemon.mail, daemon.idle, daemon.errors))
    register(daemon.tracker)
    register(daemon.metrics)
