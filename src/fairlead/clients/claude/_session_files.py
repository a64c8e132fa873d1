"""Reads Claude Code's own files about its running sessions, `sessions/<pid>.json` in its folder. Never writes them."""

from __future__ import annotations

import os

from msgspec.structs import replace

from fairlead.clients._reports import ClientSessionFile
from fairlead.clients.claude._environment import current_config_folder
from fairlead.clients.claude._fields import MAX_ID, MAX_PATH, text_of
from fairlead.clients.claude._starting_sessions import find_starting_sessions, tmux_of
from fairlead.events import decode_json
from fairlead.text import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_SIZE = 64 * 1024
_DERIVED_NAMES = ("derived", "collision")
"""The values of `nameSource` for names that the client has made from the folder and a number."""
_MAX_TIME = 1e15
_MAX_DIGITS = 18
"""The number of digits that always fits into an int64."""


def sessions_folder() -> str:
    """Return the client's folder of session files."""
    return f"{current_config_folder()}/sessions"


def find_session_files(folder: str | None = None) -> list[ClientSessionFile]:
    """Return the sessions in all session files, and the clients that wait in a start dialog (`_starting_sessions`).

    `folder` is the folder of session files; `None` for the client's. Unreadable files are skipped. The key files beside
    them are never opened.
    """
    folder = folder or sessions_folder()
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    numbered = [name for name in names if name.endswith(".json") and name[:-5].isdecimal()]
    read = [session for name in numbered if (session := _read(f"{folder}/{name}")) is not None]
    return [*(_in_pane(session) for session in read), *find_starting_sessions(folder, names)]


def parse_session_file(text: bytes) -> ClientSessionFile | None:
    """Parse a session file; return `None` if it is not one."""
    try:
        document = decode_json(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict) or type(document.get("pid")) is not int or not _text(document, "sessionId"):
        return None
    return ClientSessionFile(
        pid=document["pid"],
        session_id=cut(document["sessionId"], MAX_ID),
        start=_start(document.get("procStart")),
        status=_text(document, "status"),
        waiting_for=_text(document, "waitingFor"),
        status_at=_seconds(document, "statusUpdatedAt"),
        started=_seconds(document, "startedAt"),
        cwd=_text(document, "cwd"),
        version=_text(document, "version"),
        name=_text(document, "name") if document.get("nameSource") not in _DERIVED_NAMES else "",
        in_terminal=document.get("entrypoint") == "cli",
    )


def _in_pane(session: ClientSessionFile) -> ClientSessionFile:
    """Add the tmux server and pane of a session, from its process: the session file lacks the server."""
    tmux, pane = tmux_of(session.pid, session.start)
    return replace(session, tmux=tmux, pane=pane) if pane else session


def _read(path: str) -> ClientSessionFile | None:
    try:
        with open(path, "rb", buffering=0) as file:
            return parse_session_file(file.read(_MAX_SIZE))
    except OSError:
        return None


def _start(value: object) -> int:
    digits = str(value) if isinstance(value, str | int) else ""
    return int(digits) if digits.isdecimal() and len(digits) <= _MAX_DIGITS else 0


def _text(document: dict[str, Any], key: str) -> str:
    return cut(text_of(document, key), MAX_PATH)


def _seconds(document: dict[str, Any], key: str) -> float:
    value = document.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MAX_TIME:
        return 0.0
    return value / 1000
