"""The thread of the team: connects to the relay, and connects again when the connection is lost.

It never delays an event, a message or the daemon's shutdown: other threads only set a flag and wake this one. The mail
of this host is the only service that this thread shares with them.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from functools import partial
from threading import Event as Flag
from threading import Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.daemon.team._connection import TeamConnection
from fairlead.daemon.team._directory import TeamDirectory
from fairlead.daemon.team._documents import gauges, status_document
from fairlead.daemon.team._feed import TeamFeed
from fairlead.daemon.team._notices import TeamNotices
from fairlead.daemon.team._requests import ConnectionRequests
from fairlead.daemon.team._roster import Roster
from fairlead.daemon.team._settings import CurrentSettings
from fairlead.daemon.team._snapshots import LocalSnapshots
from fairlead.daemon.team._state import ConnectionLog
from fairlead.daemon.team.answers._remote_answers import RemoteAnswers
from fairlead.daemon.team.history._copier import EventCopier
from fairlead.daemon.team.history._reader import HistoryReader, delete_history_files
from fairlead.daemon.team.leases._team_leases import TeamLeases
from fairlead.ipc import DaemonNotResponding
from fairlead.mail import MailError
from fairlead.sessions import AttentionNeeded
from fairlead.team import (
    Changes,
    HostCloned,
    NotInTeam,
    RelayRefused,
    RelayTooNew,
    TeamError,
    load_membership,
    prepare_hello,
    remove_membership,
)
from fairlead.team.relay import open_relay

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from concurrent.futures import Future

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.answers._service import AnswerService
    from fairlead.daemon.leases._service import LeaseService
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.daemon.store._process import StoreProcess
    from fairlead.daemon.team._snapshots import AgentStatus, RemoteHost
    from fairlead.mail import Agent, MessageService
    from fairlead.team.relay import Relay

    T = TypeVar("T")

_FIRST_DELAY = 0.2
_LONGEST_DELAY = 10.0
"""The longest pause between two attempts. A laptop that is online again may wait this long for its mail."""
_REFUSED_DELAY = 60.0
"""Seconds until the next attempt after a refusal, which needs an action by a person."""
_COUNT_INTERVAL = 0.25
"""Seconds between two counts of unsent packets while there is no relay. Each count builds packets on disk."""
_MAIL_TIMEOUT = 1.0
_CONNECT_TIMEOUT = 10.0
_JOIN_TIMEOUT = 2.0
_REFUSALS = (HostCloned, RelayTooNew, RelayRefused)


def has_joined() -> bool:
    """Return whether this host is in a team. A join that was interrupted does not count.

    Returns `True` for a broken membership file, so that the service starts and reports it.
    """
    try:
        return load_membership() is not None
    except TeamError:
        return True


class TeamService:
    """Owns the team's thread and the services that use the connection to the relay."""

    def __init__(  # noqa: PLR0917 - the services that a team reaches
        self,
        mail: MailService,
        tracker: SessionTracker,
        answers: AnswerService,
        leases: LeaseService,
        store: StoreProcess,
        errors: ErrorLog,
        version: str,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._mail = mail
        self._tracker = tracker
        self._errors = errors
        self._version = version
        self.log = ConnectionLog()
        self.directory = TeamDirectory()
        self._notices = TeamNotices(errors)
        self._snapshots = LocalSnapshots(mail, tracker, answers)
        self._local_answers = answers
        self.answers = RemoteAnswers(self, answers, self._snapshots.questions)
        self.feed = TeamFeed(self.directory, self.log)
        self.directory.on_change = partial(self.in_loop, self._on_directory_change)
        self.leases = TeamLeases(leases, self.submit, self._wake)
        self._settings = CurrentSettings(errors)
        self.roster: Roster | None = None
        self.history = HistoryReader(self)
        self._copier = EventCopier(self, store, self._settings, errors)
        self._relay: Relay | None = None
        self._requests = ConnectionRequests()
        self._stopping = Flag()
        self._woken = Flag()
        """Set when another thread has something for the thread of the team to do."""
        self._has_changes = self._is_urgent = False
        self._seen: tuple[int, frozenset[int], frozenset[str]] = (-1, frozenset(), frozenset())
        """At the last check: the tracker's revision, the agents that wait for mail, and the ids of the questions."""
        self._asked: frozenset[tuple[str, float]] = frozenset()
        """The sessions that need the user, and since when."""
        self._thread = Thread(target=self._run, name="team", daemon=True)
        self._listened: MessageService | None = None

    # -- for all threads -------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, and the one that copies events."""
        self._thread.start()
        self._copier.start()

    def close(self) -> None:
        """Stop both threads. One that waits for the network ends with the process."""
        self._stopping.set()
        self._wake()
        self._copier.close()
        if self._thread.is_alive():
            self._thread.join(_JOIN_TIMEOUT)

    def check_sessions(self) -> None:
        """Wake the thread if agents, sessions or questions have changed, to publish them. Runs in the event loop."""
        self._copier.check_settings()
        questions = frozenset(question.id for question in self._local_answers.questions())
        seen = self._tracker.revision, self._mail.waiters.waiting_agents(), questions
        if seen != self._seen:
            asked = frozenset(
                (session.id, session.since)
                for session in self._tracker.live()
                if isinstance(session.state, AttentionNeeded)
            )
            self._is_urgent |= questions != self._seen[2] or asked != self._asked
            self._seen, self._asked, self._has_changes = seen, asked, True
            if self.log.state == "connected":
                self._wake()

    @property
    def is_needed(self) -> bool:
        """Whether the daemon must keep running for the team. Runs in the event loop."""
        return self.directory.unacknowledged_count > 0 or next(iter(self._tracker.live()), None) is not None

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection to the relay."""
        return self.log.state == "connected"

    @property
    def is_member(self) -> bool:
        """Whether this host is a member of its team."""
        roster = self.roster
        return roster is not None and roster.state(roster.membership.host) == "member"

    @property
    def own_name(self) -> str:
        """The name of this host in the team; "" until the membership was read."""
        return self.roster.membership.name if self.roster is not None else ""

    def in_loop(self, work: Callable[..., object], *args: object) -> None:
        """Call a function in the event loop, from any thread. Does nothing if the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work, *args)

    async def with_mail(self, work: Callable[[MessageService], T]) -> T:
        """Call a function with the mail service of this host, in a thread, and return its result.

        Raises `MailError`, also if the mail cannot be opened within a second.
        """
        service = await asyncio.to_thread(self._mail.service_within, _MAIL_TIMEOUT)
        if service is None:
            raise MailError("the mail of this host cannot be opened")
        return await asyncio.to_thread(work, service)

    async def post(self, target: str, kind: str, body: bytes) -> None:
        """Put a packet into the outbox, and wake the thread that sends it. Raises `MailError` if that fails."""
        await self.with_mail(lambda service: service.team.post(target, kind, body))
        self._on_outgoing()

    def agent_status(self, agent: Agent) -> AgentStatus | None:
        """Return the status of an agent of another host; `None` if it is unknown."""
        return self.directory.agent(agent)

    def host_name(self, host: str) -> str:
        """Return the name of a host; the start of its id if the name is unknown."""
        return self.directory.names.get(host, host[:8])

    def remote_hosts(self) -> Iterable[tuple[str, RemoteHost]]:
        """Return the name and the data of each other member, sorted by name."""
        return self.directory.hosts()

    def submit(self, work: Callable[[TeamConnection], T]) -> Future[T]:
        """Have the thread of the team call a function with the connection.

        The future has the function's result, or its error; `RelayUnreachable` if there is no connection.
        """
        done = self._requests.put(work)
        self._wake()
        return done

    def leave(self, timeout: float) -> bool:
        """Leave the team, and return whether the other hosts were notified.

        Call it in a thread: it waits up to `timeout` seconds for the relay. The host leaves in any case.
        """
        are_notified = False
        with suppress(TeamError, TimeoutError):
            self.submit(TeamConnection.leave).result(timeout)
            are_notified = True
        self.delete_membership()
        return are_notified

    def delete_membership(self) -> None:
        """Stop both threads, bounce messages to other hosts, and delete the membership of this host.

        Leases of the team become local, and the cached leases and history are deleted.
        """
        self.close()
        service = self._mail.service_within(_MAIL_TIMEOUT)
        if service is not None:
            service.team.leave("this host has left the team")
        self.leases.close()
        delete_history_files()
        remove_membership()

    def notify_given_up(self, count: int) -> None:
        """Notify the user that events were not copied: `count` since copying began. For the thread that copies."""
        service = self._mail.service_within(0)
        if service is not None:
            self._notices.notify_given_up(service, count, self.log.since)

    def status(self) -> dict[str, Any]:
        """Return the document of `fairlead team status`."""
        document = status_document(self.log, self.roster, self.directory, self._copier.counts, time())
        return document | {"leases": self.leases.status()}

    def session_documents(self) -> list[dict[str, Any]]:
        """Return the sessions of the other hosts, and how old each host's data is."""
        now = time()
        return [
            {
                "host": name,
                "age": round(max(0.0, now - remote.at), 1),
                "sessions": remote.sessions,
                "left_out": remote.left_out,
            }
            for name, remote in self.directory.hosts()
        ]

    def gauges(self) -> dict[str, float]:
        """Return the gauges for `/metrics`."""
        return gauges(self.log, self.directory, self._copier.counts, time())

    def _on_directory_change(self) -> None:
        """React to a changed snapshot of another host. Runs in the event loop."""
        self.feed.notify()
        self.answers.check_unconfirmed()

    def _on_outgoing(self) -> None:
        """Wake the team's thread after data for another host was committed. Called in the thread that committed it."""
        self.directory.noted += 1
        self._wake()

    def _wake(self) -> None:
        self._woken.set()
        relay = self._relay
        if relay is not None:
            relay.wake()

    # -- the thread ------------------------------------------------------------------------------------

    def _run(self) -> None:
        failures = 0
        with suppress(TeamError):
            self.leases.load(self._load_roster())
        while not self._stopping.is_set():
            connections = self.log.connections
            delay = _FIRST_DELAY
            try:
                self._serve()
            except _REFUSALS as error:
                self._lost(error, is_refusal=True)
                delay = _REFUSED_DELAY
            except (TeamError, MailError, DaemonNotResponding) as error:
                self._lost(error)
            except Exception as error:
                self._lost(error)
                self._errors.report(f"the connection to the team's relay failed: {type(error).__name__}: {error}")
            failures = 0 if self.log.connections > connections else failures + 1
            delay = max(delay, min(_LONGEST_DELAY, _FIRST_DELAY * 2 ** min(failures, 10)))
            self._pause(delay * random.uniform(0.7, 1.3))  # noqa: S311 - hosts must not come back all at once

    def _pause(self, seconds: float) -> None:
        """Fail the queued requests, then wait `seconds`, or until there is a new request or the thread is stopped.

        Meanwhile, build and count the packets to send.
        """
        self._requests.fail(self.log.why)
        until, count_at = monotonic() + seconds, 0.0
        while not self._stopping.is_set() and self._requests.is_empty and monotonic() < until:
            self._woken.clear()
            if self.directory.is_uncounted and monotonic() >= count_at:
                self._count_outgoing()
                count_at = monotonic() + _COUNT_INTERVAL
            if self._requests.is_empty and not self._stopping.is_set():
                next_at = min(until, count_at) if self.directory.is_uncounted else until
                self._woken.wait(max(0.0, next_at - monotonic()))

    def _count_outgoing(self) -> None:
        service, noted = self._mail.service_within(0), self.directory.noted
        if service is not None and service is self._listened:
            with suppress(MailError):
                service.team.build_packets()
                self.directory.count(service)
                self.directory.counted = noted

    def _lost(self, error: Exception, *, is_refusal: bool = False) -> None:
        if self._stopping.is_set():
            return
        self.log.note_lost_connection(error, is_refusal=is_refusal)
        self.leases.note_lost_connection()
        service = self._mail.service_within(0)
        if is_refusal and service is not None:
            self._notices.notify_refusal(service, error)

    def _serve(self) -> None:
        """Connect, and use the connection until it is lost or the daemon stops."""
        service = self._open_mail()
        if service is None or self._stopping.is_set():
            return
        relay = open_relay(self._load_roster().membership.relay.read_url(), timeout=_CONNECT_TIMEOUT)
        self.log.location = relay.location
        try:
            connection = self._connect(relay, service)
            self._relay = relay
            connection.open()
            self._use(connection)
        finally:
            self._relay = None
            relay.close()

    def _open_mail(self) -> MessageService | None:
        service = None
        while service is None and not self._stopping.is_set():
            service = self._mail.service_within(_MAIL_TIMEOUT)
            if service is None:
                self._stopping.wait(_FIRST_DELAY)
        if service is not None and service is not self._listened:
            service.team.add_outgoing_listener(self._on_outgoing)
            self.answers.attach(service)
            self._listened = service
            self.directory.attach(service, self._load_roster())
        return service

    def _load_roster(self) -> Roster:
        if self.roster is None:
            membership = load_membership()
            if membership is None:
                raise NotInTeam("this host is in no team any more")
            self.roster = Roster(membership)
        return self.roster

    def _connect(self, relay: Relay, service: MessageService) -> TeamConnection:
        membership, hello = prepare_hello(self._version)
        welcome = relay.connect(hello)
        roster = self._load_roster()
        roster.membership = membership
        self.log.note_connected(relay.location, welcome.revision, welcome.offset, welcome.round_trip)
        return TeamConnection(
            relay,
            service,
            roster,
            self.directory,
            self._snapshots,
            self._notices,
            self.leases,
            self.log,
            self._settings,
            self.answers,
        )

    def _use(self, connection: TeamConnection) -> None:
        relay, changes = connection.relay, Changes(0)
        while not self._stopping.is_set():
            changed, self._has_changes = self._has_changes, False
            urgent, self._is_urgent = self._is_urgent, False
            noted = self.directory.noted
            self._woken.clear()
            connection.run_once(changes=changes, changed=changed, urgent=urgent)
            self.directory.counted = noted
            self._requests.execute_all(connection)
            changes = relay.wait(0.0 if self._woken.is_set() else connection.seconds_to_wait())
