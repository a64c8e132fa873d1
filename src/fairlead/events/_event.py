"""The base class of all events: a frozen value that also keeps unknown fields of the payload."""

from __future__ import annotations

from fairlead.events._names import TYPES, HookEvent
from fairlead.structs import LIGHT, Struct, field

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from typing import Any, ClassVar
if TYPE_CHECKING:
    from datetime import datetime

LOCAL_FIELDS = ("client", "extra", "received", "metadata")
"""Fields that are not part of the payload. A payload may have keys of the same names, so msgspec knows these fields by
names that no client sends."""


DEFAULT_CLIENT = "claude"
"""The client of an event, record or session without the name of one."""


class Event(
    Struct, frozen=True, kw_only=True, eq=False, tag_field="hook_event_name", tag=True, forbid_unknown_fields=True
):
    """An event that a client sends to its hooks. A field that the client did not send is `None`."""

    event_type: ClassVar[HookEvent | None] = None
    """The event's name; `None` for an event that this version does not know."""
    event_name: ClassVar[str] = ""
    """The event's name as the client spells it: `PreToolUse`."""
    can_block: ClassVar[bool] = False
    """Whether the event is a gate: a hook can block the announced action, and a hook that fails denies it."""
    keeps_going: ClassVar[bool] = False
    """Whether a block keeps the agent from stopping, instead of forbidding an action."""
    subject_field: ClassVar[str | None] = None
    """The field that a matcher is tested against; `None` if the event has no matcher."""
    required_text: ClassVar[tuple[str, ...]] = ("session_id", "transcript_path", "cwd")
    """Fields that must not be blank. Optional ones may be absent."""

    tool_name: ClassVar[str | None] = None
    """The tool's name on events about a tool call; `None` on all others."""

    session_id: str
    transcript_path: str | None = None
    cwd: str | None = None
    prompt_id: str | None = None
    permission_mode: str | None = None
    agent_id: str | None = None
    agent_type: str | None = None
    effort: dict[str, Any] | None = None

    client: str = field(default=DEFAULT_CLIENT, name="fairlead:client")
    """The name of the client in `fairlead.clients` that sent the event. Tool names and inputs are that client's."""
    extra: dict[str, Any] = field(default_factory=dict, name="fairlead:extra")
    """The keys of the payload that have no field here. They are encoded again unchanged."""
    received: float | None = field(default=None, name="fairlead:received")
    """When the event was received, in Unix time."""
    metadata: dict[str, Any] | None = field(default=None, name="fairlead:metadata")
    """Data that the host program passes to its hooks. Never encoded."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Register each event type under its name."""
        super().__init_subclass__(**options)
        if "event_name" not in cls.__dict__:
            cls.event_name = cls.__name__
        if cls.__name__ in HookEvent.__members__:
            cls.event_type = HookEvent[cls.__name__]
            TYPES[cls.__name__] = cls

    @property
    def subject(self) -> str:
        """The text that matchers are tested against: the tool's name, the agent's type, the source; "" if none."""
        field = self.subject_field
        return getattr(self, field) or "" if field else ""

    @property
    def timestamp(self) -> datetime | None:
        """When the event was received, in UTC; `None` if that is not known."""
        if self.received is None:
            return None
        from datetime import UTC, datetime

        return datetime.fromtimestamp(self.received, UTC)

    @property
    def subagent_id(self) -> str | None:
        """The id of the subagent that the event is about or comes from; `None` for the main agent."""
        return self.agent_id

    def __eq__(self, other: object) -> bool:
        """Compare all fields except `received` and `metadata`."""
        if type(other) is not type(self):
            return NotImplemented
        fields = (f for f in self.__struct_fields__ if f not in {"received", "metadata"})
        return all(getattr(self, f) == getattr(other, f) for f in fields)

    __hash__ = None  # type: ignore[assignment]  # payloads hold dicts


class OtherEvent(Event, frozen=True, kw_only=True):
    """An event that this version does not know. Its payload is in `extra`."""

    event_name: str  # type: ignore[misc]  # a field here, a class variable of every other event
