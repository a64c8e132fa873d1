"""The names of the events. The event types register themselves here; this module knows no payloads."""

from __future__ import annotations

import sys

from fairlead.errors import UnknownEventError
from fairlead.structs import Enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.events._event import Event

TYPES: dict[str, type[Event]] = {}
"""PascalCase name → event type, in order of definition."""


class HookEvent(Enum):
    """The hook events of Claude Code, 33 as of client 2.1.325."""

    SessionStart = "SessionStart"
    Setup = "Setup"
    SessionEnd = "SessionEnd"
    UserPromptSubmit = "UserPromptSubmit"
    UserPromptExpansion = "UserPromptExpansion"
    PreToolUse = "PreToolUse"
    PermissionRequest = "PermissionRequest"
    PermissionDenied = "PermissionDenied"
    PostToolUse = "PostToolUse"
    PostToolUseFailure = "PostToolUseFailure"
    PostToolBatch = "PostToolBatch"
    SubagentStart = "SubagentStart"
    SubagentStop = "SubagentStop"
    TeammateIdle = "TeammateIdle"
    Stop = "Stop"
    StopFailure = "StopFailure"
    Notification = "Notification"
    MessageDisplay = "MessageDisplay"
    TaskCreated = "TaskCreated"
    TaskCompleted = "TaskCompleted"
    PreCompact = "PreCompact"
    PostCompact = "PostCompact"
    PreModelSwitch = "PreModelSwitch"
    PostModelSwitch = "PostModelSwitch"
    Elicitation = "Elicitation"
    ElicitationResult = "ElicitationResult"
    ConfigChange = "ConfigChange"
    InstructionsLoaded = "InstructionsLoaded"
    CwdChanged = "CwdChanged"
    FileChanged = "FileChanged"
    DirectoryAdded = "DirectoryAdded"
    WorktreeCreate = "WorktreeCreate"
    WorktreeRemove = "WorktreeRemove"

    @classmethod
    def parse(cls, name: str) -> HookEvent:
        """Parse an event's name in any case: `PreToolUse`, `preToolUse`, `pre_tool_use`, `pre-tool-use`.

        Raise `UnknownEventError` for an unknown name.
        """
        event = cls.find(name)
        if event is None:
            raise UnknownEventError(_unknown(name))
        return event

    @classmethod
    def find(cls, name: str) -> HookEvent | None:
        """Return the event for a name, in any case like `parse`; `None` for an unknown name."""
        if not isinstance(name, str):
            return None
        return _BY_NAME.get(name) or _BY_FOLDED.get(_fold(name))

    @classmethod
    def nearest(cls, name: str) -> HookEvent | None:
        """Return the event with the most similar name; `None` if no name is similar."""
        from difflib import get_close_matches

        near = get_close_matches(_fold(name), _BY_FOLDED, n=1, cutoff=0.75)
        return _BY_FOLDED[near[0]] if near else None

    @property
    def snake(self) -> str:
        """The name in snake_case."""
        return snake_case(self.value)

    @property
    def type(self) -> type[Event]:
        """The class of this event, a subclass of `Event`."""
        if self.value not in TYPES:
            getattr(sys.modules["fairlead.events"], self.value)  # imports the module that registers the type
        return TYPES[self.value]

    @property
    def can_block(self) -> bool:
        """Whether a hook can block what the event announces."""
        return self.type.can_block

    def __str__(self) -> str:
        """Return the name in snake_case, the form that commands get in `EVENT`."""
        return self.snake


def snake_case(name: str) -> str:
    """Convert a PascalCase name to snake_case."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name).lstrip("_")


def _fold(name: str) -> str:
    return name.replace("_", "").replace("-", "").lower()


def _unknown(name: str) -> str:
    near = HookEvent.nearest(str(name))
    return f"unknown event {name!r}{f'; did you mean {near.value}?' if near else ''}"


EVENT_NAMES = frozenset(event.value for event in HookEvent)
"""The names of all events, as the client spells them."""
_BY_NAME = {event.value: event for event in HookEvent}
_BY_FOLDED = {_fold(event.value): event for event in HookEvent}
