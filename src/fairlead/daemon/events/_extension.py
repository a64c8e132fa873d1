"""What reacts to events: the one interface between the event handler and every capability of the daemon.

An extension is a small class in a file of its own, registered in `extensions/__init__.py`. The handler knows none of
them by name. There are three kinds, and they are asked in this order:

gate         may block the event: the policy, later leases
contributor  adds to the answer of an event that no gate has blocked: mail, environment
observer     only hears what was recorded: sessions, metrics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from fairlead.decide import find_event_policy
from fairlead.errors import FairleadError
from fairlead.events import HookOutput
from fairlead.journal import EventRecord
from fairlead.policy import Notifications, Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.clients import Client
    from fairlead.daemon.events._messages import HookReply, HookRequest
    from fairlead.decide import PolicyContext
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.policy import FileChange, Guards

    StartWait = Callable[[HookReply], HookReply]

Kind = Literal["gate", "contributor", "observer"]

_ORDER: tuple[Kind, ...] = ("gate", "contributor", "observer")


class NotThisDaemon(FairleadError):
    """Only the caller's own process can decide this event."""


class MustWait(Exception):
    """An extension has to wait for another process, and this thread may not."""

    policy: PolicyContext | None = None
    """The policy that was found. It must not be looked up again: what the user is told of it is told once."""


class EventContext:
    """What is looked up once for an event and shared by all extensions."""

    __slots__ = (
        "_policy",
        "changes",
        "client",
        "cwd",
        "event",
        "guards",
        "has_waited",
        "inline",
        "is_blocked",
        "may_wait",
        "payload",
        "request",
        "unchanged",
    )

    def __init__(  # noqa: PLR0913 - what is known of the event
        self,
        event: Event,
        request: HookRequest,
        client: Client,
        *,
        inline: bool,
        payload: bytes = b"",
        may_wait: bool = False,
        policy: PolicyContext | None = None,
    ) -> None:
        self.event = event
        self.request = request
        self.client = client
        self.cwd = event.cwd or request.cwd
        """The agent's working directory."""
        self.inline = inline
        """Whether the event loop waits: then nothing may block, and a policy that is not cached raises `NotCached`."""
        self.payload = payload
        self.may_wait = may_wait
        """Whether this thread may wait for another process. Else an extension that has to raises `MustWait`."""
        self.has_waited = False
        """Whether an extension has waited for another process."""
        self.is_blocked = False
        """Whether a gate that was asked earlier has blocked the event."""
        self.guards: Guards | None = None
        """The compiled guards of the policy, once its gate was asked."""
        self.changes: list[FileChange] = []
        """What a tool call changes, as its guards understand it, once they were asked."""
        self._policy = policy
        self.unchanged: object = None
        """The project whose protected files were just found unchanged."""

    @property
    def policy(self) -> PolicyContext:
        """The policy that applies to the event. Raises `NotThisDaemon` if its folder is relative to the caller's."""
        if self._policy is None:
            if not self.cwd.startswith("/"):
                raise NotThisDaemon("the working directory is relative to the caller's")
            project, caller = self.request.env.get(self.client.variables.project_dir, ""), self.request.caller
            process = caller.pid, caller.start
            self._policy = find_event_policy(
                self.event, self.cwd, project=project, process=process, cached_only=self.inline
            )
        return self._policy


class Reaction(msgspec.Struct, frozen=True, kw_only=True):
    """What an extension makes of an event: an output, a plan to run, or a wait."""

    output: HookOutput = HookOutput()
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    plan: Plan | None = None
    """Commands that the caller runs. A block drops them."""
    notifications: Notifications | None = None
    start_wait: StartWait | None = None
    """Called if the reply lets the agent stop; returns the reply that makes it wait instead."""
    undoable: bool = False
    """The output must be undone if the reply is not delivered."""
    decided_by: str = ""
    """The hook of the user's own that has decided, for the journal."""

    def merge(self, other: Reaction) -> Reaction:
        """Return both reactions as one."""
        output = self.output.merge(other.output)
        return Reaction(
            output=output,
            log=self.log + other.log,
            plan=None if output.blocked else self.plan or other.plan,
            notifications=self.notifications or other.notifications,
            start_wait=self.start_wait or other.start_wait,
            undoable=self.undoable or other.undoable,
            decided_by=other.decided_by or self.decided_by,
        )


class EventExtension:
    """Reacts to events. Subclasses override what they need; all methods may be called from any thread."""

    kind: Kind = "observer"
    events: frozenset[str] | None = None
    """The events for which `before_reply` is called; `None` means all."""
    recorded_events: frozenset[str] | None = None
    """The events for which `after_record` is called; `None` means all, and records that are of no event."""

    def may_block(self, context: EventContext) -> bool:
        """Return whether `before_reply` may wait for a disk or a lock. Must not wait itself: the event loop asks."""
        return False

    def before_reply(self, context: EventContext) -> Reaction | None:
        """React to an event before it is answered. Not called for a contributor if a gate has blocked the event."""

    def after_record(self, record: Record, event: Event | None) -> None:
        """Handle a record that was just written. `event` is `None` if it was not parsed in this process.

        For an event that was answered here, this is called before the reply is sent.
        """

    def undo(self, event_id: str) -> None:
        """Handle that the reply to an event was not delivered, or that another process has answered it."""


class Subscribers(NamedTuple):
    """The extensions that an event concerns, by the method that is called."""

    may_block: tuple[EventExtension, ...]
    before_reply: tuple[EventExtension, ...]
    after_record: tuple[EventExtension, ...]


class ExtensionRegistry:
    """The extensions in their order, and which of them implement what."""

    def __init__(self) -> None:
        self._extensions: list[EventExtension] = []
        self._by_event: dict[str, Subscribers] = {}
        self._undo: tuple[EventExtension, ...] = ()

    def register(self, extension: EventExtension) -> None:
        """Add an extension behind those of its kind."""
        self._extensions.append(extension)
        self._extensions.sort(key=lambda one: _ORDER.index(one.kind))
        self._by_event.clear()
        self._undo = self._implementing("undo")

    def subscribers(self, event_name: str) -> Subscribers:
        """Return the extensions that want an event; of a record that is of no event, the name is empty."""
        found = self._by_event.get(event_name)
        if found is None:
            found = self._find_subscribers(event_name)
            if len(self._by_event) < _MAX_NAMES:
                self._by_event[event_name] = found
        return found

    def after_record(self, record: Record, event: Event | None) -> None:
        """Pass a record to every extension that wants it."""
        for extension in self.subscribers(record.event if isinstance(record, EventRecord) else "").after_record:
            extension.after_record(record, event)

    def undo(self, event_id: str) -> None:
        """Undo an event in every extension that has something to undo."""
        for extension in self._undo:
            extension.undo(event_id)

    def _find_subscribers(self, event_name: str) -> Subscribers:
        reacting = [one for one in self._implementing("before_reply") if one.events is None or event_name in one.events]
        blocking = self._implementing("may_block")
        return Subscribers(
            tuple(one for one in reacting if one in blocking),
            tuple(reacting),
            tuple(
                one
                for one in self._implementing("after_record")
                if one.recorded_events is None or event_name in one.recorded_events
            ),
        )

    def _implementing(self, method: str) -> tuple[EventExtension, ...]:
        base = getattr(EventExtension, method)
        return tuple(one for one in self._extensions if getattr(type(one), method) is not base)


_MAX_NAMES = 500
"""Event names that are cached: a client may send names of its own."""
