"""Owns the daemon's services and their lifecycle. Knows no HTTP."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING, Any

from fairlead.daemon._error_log import ErrorLog
from fairlead.daemon._installed_code import InstalledCode
from fairlead.daemon._journal_settings import JournalSettings
from fairlead.daemon._metrics import Metrics, resident_memory
from fairlead.daemon._shutdown import Shutdown
from fairlead.daemon.answers._service import AnswerService
from fairlead.daemon.commands._service import CommandService
from fairlead.daemon.events._endpoint import HookEndpoint
from fairlead.daemon.events._extension import ExtensionRegistry
from fairlead.daemon.events._handler import EventHandler
from fairlead.daemon.events._plans import PlanSettler
from fairlead.daemon.events._recorder import EventRecorder
from fairlead.daemon.events.extensions import register_extensions
from fairlead.daemon.integrity._monitor import IntegrityMonitor
from fairlead.daemon.leases._service import LeaseService
from fairlead.daemon.mail._idle_policy import IdlePolicy
from fairlead.daemon.mail._service import MailService
from fairlead.daemon.mail._user_notifier import UserMailNotifier
from fairlead.daemon.sessions._attention import AttentionNotifier
from fairlead.daemon.sessions._presence import Presence
from fairlead.daemon.sessions._token_usage import SubagentTokenUsage
from fairlead.daemon.sessions._tracker import SessionTracker
from fairlead.daemon.store._process import StoreProcess
from fairlead.daemon.team._service_holder import TeamServiceHolder
from fairlead.daemon.workers._pool import HookWorkers
from fairlead.decide import prepare_decoders
from fairlead.journal import Journal, count_spooled, journal_folder, spool_folder
from fairlead.policy import watch_folders

if TYPE_CHECKING:
    from fairlead.daemon.events._messages import HookReply, HookRequest
    from fairlead.daemon.store._messages import SessionEvent


_FEW_SPOOLED = 20
"""The maximum number of events that are taken from the spool before the first answer. If there are more, they are taken
later."""


class Daemon:
    """The services of one daemon."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.token = ""
        """The token of the loopback socket; empty without one."""
        self._addresses: list[str] = []
        self._journal = Journal(journal_folder())
        self.metrics = Metrics()
        self.errors = ErrorLog(self._journal, self.metrics, version)
        self.shutdown = Shutdown()
        self.code = InstalledCode()
        self.store = StoreProcess(self._journal, self.errors)
        self.extensions = ExtensionRegistry()
        self.journal_settings = JournalSettings(self.errors, self.store)
        self.recorder = EventRecorder(self._journal, self.extensions, self.metrics, self.errors, self.store)
        self.tracker = SessionTracker(self._journal, self.errors)
        self.token_usage = SubagentTokenUsage(self.tracker)
        self.presence = Presence(self.errors)
        self.attention = AttentionNotifier(self.tracker, self.errors)
        self.mail = MailService(self.tracker, self.errors)
        self.user_mail = UserMailNotifier(self.mail, self.errors)
        self.idle = IdlePolicy(self.mail, self.recorder, self.errors)
        self.leases = LeaseService(self.mail, self.tracker, self.errors)
        self.answers = AnswerService(self.tracker, self.recorder)
        self.team = TeamServiceHolder(self)
        self.integrity = IntegrityMonitor()
        self.hook_workers = HookWorkers(report=self.errors.report)
        register_extensions(self)
        handler = EventHandler(self.extensions, self.recorder)
        settler = PlanSettler(self.recorder, self.errors, self.resume)
        self.endpoint = HookEndpoint(version, handler, settler, self.tracker, self.metrics, self.errors, self.shutdown)
        self.commands = CommandService(self)
        self.shutdown.add_callback(self.tracker.end_streams)
        self.shutdown.add_callback(self.mail.waiters.shut_down)
        self.shutdown.add_callback(self.answers.shut_down)
        self.shutdown.add_callback(self.team.end_streams)

    # -- lifecycle -------------------------------------------------------------------------------------

    def open(self) -> None:
        """Load the saved state, and repair files of a killed daemon. Slow work is done later, in the background."""
        prepare_decoders()
        watch_folders()
        self.journal_settings.read()
        cut_line = self._journal.recover()
        if cut_line is not None:
            self.errors.report(f"{cut_line.file}: cut off {cut_line.size} bytes of a line that a killed daemon left")
        self.tracker.open()
        self.attention.open()
        self.leases.open()
        self.presence.open()
        self.recorder.open()
        if 0 < count_spooled(spool_folder()) <= _FEW_SPOOLED:
            self.take_spool()
            self.tracker.apply_queued()

    def started(self, addresses: list[str]) -> None:
        """Record that the daemon answers at these addresses from now on."""
        self._addresses = addresses
        self.errors.record(f"started: {' and '.join(addresses)}")

    def close(self) -> None:
        """Finish the work in progress, and record that the daemon has stopped."""
        self.hook_workers.close()
        self.endpoint.close()
        self.commands.close()
        self.team.close()
        self.mail.close()
        self.store.close()
        self.tracker.save()
        self.presence.save()
        self.errors.record(f"stopped: {self.shutdown.reason or 'ended'}")
        self._journal.close()

    def resume(self, payload: bytes, request: HookRequest, stdout: bytes, *, wakes: bool = False) -> HookReply:
        """Return the reply that makes a hook wait after the commands of its event: for a person's answer, or for mail.

        `stdout` is what the hook must print in any case. `wakes`: it is a hook that only wakes the agent (`--wake`).
        """
        if request.event == "PermissionRequest":
            return self.answers.resume(payload, request, stdout)
        return self.idle.resume(payload, request, stdout, wakes=wakes)

    def take_spool(self) -> None:
        """Record the events that reached no daemon, from the spool."""
        self.recorder.take_spool(self.store.has_event)

    # -- status ----------------------------------------------------------------------------------------

    def events_of(self, session: str, limit: int) -> list[SessionEvent]:
        """Return the last events of a session, the newest first.

        Waits a little for a store that is behind, and returns no events if it does not answer.
        """
        return self.store.events(session, limit)

    def idle_seconds(self) -> float:
        """Return for how many seconds there was nothing to do."""
        is_pending = self.attention.is_pending or self.user_mail.is_pending
        is_needed = self.mail.waiters.is_needed or self.answers.is_needed or self.team.is_needed
        is_busy = self.tracker.streams or is_pending or is_needed
        return 0.0 if is_busy else self.endpoint.idle_seconds()

    def status(self) -> dict[str, Any]:
        """Return the state of the daemon, for people and programs."""
        return {
            "pid": os.getpid(),
            "version": self.version,
            "listens": self._addresses,
            "uptime": round(monotonic() - self.metrics.started_at, 3),
            "events": self.metrics.total,
            "under_way": self.endpoint.in_progress,
            "idle": round(self.idle_seconds(), 3),
            "leaving": self.shutdown.reason,
            "memory": self._memory(),
            "loop_lag": round(self.metrics.lag, 6),
            "loop_blocked": self.metrics.blocked,
            "spool": count_spooled(spool_folder()),
            "waiting": self.mail.waiters.count,
            "troubles": self.metrics.error_count,
            "attention": self.attention.status(),
            "integrity": self.integrity.status(),
            "hook_workers": self.hook_workers.status(),
            **self.store.status(),
        }

    def metrics_text(self) -> str:
        """Return the metrics in Prometheus' text format."""
        more: dict[str, float] = {
            "spool_pending": count_spooled(spool_folder()),
            "store_behind_bytes": self.store.bytes_behind(),
        }
        more |= self.team.gauges()
        return self.metrics.text(version=self.version, memory=self._memory(), more=more)

    def _memory(self) -> int:
        """Return the resident memory of the daemon and of the store's process, in bytes."""
        return resident_memory() + (resident_memory(self.store.pid) if self.store.pid else 0)
