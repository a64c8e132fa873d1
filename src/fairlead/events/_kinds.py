"""One type per event of Claude Code, with the fields seen in runs of clients 2.1.197 and 2.1.325.

Only what identifies the event is required. Everything else may be absent, because older clients, other
clients and hand-made payloads leave it out; what newer clients add lands in `extra`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from fairlead.events._event import Event

# -- a session -----------------------------------------------------------------------------------------


class SessionStart(Event, frozen=True, kw_only=True):
    """A session begins, resumes, or goes on after `/clear` or compaction."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "source"
    source: str | None = None
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: float | None = None
    context_tokens: int | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: float | None = None


class Setup(Event, frozen=True, kw_only=True):
    """The client was started with `--init` or `--maintenance`."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str | None = None


class SessionEnd(Event, frozen=True, kw_only=True):
    """A session ends."""

    subject_field: ClassVar[str | None] = "reason"
    reason: str | None = None


# -- a prompt ------------------------------------------------------------------------------------------


class UserPromptSubmit(Event, frozen=True, kw_only=True):
    """A prompt is about to be sent. Not always a person's: finished background agents fire it too."""

    can_block: ClassVar[bool] = True
    prompt: str
    source: str | None = None
    session_title: str | None = None


class UserPromptExpansion(Event, frozen=True, kw_only=True):
    """A slash command or MCP prompt is about to be expanded."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "command_name"
    command_name: str | None = None
    command_args: str | None = None
    command_source: str | None = None
    expansion_type: str | None = None
    prompt: str | None = None


# -- a tool --------------------------------------------------------------------------------------------


class ToolEvent(Event, frozen=True, kw_only=True):
    """What the events about one tool call share."""

    subject_field: ClassVar[str | None] = "tool_name"
    required_text: ClassVar[tuple[str, ...]] = (*Event.required_text, "tool_name")
    tool_name: str
    tool_input: dict[str, Any] = {}
    tool_use_id: str | None = None
    mcp_server: dict[str, Any] | None = None


class PreToolUse(ToolEvent, frozen=True, kw_only=True):
    """A tool is about to run. The one gate that every guard hangs on."""

    can_block: ClassVar[bool] = True
    tool_input: dict[str, Any]


class PermissionRequest(ToolEvent, frozen=True, kw_only=True):
    """The client is about to ask the person for permission."""

    can_block: ClassVar[bool] = True
    tool_input: dict[str, Any]
    permission_suggestions: list[Any] | None = None


class PermissionDenied(ToolEvent, frozen=True, kw_only=True):
    """The client's own classifier denied a tool call."""

    reason: str | None = None


class PostToolUse(ToolEvent, frozen=True, kw_only=True):
    """A tool has run."""

    tool_response: Any = None
    duration_ms: float | None = None

    @property
    def tool_result(self) -> Any:
        """The tool's answer, in the shape of that tool."""
        return self.tool_response


class PostToolUseFailure(ToolEvent, frozen=True, kw_only=True):
    """A tool has failed."""

    error: str
    is_interrupt: bool | None = None
    duration_ms: float | None = None


class PostToolBatch(Event, frozen=True, kw_only=True):
    """All tool calls of one message have been answered."""

    tool_calls: list[Any] | None = None


# -- a subagent ----------------------------------------------------------------------------------------


class SubagentStart(Event, frozen=True, kw_only=True):
    """A subagent begins."""

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
        """The subagent's transcript: as sent, or where the client is known to write it."""
        if self.agent_transcript_path is not None or self.transcript_path is None:
            return self.agent_transcript_path
        return f"{self.transcript_path.removesuffix('.jsonl')}/subagents/agent-{self.agent_id}.jsonl"


class SubagentStop(Event, frozen=True, kw_only=True):
    """A subagent has answered. Compaction fires one too, with a blank `agent_type` and no start."""

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


# -- the end of a turn ---------------------------------------------------------------------------------


class Stop(Event, frozen=True, kw_only=True):
    """The main agent has answered. Background subagents may still be at work: see `background_tasks`."""

    keeps_going: ClassVar[bool] = True
    stop_hook_active: bool | None = None
    last_assistant_message: str | None = None
    background_tasks: list[Any] | None = None
    session_crons: list[Any] | None = None


class StopFailure(Event, frozen=True, kw_only=True):
    """The turn ended by an error of the model's service."""

    subject_field: ClassVar[str | None] = "error"
    error: str | None = None
    error_details: str | None = None
    last_assistant_message: str | None = None


class Notification(Event, frozen=True, kw_only=True):
    """The client wants the person's attention."""

    subject_field: ClassVar[str | None] = "notification_type"
    message: str | None = None
    title: str | None = None
    notification_type: str | None = None


class MessageDisplay(Event, frozen=True, kw_only=True):
    """A piece of an answer is about to be shown."""

    turn_id: str | None = None
    message_id: str | None = None
    index: int | None = None
    final: bool | None = None
    delta: str | None = None


# -- tasks ---------------------------------------------------------------------------------------------


class TaskEvent(Event, frozen=True, kw_only=True):
    """What the events about one task of the agent's list share."""

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


# -- the context window and the model ------------------------------------------------------------------


class PreCompact(Event, frozen=True, kw_only=True):
    """The conversation is about to be compacted."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str | None = None
    custom_instructions: str | None = None


class PostCompact(Event, frozen=True, kw_only=True):
    """The conversation has been compacted."""

    subject_field: ClassVar[str | None] = "trigger"
    trigger: str | None = None
    compact_summary: str | None = None


class ModelSwitch(Event, frozen=True, kw_only=True):
    """What the two events about a switch of the model share."""

    subject_field: ClassVar[str | None] = "to_model"
    from_model: str | None = None
    to_model: str | None = None
    requested_model: str | None = None
    source: str | None = None
    context_tokens: int | None = None
    prompt_cache_warm: bool | None = None
    cache_ttl: str | None = None
    estimated_cache_write_usd: float | None = None
    pricing: str | None = None


class PreModelSwitch(ModelSwitch, frozen=True, kw_only=True):
    """The model is about to be switched."""

    can_block: ClassVar[bool] = True


class PostModelSwitch(ModelSwitch, frozen=True, kw_only=True):
    """The model has been switched."""


# -- MCP servers that ask ------------------------------------------------------------------------------


class Elicitation(Event, frozen=True, kw_only=True):
    """An MCP server asks the person for input."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "mcp_server_name"
    mcp_server_name: str | None = None
    message: str | None = None
    mode: str | None = None
    url: str | None = None
    elicitation_id: str | None = None
    requested_schema: dict[str, Any] | None = None


class ElicitationResult(Event, frozen=True, kw_only=True):
    """The person's answer is about to go back to the MCP server."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "mcp_server_name"
    mcp_server_name: str | None = None
    elicitation_id: str | None = None
    mode: str | None = None
    action: str | None = None
    content: dict[str, Any] | None = None


# -- the surroundings ----------------------------------------------------------------------------------


class ConfigChange(Event, frozen=True, kw_only=True):
    """A settings file has changed and is about to be applied."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "source"
    source: str | None = None
    file_path: str | None = None


class InstructionsLoaded(Event, frozen=True, kw_only=True):
    """A file of instructions has been loaded."""

    subject_field: ClassVar[str | None] = "load_reason"
    file_path: str | None = None
    memory_type: str | None = None
    load_reason: str | None = None
    globs: list[Any] | None = None
    trigger_file_path: str | None = None
    parent_file_path: str | None = None


class CwdChanged(Event, frozen=True, kw_only=True):
    """The agent has changed its working directory."""

    old_cwd: str | None = None
    new_cwd: str | None = None


class FileChanged(Event, frozen=True, kw_only=True):
    """A watched file was added, changed or removed."""

    subject_field: ClassVar[str | None] = "file_path"
    file_path: str | None = None
    event: str | None = None

    @property
    def subject(self) -> str:
        """The file's bare name, which is what the client's matcher lists."""
        return (self.file_path or "").replace("\\", "/").rpartition("/")[2]


class DirectoryAdded(Event, frozen=True, kw_only=True):
    """A directory was added to the session."""

    subject_field: ClassVar[str | None] = "source"
    directory: str | None = None
    source: str | None = None


class WorktreeCreate(Event, frozen=True, kw_only=True):
    """A worktree is about to be created."""

    can_block: ClassVar[bool] = True
    name: str | None = None


class WorktreeRemove(Event, frozen=True, kw_only=True):
    """A worktree is about to be removed."""

    can_block: ClassVar[bool] = True
    worktree_path: str | None = None
