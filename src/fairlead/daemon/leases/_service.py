"""Takes and ends leases, checks whether a holder is alive, and notifies holders.

The table is replaced as a whole under a lock, after the file was written. Reading it needs no lock.
"""

from __future__ import annotations

import asyncio
from collections import deque
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.daemon.leases._file import LeaseFile
from fairlead.leases import LeaseError, LeaseTable
from fairlead.mail import FAIRLEAD, USER, Draft, MailError, MailUnreachable
from fairlead.process import dead_processes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.leases._remote import RemoteLeases
    from fairlead.daemon.leases._team_take import TeamLeaseClient
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.leases import Holder, Lease, WantedLease
    from fairlead.mail import MessageService
    from fairlead.policy import ResolvedPath
    from fairlead.sessions import Session

_TICK = 0.5
_NOTICE_INTERVAL = 600.0
"""Seconds in which a holder is notified only once about one session and one lease."""
_MAX_NOTICES = 200
_MAX_NOTIFIED = 2000
_AGENT_CONTINUES = frozenset({"clear", "resume", "fork"})
"""The end reasons of a session whose agent may continue in another session."""


class LeaseService:
    """The leases of all sessions of a user."""

    def __init__(self, mail: MailService, tracker: SessionTracker, errors: ErrorLog, folder: str = "") -> None:
        """Store the leases in a folder, by default the user's state folder."""
        self._mail = mail
        self._tracker = tracker
        self._errors = errors
        self._file = LeaseFile(folder)
        self._lock = Lock()
        self._notices: deque[tuple[Holder, str, str]] = deque(maxlen=_MAX_NOTICES)
        self._notified: dict[tuple[int | str, float, str], float] = {}
        self.table = LeaseTable()
        self._version = 0
        self.team: TeamLeaseClient | None = None
        """`None` if this host is in no team."""

    # -- lifecycle -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Read the leases that the last daemon has stored. If they cannot be read, report that and begin without."""
        try:
            self.table = LeaseTable(self._file.read())
        except (OSError, ValueError, LeaseError) as error:
            self._errors.report(f"the leases of the last daemon are lost: {error}")
        self._version = 1

    async def run_forever(self) -> None:
        """End leases that have expired or whose holder has ended, and send notices, twice a second."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(_TICK)
            if self.table or self._notices:
                try:
                    await loop.run_in_executor(None, self.run_once)
                except Exception as error:
                    self._errors.report(f"the leases are not up to date: {error}")

    def run_once(self) -> None:
        """End leases, move them to the new ids of sessions, and send notices. Call it in a thread."""
        self._send_notices()
        now = time()
        service = self._mail.service_within(0)
        if service is not None:
            self._follow_sessions(service)
        ended = {lease.id for lease in self.table.leases if lease.until <= now or self.holder_has_ended(lease)}
        if ended:
            with self._lock:
                self._replace(self.table.without(ended))

    # -- leased files ----------------------------------------------------------------------------------

    def __bool__(self) -> bool:
        return bool(self.table.leases) or bool(self.remote)

    @property
    def remote(self) -> RemoteLeases | None:
        """The leases of the other hosts; `None` without a team."""
        return None if self.team is None else self.team.remote

    @property
    def version(self) -> int:
        """A number that changes with every change of the leases, for callers that cache results."""
        return self._version if self.team is None else self._version + self.team.remote.version

    def covers(self, target: ResolvedPath) -> bool:
        """Return whether there is a lease on a file. Call it in a thread, because it may read a git configuration."""
        return self.table.covers(target) or (self.team is not None and bool(self.team.remote.covering(target)))

    # -- commands --------------------------------------------------------------------------------------

    def take(self, wanted: Sequence[WantedLease], holder: Holder) -> tuple[list[Lease], list[Lease]]:
        """Take leases, all or none. Returns the taken leases and the conflicting ones; one of the lists is empty.

        Taken leases survive a power failure once this returns. Raise `LeaseError` if a pattern is invalid or there
        would be too many leases, and `MailUnreachable` if they cannot be stored, for example on a full disk.
        """
        now = time()
        with self._lock:
            held = {
                lease.id: lease
                for wanted_lease in wanted
                for lease in self.table.conflicting_with(wanted_lease, holder)
            }
            conflicts = self._valid(held.values(), now)
            if conflicts:
                return [], conflicts
            table, taken = self.table.without(held).take(wanted, holder, now)
            self._replace(table)
        return taken, []

    def conflicts(self, wanted: Sequence[WantedLease], holder: Holder) -> list[Lease]:
        """Return the leases of other sessions of this host that conflict with the wanted ones."""
        held = {
            lease.id: lease for wanted_lease in wanted for lease in self.table.conflicting_with(wanted_lease, holder)
        }
        return self._valid(held.values(), time())

    def held_by(self, holder: Holder, wanted: Sequence[WantedLease]) -> list[Lease]:
        """Return the leases that taking `wanted` would replace: of the holder's session, on the same paths."""
        same = {(wanted_lease.path, wanted_lease.folder) for wanted_lease in wanted}
        return [
            lease
            for lease in self.table.leases
            if lease.holder.session == holder.session and (lease.path, lease.folder) in same
        ]

    def keep_local(self) -> None:
        """Turn all leases into leases of this host only, because it has left its team."""
        with self._lock:
            if any(lease.grant is not None for lease in self.table.leases):
                self._replace(LeaseTable(msgspec.structs.replace(lease, grant=None) for lease in self.table.leases))

    def release(self, leases: Sequence[Lease]) -> None:
        """End leases of this host. Raises `MailUnreachable` if that cannot be stored, for example on a full disk."""
        with self._lock:
            self._replace(self.table.without({lease.id for lease in leases}))

    def in_force(self) -> list[Lease]:
        """Return the leases that have not expired and whose holders are alive, sorted by path."""
        now = time()
        return sorted(self._valid(self.table.leases, now), key=lambda lease: (lease.title, lease.since))

    # -- holders ---------------------------------------------------------------------------------------

    def holder_has_ended(self, lease: Lease) -> bool:
        """Return whether the holder of a lease has ended. The user never ends."""
        holder = lease.holder
        if not holder.session:
            return False
        session = self._tracker.get(holder.session)
        if session is None:
            return self._agent_has_ended(holder)
        if session.ended is not None and session.end_reason not in _AGENT_CONTINUES:
            return True
        if _processes_have_ended(session):
            return True
        if not holder.agent_id:
            return False
        subagent = self._tracker.get(f"{session.id}/{holder.agent_id}")
        return subagent is not None and subagent.ended is not None

    def name_of(self, holder: Holder) -> str:
        """Return the current name of a holder; `NAME@HOST` if it is on another host."""
        if holder.host:
            return f"{holder.name}@{holder.host}"
        if not holder.session:
            return USER.name
        return self.agent_name(holder.session, holder.agent_id) or holder.name

    def agent_name(self, session: str, agent_id: str = "") -> str:
        """Return the name of the agent of a session or, with `agent_id`, of a subagent; "" if unknown. Never blocks."""
        service = self._mail.service_within(0)
        agent = service.find_by_session(session, agent_id) if service is not None else None
        return agent.name if agent is not None else ""

    @property
    def host_name(self) -> str:
        """The name of this host in its team; "" without a team."""
        return "" if self.team is None else self.team.host_name

    def is_same_session(self, session: str, other: str) -> bool:
        """Return whether two ids belong to the same session, whose id may have changed."""
        if session == other:
            return True
        current = self._tracker.current(other) if other else None
        return current is not None and session in {current.id, *current.previous}

    def session_has_ended(self, session: str) -> bool:
        """Return whether a session has ended; `False` for an unknown session."""
        current = self._tracker.current(session)
        return current is not None and current.ended is not None

    def notify(self, lease: Lease, by_session: str, subject: str, text: str) -> None:
        """Queue a message to the holder of a lease about what the session `by_session` does.

        For each lease and session, only one message in ten minutes is queued.
        """
        now, key = monotonic(), (lease.grant.id if lease.grant else lease.id, lease.since, by_session)
        last = self._notified.get(key)
        if last is not None and now - last < _NOTICE_INTERVAL:
            return
        if len(self._notified) >= _MAX_NOTIFIED:
            self._notified.clear()
        self._notified[key] = now
        self.send_notice(lease.holder, subject, text)

    def send_notice(self, holder: Holder, subject: str, text: str) -> None:
        """Queue a message to a holder. A thread sends it."""
        self._notices.append((holder, subject, text))

    # -- internal --------------------------------------------------------------------------------------

    def _valid(self, leases: Iterable[Lease], now: float) -> list[Lease]:
        """Return the leases that have not expired and whose holders are alive."""
        return [lease for lease in leases if lease.until > now and not self.holder_has_ended(lease)]

    def _replace(self, table: LeaseTable) -> None:
        try:
            self._file.write(table.leases)
        except OSError as error:
            raise MailUnreachable(f"the leases cannot be stored: {error.strerror or error}") from None
        self.table = table
        self._version += 1
        if self.team is not None:
            self.team.note_change()

    def _agent_has_ended(self, holder: Holder) -> bool:
        """Return whether the agent of a session that is not tracked has ended. False until the mail is open."""
        service = self._mail.service_within(0)
        if service is None or not self._tracker.is_checked:
            return False
        agent = service.find_by_session(holder.session, holder.agent_id)
        return agent is None or bool(agent.ended)

    def _follow_sessions(self, service: MessageService) -> None:
        """Move leases to the session in which their agent continues, as after /clear."""
        for session in {lease.holder.session for lease in self.table.leases if lease.holder.session}:
            agent = service.find_by_session(session)
            if agent is not None and agent.session and agent.session != session:
                with self._lock:
                    self._replace(self.table.moved(session, agent.session))

    def _send_notices(self) -> None:
        service = self._mail.service_within(0)
        while service is not None and self._notices:
            holder, subject, text = self._notices.popleft()
            name = self._address(service, holder)
            if not name:
                continue
            try:
                service.send(FAIRLEAD, Draft(to=(name,), subject=subject, body=text))
            except MailError as error:
                self._errors.report(f"{name} could not be notified about a lease: {error}")

    def _address(self, service: MessageService, holder: Holder) -> str:
        """Return the mail address of a holder; "" if it has ended or is unknown."""
        if holder.host:
            return self.name_of(holder)
        agent = USER if not holder.session else service.find_by_session(holder.session, holder.agent_id)
        return "" if agent is None or agent.ended else agent.name


def _processes_have_ended(session: Session) -> bool:
    """Return whether all processes of a session have ended; `False` if none is known.

    Processes with an unknown start time are ignored.
    """
    processes = ((session.pid, session.pid_start), *session.others)
    known = [(pid, start) for pid, start in processes if pid and start]
    return bool(known) and len(dead_processes(known)) == len(known)
