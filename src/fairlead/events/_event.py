"""The base of all events: a frozen value that also keeps the fields it does not know."""

from __future__ import annotations

from fairlead.events._names import TYPES, HookEvent
from fairlead.structs import LIGHT, Struct, field

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from typing import Any, ClassVar
if TYPE_CHECKING:
    from datetime import datetime

LOCAL_FIELDS = ("client", "extra", "received", "metadata")
"""Fields that are not part of the payload. A payload may have keys of the same names: the encoded names of these fields
are ones that no client sends."""


DEFAULT_CLIENT = "claude"
"""The client of an event, a record or a session that names none."""


class Event(Struct, frozen=True, kw_only=True, eq=False):
    """An event that a client sends to its hooks. A field that the client did not send is `None`."""

    event_type: ClassVar[HookEvent | None] = None
    """The event's name; `None` for an event that this version does not know."""
    event_name: ClassVar[str] = ""
    """The event's name as the client spells it: `PreToolUse`."""
    can_block: ClassVar[bool] = False
    """The event is a gate: a hook can block what it announces, and a hook that fails denies it."""
    keeps_going: ClassVar[bool] = False
    """A block does not forbid anything: it keeps the agent from stopping."""
    subject_field: ClassVar[str | None] = None
    """The field that a matcher is tested against; `None` where the client has no matcher."""
    required_text: ClassVar[tuple[str, ...]] = ("session_id", "transcript_path", "cwd")
    """Fields that may be absent where they are optional, but never blank."""

    session_id: str
    transcript_path: str | None = None
    cwd: str | None = None
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: dict[str, Any] | None = None

    client: str = field(default=DEFAULT_CLIENT, name="fairlead:client")
    """Whose tools' names and inputs it has: the name of a client in `fairlead.clients`."""
    extra: dict[str, Any] = field(default_factory=dict, name="fairlead:extra")
    """What the client sent and has no field here; it is encoded again unchanged."""
    received: float | None = field(default=None, name="fairlead:received")
    """When the event was received, in Unix time."""
    metadata: dict[str, Any] | None = field(default=None, name="fairlead:metadata")
    """Data of the host program for its hooks. Never encoded."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Register every event of the client under its name."""
        super().__init_subclass__(**options)
        if "event_name" not in cls.__dict__:
            cls.event_name = cls.__name__
        if cls.__name__ in HookEvent.__members__:
            cls.event_type = HookEvent[cls.__name__]
            TYPES[cls.__name__] = cls

    @property
    def subject(self) -> str:
        """The text that matchers are tested against: the tool's name, the agent's type, the source."""
        field = self.subject_field
        return getattr(self, field) or "" if field else ""

    @property
    def timestamp(self) -> datetime | None:
        """When the event was received, in UTC."""
        if self.received is None:
            return None
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.received, UTC)

    @property
    def tool_name(self) -> str | None:
        """The tool's name, on events about a tool call."""
        return None

    @property
    def subagent_id(self) -> str | None:
        """The subagent's id, on events that are about one or come from one."""
        return self.agent_id

    def __eq__(self, other: object) -> bool:
        """Compare all fields but the time of receipt and the metadata."""
        if type(other) is not type(self):
            return NotImplemented
        fields = (f for f in self.__struct_fields__ if f not in {"received", "metadata"})
        return all(getattr(self, f) == getattr(other, f) for f in fields)

    __hash__ = None  # type: ignore[assignment]  # payloads hold dicts


class OtherEvent(Event, frozen=True, kw_only=True):
    """An event that this version does not know. Its payload is in `extra`."""

    event_name: str  # type: ignore[misc]  # a field here, a constant of every other event
