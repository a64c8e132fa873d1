"""Where things live: the folders of this user, by the environment. Knows no file in them. Standard library only.

The launcher finds the same runtime folder by the same rules (`launcher/hook.c`); a test holds the two together.
"""

from __future__ import annotations

import os
import sys

SETTLING = ("FAIRLEAD_HOME", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""The variables that settle all of it. Who asks a daemon must have the same ones, or it speaks for another home."""


def config_folder() -> str:
    """Give the folder of the user-wide policy."""
    return _home("XDG_CONFIG_HOME", ".config")


def state_folder() -> str:
    """Give the folder of all that is kept: database, journal, spool, last good policies, logs."""
    return _home("XDG_STATE_HOME", ".local/state")


def runtime_folder() -> str:
    """Give the folder of the socket and the lock, which need not outlive the machine's start."""
    if own := os.environ.get("FAIRLEAD_HOME"):
        return f"{os.path.abspath(own)}/run"
    moved = os.environ.get("XDG_RUNTIME_DIR", "")
    usual = f"/run/user/{os.getuid()}"
    for base in (moved, usual):
        if base.startswith("/") and os.path.isdir(base):
            return f"{base}/fairlead"
    return f"{state_folder()}/run"


def socket_file() -> str:
    """Give the daemon's socket."""
    return f"{runtime_folder()}/daemon.sock"


def _home(variable: str, usual: str) -> str:
    if own := os.environ.get("FAIRLEAD_HOME"):
        return os.path.abspath(own)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/fairlead")
    moved = os.environ.get(variable, "")
    base = moved if moved.startswith("/") else os.path.expanduser(f"~/{usual}")
    return f"{base}/fairlead"
