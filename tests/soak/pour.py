"""More events than may be kept, as fast as they are answered: how large journal and database become meanwhile."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from multiprocessing import get_context
from time import monotonic, sleep, time_ns
from typing import TYPE_CHECKING, NamedTuple

from daemon.daemon_home import until
from daemon.talk import connect, request

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.daemon_home import DaemonHome

MAX_JOURNAL = 128 << 20
MAX_STORE = 512 << 20
"""Bytes that docs/howto/daemon.md promises, with the databases' own logs."""
_TEXT = "some plain words of a file that an agent has read " * 300
"""Short enough to be recorded whole."""
_SENDERS = 2
_STORED_WITHIN = 120.0
"""Seconds for what the database does not have yet at the end."""


class Sizes(NamedTuple):
    """Bytes on disk."""

    journal: int
    store: int

    def problems(self) -> list[str]:
        """Return which limits are exceeded."""
        found = {
            f"a journal of {self.journal:,} bytes": self.journal > MAX_JOURNAL,
            f"databases of {self.store:,} bytes": self.store > MAX_STORE,
        }
        return [text for text, is_broken in found.items() if is_broken]


def sizes(home: DaemonHome) -> Sizes:
    """Return how large the files are now."""
    return Sizes(_total(home.state / "journal", "*"), _total(home.state, "*.db*"))


def pour(home: DaemonHome, size: int) -> tuple[Sizes, float]:
    """Send so many bytes of events, and return the largest sizes until all is stored, and the seconds that it took."""
    seen, started = [sizes(home)], monotonic()
    senders = [
        get_context("fork").Process(target=_send, args=(home, number, size // _SENDERS)) for number in range(_SENDERS)
    ]
    for sender in senders:
        sender.start()
    while any(sender.is_alive() for sender in senders):
        seen.append(sizes(home))
        sleep(0.02)
    seconds = monotonic() - started
    assert [sender.exitcode for sender in senders] == [0] * _SENDERS

    def is_stored() -> bool:
        seen.append(sizes(home))
        status = home.ask("GET", "/v1/status")
        return bool(status["stored"] >= status["events"])

    until(is_stored, "all of it is stored", _STORED_WITHIN)
    return Sizes(max(one.journal for one in seen), max(one.store for one in seen)), seconds


def _send(home: DaemonHome, number: int, size: int) -> None:
    """Send events, one after the other, and wait for each answer, as launchers do."""
    fields = {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"file_path": "a"}}
    sent = 0
    while sent < size:
        payload = home.payload(session_id=f"pour{number}", tool_response=f"{sent} {_TEXT}", **fields)
        headers = {"fairlead_id": f"{time_ns():016x}-{number}", "fairlead_pid": str(os.getpid())}
        with closing(connect(home.socket)) as connection:
            connection.sendall(request("POST", "/v1/events/PostToolUse", payload, **headers))
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        sent += len(payload)


def _total(folder: Path, names: str) -> int:
    total = 0
    for file in folder.glob(names):
        with suppress(FileNotFoundError):  # deleted meanwhile
            total += file.stat().st_size
    return total
