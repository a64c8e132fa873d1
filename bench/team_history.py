"""What the history of a team costs: bytes on the relay, CPU time of host and relay for each event, and time of a page.

Run it by itself: `python -m bench.team_history`.
"""

from __future__ import annotations

import sys
import uuid
from time import perf_counter, process_time, time
from typing import TYPE_CHECKING

from bench._relay import cpu_seconds, relay_server, why_absent

if TYPE_CHECKING:
    from collections.abc import Callable

    from team.postgres_server import PostgresServer

    from fairlead.sessions import CopyBatch
    from fairlead.team.history import TeamHistory

EVENTS = 20_000
_BATCH = 100
_SESSIONS = [str(uuid.UUID(int=number)) for number in range(100)]
_COMMAND = "pytest tests/team/test_something.py -n 2 -q -k 'one or two' && git status"
_HOST = "f" * 32


def main() -> int:
    if absent := why_absent():
        print(absent, file=sys.stderr)
        return 1
    with relay_server() as server:
        _measure(server)
    return 0


def _measure(server: PostgresServer) -> None:
    from fairlead.team import Hello
    from fairlead.team.relay import open_history, open_relay

    database = server.create_database()
    relay = open_relay(server.url(database))
    relay.connect(Hello(team="", host=_HOST, name="one", key=b"k" * 32, version="1", known_boots=(), boot="b"))
    history = open_history(server.url(database))
    before, started = cpu_seconds(server), process_time()
    _fill(history, server.url(database))
    host, hub = process_time() - started, cpu_seconds(server) - before
    sizes = "SELECT pg_total_relation_size('fairlead.events') + pg_total_relation_size('fairlead.history')"
    size = float(str(server.execute(sizes, database)[0][0]))
    print(
        f"{size / EVENTS:.0f} bytes an event; CPU: host {host / EVENTS * 1e6:.0f} us, relay {hub / EVENTS * 1e6:.0f} us"
    )
    _pages(history)
    history.close()
    relay.close()


def _fill(history: TeamHistory, url: str) -> None:
    from fairlead.daemon.team.history._signing import sign_batch
    from fairlead.team import JournalMark, Membership, RelaySource, generate_key

    secret = generate_key().secret
    own = Membership(team="t", host=_HOST, name="one", relay=RelaySource(url=url), private_key=secret)
    for first in range(0, EVENTS, _BATCH):
        rows, sessions = sign_batch(_batch(first), own, 0.0)
        history.append(_HOST, rows, sessions, JournalMark(1, first))


def _batch(first: int) -> CopyBatch:
    """Return events before and after a call, in turn. Only those before a call have a text to search."""
    from msgspec.structs import replace

    from fairlead.journal import Position
    from fairlead.sessions import CopyBatch, EventCopy, HistorySession, SessionCopy, TimelineEntry

    now = time()
    events = []
    for number in range(first, first + _BATCH):
        kind, text = ("PreToolUse", _COMMAND) if number % 2 else ("PostToolUse", "")
        session, shown = _SESSIONS[number % len(_SESSIONS)], "" if text else _COMMAND
        entry = TimelineEntry(at=now - EVENTS + number, event=kind, session=session, tool="Bash", text=shown)
        events.append(EventCopy(id=uuid.uuid4().hex, entry=entry, text=text, kind="command"))
    figures = HistorySession(id="", folder="/home/user/project", prompt="fix the login", started=now, last=now, tools=9)
    sessions = [SessionCopy(session=replace(figures, id=name)) for name in _SESSIONS[:3]]
    return CopyBatch(events=events, sessions=sessions, position=Position(1, first))


def _pages(history: TeamHistory) -> None:
    from fairlead.team import HistoryFilter

    def wanted(text: str = "") -> HistoryFilter:
        return HistoryFilter(hosts=(_HOST,), text=text, limit=21)

    pages: dict[str, Callable[[], object]] = {
        "sessions": lambda: history.sessions(wanted()),
        "a timeline": lambda: history.events(_HOST, _SESSIONS[5]),
        "a search that finds": lambda: history.search(wanted("something")),
        "a search that finds nothing": lambda: history.search(wanted("nothing")),
    }
    for name, ask in pages.items():
        print(f"{name}: {min(_seconds(ask) for _ in range(5)) * 1000:.1f} ms")


def _seconds(ask: Callable[[], object]) -> float:
    started = perf_counter()
    ask()
    return perf_counter() - started


if __name__ == "__main__":
    sys.exit(main())
