"""The extensions of the daemon, which react to events, each in a file of its own.

A new capability is a new file here, with a function `create(daemon)`, and its name in `EXTENSIONS`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon

__all__ = ["EXTENSIONS", "register_extensions"]

EXTENSIONS = (
    "_policy",
    "_user_hooks",
    "_leases",
    "_environment",
    "_presence",
    "_integrity",
    "_mail",
    "_shell_calls",
    "_answers",
    "_sessions",
    "_metrics",
)
"""The modules, in their order within each kind. The registry puts gates first, then contributors, then observers."""


def register_extensions(daemon: Daemon) -> None:
    """Create every extension and register it."""
    for name in EXTENSIONS:
        daemon.extensions.register(import_module(f"{__name__}.{name}").create(daemon))
