"""Extensions: the one interface between the event handler and every capability of the daemon that reacts to events.

An extension is a small class in a file of its own, registered in `extensions/__init__.py`. The handler knows none of
them by name. There are three kinds, and they are asked in this order:

gate         may block the event: the policy, the user's hooks, leases
contributor  adds to the answer of an event that no gate has blocked: mail, environment
observer     only handles events that were recorded: sessions, metrics
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from fairlead.decide import find_event_policy
from fairlead.errors import NeedsCaller

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.clients import Client, ToolKind
    from fairlead.daemon.events._messages import HookReply, HookRequest
    from fairlead.decide import Decision, HookCause, PolicyContext
    from fairlead.events import Event
    from fairlead.journal import CommandsRecord, EventRecord
    from fairlead.policy import FileChange, Guards

    StartWait = Callable[[HookReply], HookReply]
    AfterRecord = Callable[[EventRecord, Event | None], None]

K = TypeVar("K")
V = TypeVar("V")

Kind = Literal["gate", "contributor", "observer"]

_ORDER: tuple[Kind, ...] = ("gate", "contributor", "observer")


class NeedsLongWait(Exception):
    """An extension has to wait for the user's own code, and this thread may not wait that long."""

    policy: PolicyContext | None = None
    """The policy of the event. It must not be looked up again: messages about it are shown to the user once."""


class EventContext:
    """What is looked up once for an event and shared by all extensions, and what they find out for each other."""

    __slots__ = (
        *("changes", "client", "cwd", "event", "guards", "has_waited_long", "hook_cause", "is_blocked", "may_wait"),
        *("may_wait_long", "payload", "policy", "request", "start_wait", "tool_kind", "unchanged"),
    )

    def __init__(
        self,
        event: Event,
        request: HookRequest,
        client: Client,
        *,
        may_wait: bool,
        payload: bytes = b"",
        may_wait_long: bool = False,
        policy: PolicyContext | None = None,
    ) -> None:
        """Look up the policy, unless it is given.

        Raises `NeedsCaller` if the event's folder is relative to the caller's folder. Without `may_wait`,
        raises `NeedsThread` if the policy is not in memory.
        """
        self.event = event
        self.request = request
        self.client = client
        self.cwd = event.cwd or request.cwd
        """The agent's working directory."""
        self.may_wait = may_wait
        """Whether this thread may wait: for the disk, a lock or git. If not, what has to wait raises `NeedsThread`."""
        self.payload = payload
        self.may_wait_long = may_wait_long
        """Whether this thread may also wait for the user's own code. If not, what has to do so raises
        `NeedsLongWait`."""
        self.has_waited_long = False
        """Whether an extension has waited for the user's own code."""
        self.is_blocked = False
        """Whether an extension that was asked earlier has blocked the event."""
        self.guards: Guards | None = None
        """The compiled guards of the policy; `None` until `PolicyGate` was asked, and on events without guards."""
        self.changes: list[FileChange] = []
        """The files that a tool call changes according to the guards; empty until the guards were asked."""
        self.hook_cause: HookCause | None = None
        """Which of the user's own hooks has decided or failed; `None` if none has, or until they were asked."""
        self.start_wait: StartWait | None = None
        """Takes the reply, and returns one that makes the launcher wait. Called unless the event is blocked.

        Set by the extension whose decision `waits`.
        """
        self.unchanged: object = None
        """The project (`CheckedProject`) whose protected files were found unchanged in `needs_thread`."""
        self.tool_kind: ToolKind = "other"
        """The kind of the tool, on events about a tool call."""
        self.policy = policy if policy is not None else self._find_policy()
        """The policy that applies to the event."""

    def _find_policy(self) -> PolicyContext:
        if not self.cwd.startswith("/"):
            raise NeedsCaller("the working directory is relative to the caller's")
        caller = self.request.caller
        process = caller.pid, caller.start
        return find_event_policy(self.event, self.cwd, project=caller.project, process=process, may_wait=self.may_wait)


class EventExtension:
    """Reacts to events. Subclasses override what they need; all methods may be called from any thread."""

    kind: Kind = "observer"
    events: frozenset[str] | None = None
    """The events for which `before_reply` is called; `None` means all."""
    tool_kinds: frozenset[ToolKind] | None = None
    """On events about a tool call: the kinds of tools for which `before_reply` is called; `None` means all."""
    recorded_events: frozenset[str] | None = None
    """The events for which `after_record` is called; `None` means all."""

    def needs_thread(self, context: EventContext) -> bool:
        """Return whether `before_reply` may have to wait. Must not wait itself: the event loop calls this."""
        return False

    def before_reply(self, context: EventContext) -> Decision | None:
        """Decide an event before it is answered; `None` means to add nothing.

        Not called for a contributor if the event is blocked already. Raises `NeedsThread`, `NeedsLongWait` or
        `NeedsCaller` if it cannot decide here.
        """

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Handle an event that was just recorded. `event` is `None` if it was not parsed in this process.

        The reply may have been sent, but no later event of the same session has been handled.
        """

    def after_commands(self, record: CommandsRecord) -> None:
        """Handle the results of an event's commands, which were just recorded."""

    def undo(self, event_id: str) -> None:
        """Undo what a reply has marked, because it was not delivered, or another process has answered the event.

        Called with the id of any event, also if this extension has marked nothing at it.
        """


class Subscribers(NamedTuple):
    """The methods that are called before an event of one tool is answered, in the order of their extensions."""

    tool_kind: ToolKind
    """The kind of the event's tool."""
    needs_thread: tuple[Callable[[EventContext], bool], ...]
    gates: tuple[Callable[[EventContext], Decision | None], ...]
    contributors: tuple[Callable[[EventContext], Decision | None], ...]


class ExtensionRegistry:
    """The extensions in their order, and the methods that each of them implements."""

    def __init__(self) -> None:
        self._extensions: list[EventExtension] = []
        self._subscribers: dict[tuple[str, str, str | None], Subscribers] = {}
        """Event, client and tool → the methods that are called before the reply."""
        self._observers: dict[str, tuple[AfterRecord, ...]] = {}
        """Event → the methods that are called after the record."""

    def register(self, extension: EventExtension) -> None:
        """Add an extension after the others of its kind."""
        self._extensions = sorted([*self._extensions, extension], key=lambda item: _ORDER.index(item.kind))
        self.refresh()

    def refresh(self) -> None:
        """Forget the cached lists of methods, because an extension was added or wants other events."""
        self._subscribers, self._observers = {}, {}

    def subscribers(self, event: Event, client: Client) -> Subscribers:
        """Return the methods that are called before an event is answered."""
        key = event.event_name, client.name, event.tool_name
        return self._subscribers.get(key) or self._find_subscribers(key, client)

    def observers(self, event_name: str) -> tuple[AfterRecord, ...]:
        """Return the methods that are called after an event was recorded."""
        observers = self._observers.get(event_name)
        return self._find_observers(event_name) if observers is None else observers

    def after_commands(self, record: CommandsRecord) -> None:
        """Pass the results of an event's commands on to the extensions."""
        for extension in self._implementing("after_commands"):
            extension.after_commands(record)

    def undo(self, event_id: str) -> None:
        """Call `undo` of every extension that implements it."""
        for extension in self._implementing("undo"):
            extension.undo(event_id)

    def _find_subscribers(self, key: tuple[str, str, str | None], client: Client) -> Subscribers:
        cache, (event_name, _, tool) = self._subscribers, key  # a refresh replaces the cache
        kind = client.kind_of(tool or "")
        reacting = [
            extension
            for extension in self._implementing("before_reply")
            if (extension.events is None or event_name in extension.events)
            and (tool is None or extension.tool_kinds is None or kind in extension.tool_kinds)
        ]
        waiting = self._implementing("needs_thread")
        subscribers = Subscribers(
            kind,
            tuple(extension.needs_thread for extension in reacting if extension in waiting),
            tuple(extension.before_reply for extension in reacting if extension.kind == "gate"),
            tuple(extension.before_reply for extension in reacting if extension.kind == "contributor"),
        )
        if len(event_name) + len(tool or "") <= _MAX_NAME:
            _cache(cache, key, subscribers)
        return subscribers

    def _find_observers(self, event_name: str) -> tuple[AfterRecord, ...]:
        cache = self._observers
        found = tuple(
            extension.after_record
            for extension in self._implementing("after_record")
            if extension.recorded_events is None or event_name in extension.recorded_events
        )
        if len(event_name) <= _MAX_NAME:
            _cache(cache, event_name, found)
        return found

    def _implementing(self, method: str) -> list[EventExtension]:
        base = getattr(EventExtension, method)
        return [extension for extension in self._extensions if getattr(type(extension), method) is not base]


_MAX_CACHED = 1000
"""The maximum number of events and tools whose subscribers are cached: a client may send names of its own."""
_MAX_NAME = 200
"""The maximum number of characters in the names of an event and a tool, together, for which methods are cached."""


def _cache(cache: dict[K, V], key: K, value: V) -> None:
    if len(cache) >= _MAX_CACHED:
        cache.clear()
    cache[key] = value
