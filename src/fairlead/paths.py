"""The folders of Fairlead, determined by the environment, and the path of the socket. Standard library only.

The launcher finds the same runtime folder by the same rules (`launcher/hook.c`); a test compares the two.
"""

from __future__ import annotations

import os
import sys

FOLDER_VARIABLES = ("FAIRLEAD_HOME", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
"""The environment variables that determine all folders. A daemon answers only callers with the same values."""


def config_folder() -> str:
    """Return the folder of the user-wide policy."""
    return _folder("XDG_CONFIG_HOME", ".config")


def state_folder() -> str:
    """Return the folder of the database, journal, spool, cached policies and logs."""
    return _folder("XDG_STATE_HOME", ".local/state")


def runtime_folder() -> str:
    """Return the folder of the socket and the lock, which need not survive a reboot."""
    if home := os.environ.get("FAIRLEAD_HOME"):
        return f"{os.path.abspath(home)}/run"
    for base in (os.environ.get("XDG_RUNTIME_DIR", ""), f"/run/user/{os.getuid()}"):
        if base.startswith("/") and os.path.isdir(base):
            return f"{base}/fairlead"
    return f"{state_folder()}/run"


def socket_file() -> str:
    """Return the path of the daemon's socket."""
    return f"{runtime_folder()}/daemon.sock"


def make_private(folder: str) -> None:
    """Create a folder and its missing parents for this user alone, regardless of the umask.

    A folder that exists keeps its mode. Raises `FileExistsError` if a file has this path.
    """
    try:
        os.mkdir(folder, 0o700)
    except FileNotFoundError:
        make_private(os.path.dirname(folder))
        make_private(folder)
    except FileExistsError:
        if not os.path.isdir(folder):
            raise


def _folder(variable: str, default: str) -> str:
    """Return Fairlead's folder below the folder that an XDG variable names, by default below `~/<default>`.

    With `FAIRLEAD_HOME`, and on macOS, the variable has no effect. The result is cached by the values of the variables,
    because this is called at each event.
    """
    key = variable, _environ.get(b"FAIRLEAD_HOME"), _environ.get(variable.encode()), _environ.get(b"HOME")
    known = _folders.get(key)
    if known is None:
        known = _find_folder(variable, default)
        if (key[1] or b"/").startswith(b"/") and len(_folders) < _MAX_CACHED:  # else it depends on the current folder
            _folders[key] = known
    return known


def _find_folder(variable: str, default: str) -> str:
    if home := os.environ.get("FAIRLEAD_HOME"):
        return os.path.abspath(home)
    if sys.platform == "darwin":
        return os.path.expanduser("~/Library/Application Support/fairlead")
    configured = os.environ.get(variable, "")
    base = configured if configured.startswith("/") else os.path.expanduser(f"~/{default}")
    return f"{base}/fairlead"


_MAX_CACHED = 16
_environ: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined] # noqa: SLF001 - three times as fast
_folders: dict[tuple[object, ...], str] = {}
