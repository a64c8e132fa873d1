"""Notifies the user about sessions that need them, on the desktop and by the channels of the policy.

`fairlead.sessions` decides about which session, and when. Slow work is done in threads, and a separate process sends. A
notification is saved as sent before it is sent: if the daemon is killed in between it is lost, but none is sent twice.
"""

from __future__ import annotations

import asyncio
from functools import partial
from time import monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from fairlead.durations import HOUR
from fairlead.errors import FairleadError
from fairlead.files import write_private
from fairlead.journal import DOCTOR_SESSION
from fairlead.notify import NO_DESKTOP, WaitingSession, attention_note, has_desktop, send
from fairlead.paths import state_folder
from fairlead.policy import Attention, is_quiet, load_user_wide
from fairlead.sessions import (
    AttentionLog,
    AttentionNeeded,
    AttentionRequest,
    AttentionSettings,
    TmuxClients,
    decide_notification,
)
from fairlead.text import first_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.sessions import Session, SessionChange

MAX_NOTES = 3
"""The maximum number of sessions at one time that get a notification each. If there are more, they share one."""

_TICK = 0.25
_MIN_INTERVAL = 2.0
"""Seconds between two times at which notifications are sent. Requests that become due in between are sent together."""
_DESKTOP_RETRY = HOUR
"""Seconds for which the desktop is not used after it could not show a notification."""


class SessionFeed(Protocol):
    """The sessions that a notifier watches: those of this host, or those of the other hosts of its team."""

    @property
    def is_checked(self) -> bool:
        """Whether the sessions are known well enough to notify the user about them."""

    @property
    def revision(self) -> int:
        """The number of the latest change."""

    def changes_since(self, revision: int) -> list[SessionChange] | None:
        """Return the latest change of each session after a revision; `None` if all sessions must be read again."""

    def live(self) -> Iterator[Session]:
        """Yield the sessions that have not ended."""

    def root_of(self, session: Session) -> Session:
        """Return the main session that a subagent belongs to; a main session itself."""


class _Item(NamedTuple):
    session: Session
    root: Session
    """The main session of `session`. It has the pane and the project."""
    request: AttentionRequest


class AttentionNotifier:
    """Watches which sessions need the user, and notifies the user about them. For the event loop."""

    def __init__(
        self, sessions: SessionFeed, errors: ErrorLog, *, file: str = "attention.json", by_channels: bool = True
    ) -> None:
        """Use a feed of sessions.

        `file` is the name of the file in the state folder that lists the sent notifications. Without `by_channels`, the
        user is notified on the desktop only.
        """
        self._tracker = sessions
        self._errors = errors
        self._file = f"{state_folder()}/{file}"
        self._by_channels = by_channels
        self._log = AttentionLog()
        self._saved: dict[str, AttentionRequest] = {}
        """The requests in the file, by session id."""
        self._revision = -1
        self._next = 0.0
        self._no_desktop_until = 0.0
        self._can_notify = True
        self._count = 0
        self._reported: set[str] = set()

    def open(self) -> None:
        """Load the notifications that an earlier daemon has sent. If they cannot be read, report that."""
        try:
            with open(self._file, "rb") as file:
                self._saved = msgspec.json.decode(file.read(), type=dict[str, AttentionRequest])
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            self._report(f"earlier notifications cannot be read: {error}")
        self._log = AttentionLog(self._saved)

    async def run_forever(self) -> None:
        """Check at short intervals whether to notify the user, but only while the feed is up to date.

        Errors are reported.
        """
        while True:
            await asyncio.sleep(_TICK)
            try:
                if self._tracker.is_checked:
                    await self._check()
            except Exception as error:
                self._report(f"notifications cannot be sent: {error!r}")

    @property
    def is_pending(self) -> bool:
        """Whether there is a session that the user can be notified of and was not notified of yet."""
        return self._can_notify and self._log.pending_count > 0

    def status(self) -> dict[str, Any]:
        """Return the fields of the daemon's status that are about notifications.

        `waiting` is the number of sessions that need the user, `held` that of sessions with a deferred notification,
        `told` that of sent notifications. `can_tell` says whether the user can be notified now.
        """
        counts = {"waiting": self._log.waiting_count, "held": self._log.deferred_count(time()), "told": self._count}
        return {**counts, "can_tell": self._can_notify}

    # -- in the event loop -----------------------------------------------------------------------------------

    async def _check(self) -> None:
        self._observe()
        due = [] if monotonic() < self._next else self._log.due(time())
        if not due:
            return await self._save_changes()
        items = [_Item(one, self._tracker.root_of(one), request) for one, request in due]
        in_thread = asyncio.get_running_loop().run_in_executor
        settings = await in_thread(None, self._settings)
        decided = await in_thread(None, _decide, items, settings, self._can_notify)
        self._observe()
        news = [i for i, after in zip(items, decided, strict=True) if self._log.record(i.session, i.request, after)]
        await self._save_changes()
        if news:
            self._next = monotonic() + _MIN_INTERVAL
            self._count += len(news)
            await in_thread(None, self._send, news, settings)
        return None

    async def _save_changes(self) -> None:
        sent = self._log.notified()
        if sent != self._saved:
            self._saved = sent
            await asyncio.get_running_loop().run_in_executor(None, self._save, sent)

    def _observe(self) -> None:
        changes, now = self._tracker.changes_since(self._revision), time()
        self._revision = self._tracker.revision
        if changes is None:
            self._log.update_all(filter(_is_real, self._tracker.live()), now)
            return
        for change in changes:
            if change.gone:
                self._log.remove(change.session.id)
            elif _is_real(change.session):
                self._log.update((change.session,), now)

    # -- in a thread -----------------------------------------------------------------------------------

    def _settings(self) -> Attention:
        """Return how the user wants to be notified, without the ways that are not possible now."""
        try:
            settings = load_user_wide().attention
        except FairleadError as error:
            self._report(f"the user-wide policy cannot be read, so the default notifications apply: {error}")
            settings = Attention()
        if not self._by_channels:
            settings = replace(settings, channels=[])
        is_shown = monotonic() >= self._no_desktop_until and has_desktop()
        settings = replace(settings, desktop=settings.desktop and is_shown)
        self._can_notify = settings.desktop or bool(settings.channels)
        return settings

    def _save(self, sent: Mapping[str, AttentionRequest]) -> None:
        try:
            write_private(self._file, msgspec.json.encode(sent))
        except OSError as error:
            self._report(f"sent notifications cannot be saved: {error}")

    def _send(self, news: Sequence[_Item], settings: Attention) -> None:
        names = [_waiting(item) for item in news]
        notes = [names] if len(names) > MAX_NOTES else [[name] for name in names]
        for note in map(attention_note, notes):
            send(note, settings.channels, desktop=settings.desktop, then=self._on_sent)

    def _on_sent(self, failed: int) -> None:
        """Handle the result of a notification. Called in a thread of the sender.

        `failed` is its exit code, 0 if it was sent.
        """
        if failed & NO_DESKTOP:
            self._no_desktop_until = monotonic() + _DESKTOP_RETRY
        if failed:
            self._report("a notification could not be sent; see notify.log in the state folder")

    def _report(self, message: str) -> None:
        """Report an error, unless this notifier has reported the same before."""
        if message not in self._reported:
            self._reported.add(message)
            self._errors.report(message)


def _is_real(session: Session) -> bool:
    return session.id.partition("/")[0] != DOCTOR_SESSION


def _decide(due: Sequence[_Item], wanted: Attention, can_notify: bool) -> list[AttentionRequest]:  # noqa: FBT001 - for a thread
    now = time()
    terminals = TmuxClients(now)
    settings = AttentionSettings(wanted.grace, can_notify and not is_quiet(wanted, now), wanted.when_in_front)
    return [
        decide_notification(item.request, now, settings, partial(terminals.show, item.root.tmux, item.root.pane))
        for item in due
    ]


def _waiting(item: _Item) -> WaitingSession:
    session, root = item.session, item.root
    folder = root.folder.rstrip("/").rpartition("/")[2]
    agent = (session.agent_type or "subagent") if session.is_child else ""
    name = (folder or root.title or root.id[:8]) + (f" on {root.host}" if root.host else "")
    return WaitingSession(name, item.request.reason, agent, _subject(session))


def _subject(session: Session) -> str:
    """Return the first line of what the user is asked, or the name of the file; "" if neither is known."""
    about = first_line(session.state.about) if isinstance(session.state, AttentionNeeded) else ""
    path = session.evidence.path if session.evidence else ""
    return about if about and about != path else path.rpartition("/")[2]
