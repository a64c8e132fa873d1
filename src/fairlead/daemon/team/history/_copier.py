"""Copies the events of this host to the relay, in a separate thread and over a separate connection.

It delays neither mail nor events: the store's process reads the records, a few at a time. The relay stores the events
and the new mark in one transaction. While there is no relay, the events wait in the journal; if there are too many, the
oldest are given up.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Event as Flag
from threading import Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from fairlead.daemon.store._messages import StoreUnavailable
from fairlead.daemon.team.history._copy_state import load_state, save_state
from fairlead.daemon.team.history._signing import sign_batch
from fairlead.durations import DAY, HOUR
from fairlead.journal import Position
from fairlead.team import JournalMark, RelayUnreachable, TeamError
from fairlead.team.relay import open_history

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.store._process import StoreProcess
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._settings import CurrentSettings
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.policy import Team as TeamSection
    from fairlead.team import Membership
    from fairlead.team.history import TeamHistory

INTERVAL = 2.0
"""Seconds between two batches once all events are copied."""
MAX_BACKLOG = 64 * 1024 * 1024
"""How many bytes of the journal may wait for the relay. The journal keeps more than this."""
MAX_EVENTS = 200_000
"""How many events of this host the relay keeps."""
_BATCH = 100
"""How many records of the journal are copied at once."""
_KEPT_SHARE = 0.9
"""The share of the backlog that is kept when events are given up, so that this does not happen again at once."""
_OFFLINE_INTERVAL = 3.0
"""Seconds between two checks of the relay and of the backlog while there is no connection."""
_OFF_INTERVAL = 30.0
_REFUSED_DELAY = 60.0
_PRUNE_INTERVAL = HOUR
_IDLE_SECONDS = 60.0
"""Seconds after which an unused connection is closed."""
_SAVE_INTERVAL = 60.0
_TIMEOUT = 10.0
_JOIN_TIMEOUT = 2.0


class CopyingTeam(Protocol):
    """The attributes of the team that the copier needs."""

    log: ConnectionLog
    roster: Roster | None

    def notify_given_up(self, count: int) -> None:
        """Notify the user that events were given up: `count` since copying began."""


class CopyStatus:
    """The progress of copying. Written by its thread, read by all."""

    def __init__(self) -> None:
        self.events = "off"
        """The setting `team.events`."""
        self.copied = 0
        """Events copied since the daemon started."""
        self.pending = 0
        """Events that wait to be copied, as of the last check."""
        self.given_up = 0
        """Events that were never copied, since copying began."""
        self.at = 0.0
        """The time at which all events were last copied."""
        self.why = ""
        """The reason why copying fails; empty if only the relay or the store cannot be reached."""


class EventCopier:
    """Owns the thread that copies events."""

    def __init__(
        self,
        team: CopyingTeam,
        store: StoreProcess,
        settings: CurrentSettings,
        errors: ErrorLog,
        *,
        max_backlog: int = MAX_BACKLOG,
        interval: float = INTERVAL,
    ) -> None:
        """Load the stored state. `max_backlog` is in bytes of the journal, `interval` in seconds."""
        self._team = team
        self._store = store
        self._settings = settings
        self._errors = errors
        self._max_backlog = max_backlog
        self._interval = interval
        self.counts = CopyStatus()
        self._state = load_state()
        self.counts.given_up = self._state.given_up
        self._saved_at = 0.0
        self._history: TeamHistory | None = None
        self._used_at = 0.0
        self._position: Position | None = None
        """The position up to which events are copied. `None` until it was read from the relay."""
        self._connections = 0
        """The number of connections when `_position` was read. After a new connection it is read again."""
        self._counted: Position | None = None
        """The position up to which `pending` counts."""
        self._count_at = 0.0
        self._prune_at = 0.0
        self._removed = 0
        """How many hosts were removed when the relay was last pruned. If there are more, it is pruned at once."""
        self._stopping = Flag()
        self._woken = Flag()
        self._thread = Thread(target=self._run, name="team-events", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self) -> None:
        """Stop the thread. If it waits for the network, it ends with the process."""
        self._stopping.set()
        self._woken.set()
        if self._thread.is_alive():
            self._thread.join(_JOIN_TIMEOUT)

    def check_settings(self) -> None:
        """Wake the thread if the setting has changed. Runs in the event loop."""
        if self._settings.read().events != self.counts.events:
            self._woken.set()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                pause = self._run_once()
            except (TeamError, StoreUnavailable) as error:
                pause = self._failed(error)
            except Exception as error:
                pause = self._failed(error)
                self._errors.report(f"copying events to the team's relay failed: {type(error).__name__}: {error}")
            if not self._stopping.is_set():
                self._woken.wait(pause)
        self._disconnect()
        self._save()

    def _run_once(self) -> float:
        """Copy one batch, prune or check the backlog. Return how many seconds to wait until the next run."""
        settings, roster = self._settings.read(), self._team.roster
        self.counts.events = settings.events
        if roster is None:
            return self._interval
        self._apply_settings(roster.membership.host, settings.events)
        is_member = roster.state(roster.membership.host) == "member"
        if not (is_member and self._team.log.state == "connected"):
            self._disconnect()
            self._reset_position()
            self._check_backlog()
            return _OFFLINE_INTERVAL if settings.events != "off" else _OFF_INTERVAL
        if len(roster.trust.removed) != self._removed:
            self._removed, self._prune_at = len(roster.trust.removed), 0.0
        self._prune(roster.membership, settings)
        if settings.events == "off":
            self._disconnect()
            return _OFF_INTERVAL
        has_more = self._copy(roster.membership, settings.events)
        if not has_more and monotonic() - self._used_at > _IDLE_SECONDS:
            self._disconnect()
        return 0.0 if has_more else self._interval

    def _apply_settings(self, host: str, events: str) -> None:
        if (host, events) != (self._state.host, self._state.events):
            self._state = self._state.with_settings(host, events, self._store.journal)
            self._position = self._counted = None
            self.counts.pending, self.counts.given_up = 0, self._state.given_up
            self._save()

    def _copy(self, own: Membership, events: str) -> bool:
        """Copy one batch; return whether there are more events."""
        journal, connections = self._store.journal, self._team.log.connections
        if connections != self._connections:
            self._reset_position()
        if self._position is None:
            self._connections = connections
            self._state = self._state.with_settings(own.host, events, journal)
            self._position = self._state.position(self._connected(own).mark(own.host), journal)
            self._counted, self.counts.pending = None, 0
        if self._position == self._store.position:
            self._caught_up()
            return False
        self._check_backlog()
        batch = self._store.events_to_copy(self._position, blocked_only=events == "blocked", limit=_BATCH)
        rows, sessions = sign_batch(batch, own, self._team.log.offset)
        if rows or sessions:
            mark = JournalMark(batch.position.segment, batch.position.offset)
            self._connected(own).append(own.host, rows, sessions, mark)
            self._used_at = monotonic()
        self._position = batch.position
        self.counts.copied += len(rows)
        self.counts.pending = max(0, self.counts.pending - len(rows))
        self.counts.why = ""
        if not batch.has_more:
            self._caught_up()
        return batch.has_more

    def _caught_up(self) -> None:
        self.counts.pending, self.counts.at, self._counted = 0, time(), None
        self._save_sometimes()

    def _prune(self, own: Membership, settings: TeamSection) -> None:
        """Delete old events from the relay, if the last time was long ago."""
        if monotonic() < self._prune_at:
            return
        self._prune_at = monotonic() + _PRUNE_INTERVAL
        before = time() + self._team.log.offset - settings.keep_days * DAY
        self._connected(own).prune(own.host, before=before, max_events=MAX_EVENTS)

    def _failed(self, error: Exception) -> float:
        """Record why copying failed, and return how many seconds to wait."""
        self._disconnect()
        self._reset_position()
        is_temporary = isinstance(error, RelayUnreachable | StoreUnavailable)
        self.counts.why = "" if is_temporary else str(error)
        with suppress(StoreUnavailable):
            self._check_backlog()
        return _OFFLINE_INTERVAL if is_temporary else _REFUSED_DELAY

    # -- the backlog -----------------------------------------------------------------------------------

    def _check_backlog(self) -> None:
        """Count the events that wait, and give up the oldest if there are too many."""
        if self._state.events == "off" or monotonic() < self._count_at:
            return
        self._count_at = monotonic() + _OFFLINE_INTERVAL
        blocked_only = self._state.events == "blocked"
        journal = self._store.journal
        reached = self._position or max(self._state.start, self._state.skipped, self._state.reached)
        if journal.size_after(reached) > self._max_backlog:
            kept = int(self._max_backlog * _KEPT_SHARE)
            dropped = self._store.count_events_to_copy(reached, blocked_only=blocked_only, keep_bytes=kept)
            self._give_up(dropped.events, dropped.position)
            reached = dropped.position
        if self._has_lost(reached):
            left = self._store.count_events_to_copy(reached, blocked_only=blocked_only)
            lost = max(0, self.counts.pending - left.events) if self._counted is not None else 0
            reached = Position(journal.segments()[0], 0)
            self._give_up(lost, reached)
        if self._counted is None:
            self._counted, self.counts.pending = reached, 0
        added = self._store.count_events_to_copy(self._counted, blocked_only=blocked_only)
        self.counts.pending += added.events
        self._counted = added.position

    def _has_lost(self, reached: Position) -> bool:
        """Return whether the journal no longer has the records at a position, because it was pruned."""
        segments = self._store.journal.segments()
        return bool(segments) and 0 < reached.segment < segments[0]

    def _give_up(self, count: int, position: Position) -> None:
        self._state = replace(self._state, skipped=position, reached=position, given_up=self._state.given_up + count)
        self._position = position if self._position is not None else None
        self._counted = None
        self.counts.given_up = self._state.given_up
        self._save()
        if count:
            self._team.notify_given_up(self._state.given_up)

    # -- the connection and the file -------------------------------------------------------------------

    def _connected(self, own: Membership) -> TeamHistory:
        if self._history is None:
            self._history = open_history(own.relay.read_url(), timeout=_TIMEOUT)
            self._used_at = monotonic()
        return self._history

    def _disconnect(self) -> None:
        history, self._history = self._history, None
        if history is not None:
            history.close()

    def _reset_position(self) -> None:
        """Forget the position, so that it is read from the relay again. Until then it is kept as an estimate."""
        if self._position is not None:
            self._state = replace(self._state, reached=self._position)
            self._count_at = 0.0
        self._position = None

    def _save_sometimes(self) -> None:
        if monotonic() - self._saved_at > _SAVE_INTERVAL:
            self._save()

    def _save(self) -> None:
        self._saved_at = monotonic()
        if self._position is not None:
            self._state = replace(self._state, reached=self._position)
        with suppress(OSError):  # events after an old position are copied again, and stored once
            save_state(self._state)
