"""Events of an agent's work: tools, subagents and tasks.

Only the fields that identify an event are required, because older clients, other clients and hand-written payloads may
omit all others. Fields of newer clients go into `extra`. The fields were seen in runs of clients 2.1.197 and 2.1.325.
"""

from __future__ import annotations

from fairlead.events._event import Event
from fairlead.structs import LIGHT

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from typing import Any, ClassVar

# -- a tool --------------------------------------------------------------------------------------------


class ToolEvent(Event, frozen=True, kw_only=True):
    """The base class of the events about one tool call."""

    subject_field: ClassVar[str | None] = "tool_name"
    required_text: ClassVar[tuple[str, ...]] = (*Event.required_text, "tool_name")
    tool_name: str  # type: ignore[misc]  # a field here, a class variable of every other event
    tool_input: dict[str, Any] = {}
    tool_use_id: str | None = None
    mcp_server: dict[str, Any] | None = None


class PreToolUse(ToolEvent, frozen=True, kw_only=True):
    """A tool is about to run. The guards check this event."""

    can_block: ClassVar[bool] = True
    tool_input: dict[str, Any]


class PermissionRequest(ToolEvent, frozen=True, kw_only=True):
    """The client is about to ask the user for permission."""

    can_block: ClassVar[bool] = True
    tool_input: dict[str, Any]
    permission_suggestions: list[Any] | None = None


class PermissionDenied(ToolEvent, frozen=True, kw_only=True):
    """The client's own classifier denied a tool call."""

    reason: str | None = None


class PostToolUse(ToolEvent, frozen=True, kw_only=True):
    """A tool has run."""

    tool_response: Any = None
    duration_ms: int | float | None = None

    @property
    def tool_result(self) -> Any:
        """The tool's response. Its form depends on the tool."""
        return self.tool_response


class PostToolUseFailure(ToolEvent, frozen=True, kw_only=True):
    """A tool has failed."""

    error: str
    is_interrupt: bool | None = None
    duration_ms: int | float | None = None


class PostToolBatch(Event, frozen=True, kw_only=True):
    """All tool calls of one message have been answered."""

    tool_calls: list[Any] | None = None


# -- a subagent ----------------------------------------------------------------------------------------


class SubagentStart(Event, frozen=True, kw_only=True):
    """A subagent starts."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "agent_type"
    required_text: ClassVar[tuple[str, ...]] = (
        *Event.required_text,
        "agent_id",
        "agent_type",
        "agent_transcript_path",
    )
    agent_id: str
    agent_type: str
    agent_transcript_path: str | None = None
    description: str | None = None

    @property
    def agent_transcript(self) -> str | None:
        """The path of the subagent's transcript: from the payload, or else the path that the client uses by default."""
        if self.agent_transcript_path is not None or self.transcript_path is None:
            return self.agent_transcript_path
        return f"{self.transcript_path.removesuffix('.jsonl')}/subagents/agent-{self.agent_id}.jsonl"


class SubagentStop(Event, frozen=True, kw_only=True):
    """A subagent has answered. Compaction fires this event too, with a blank `agent_type` and no `SubagentStart`."""

    keeps_going: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "agent_type"
    required_text: ClassVar[tuple[str, ...]] = (*Event.required_text, "agent_id", "agent_transcript_path")
    agent_id: str
    agent_transcript_path: str | None = None
    stop_hook_active: bool | None = None
    last_assistant_message: str | None = None
    background_tasks: list[Any] | None = None
    session_crons: list[Any] | None = None
    success: bool | None = None
    error: str | None = None


class TeammateIdle(Event, frozen=True, kw_only=True):
    """A teammate is about to go idle."""

    keeps_going: ClassVar[bool] = True
    teammate_name: str | None = None
    team_name: str | None = None


# -- tasks ---------------------------------------------------------------------------------------------


class TaskEvent(Event, frozen=True, kw_only=True):
    """The base class of the events about one task of the agent's list."""

    can_block: ClassVar[bool] = True
    task_id: str | None = None
    task_subject: str | None = None
    task_description: str | None = None
    teammate_name: str | None = None
    team_name: str | None = None


class TaskCreated(TaskEvent, frozen=True, kw_only=True):
    """A task is about to be created."""


class TaskCompleted(TaskEvent, frozen=True, kw_only=True):
    """A task is about to be marked as completed."""


# -- questions of MCP servers --------------------------------------------------------------------------


class Elicitation(Event, frozen=True, kw_only=True):
    """An MCP server asks the user for input."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "mcp_server_name"
    mcp_server_name: str | None = None
    message: str | None = None
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResult(Event, frozen=True, kw_only=True):
    """The user's answer is about to be sent to the MCP server."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "mcp_server_name"
    mcp_server_name: str | None = None
    elicitation_id: str | None = None
    mode: str | None = None
    action: str | None = None
    content: dict[str, Any] | None = None
