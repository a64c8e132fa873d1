"""Registers the running shell calls: a command in such a call acts as its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.mail._caller_identity import ShellCalls


def create(daemon: Daemon) -> ShellCalls:
    """Return the extension."""
    return daemon.mail.shell_calls
