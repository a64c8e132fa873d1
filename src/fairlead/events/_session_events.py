"""Events of a session: its start and end, prompts and turns, context and environment.

Only the fields that identify an event are required, as in `_agent_events.py`.
"""

from __future__ import annotations

from fairlead.events._event import Event
from fairlead.structs import LIGHT

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from typing import Any, ClassVar

# -- a session -----------------------------------------------------------------------------------------


class SessionStart(Event, frozen=True, kw_only=True):
    """A session starts, resumes, or continues after `/clear` or compaction."""

    can_block: ClassVar[bool] = True
    subject_field: ClassVar[str | None] = "source"
    source: str | None = None
    model: str | None = None
    session_title: str | None = None
    seconds_since_last_response: int | float | None = None
    context_tokens: int | None = None
    prompt_cache_likely_expired: bool | None = None
    estimated_cache_write_usd: int | float | None = None


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
    """A prompt is about to be sent. Finished background agents fire this event too, not only the user."""

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


# -- the end of a turn ---------------------------------------------------------------------------------


class Stop(Event, frozen=True, kw_only=True):
    """The main agent has answered. Subagents in the background may still be working: see `background_tasks`."""

    keeps_going: ClassVar[bool] = True
    stop_hook_active: bool | None = None
    last_assistant_message: str | None = None
    background_tasks: list[Any] | None = None
    session_crons: list[Any] | None = None


class StopFailure(Event, frozen=True, kw_only=True):
    """The turn ended with an error of the model's API."""

    subject_field: ClassVar[str | None] = "error"
    error: str | None = None
    error_details: str | None = None
    last_assistant_message: str | None = None


class Notification(Event, frozen=True, kw_only=True):
    """The client notifies the user."""

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
    """The base class of the two events about a switch of the model."""

    subject_field: ClassVar[str | None] = "to_model"
    from_model: str | None = None
    to_model: str | None = None
    requested_model: str | None = None
    source: str | None = None
    context_tokens: int | None = None
    prompt_cache_warm: bool | None = None
    cache_ttl: str | None = None
    estimated_cache_write_usd: int | float | None = None
    pricing: str | None = None


class PreModelSwitch(ModelSwitch, frozen=True, kw_only=True):
    """The model is about to be switched."""

    can_block: ClassVar[bool] = True


class PostModelSwitch(ModelSwitch, frozen=True, kw_only=True):
    """The model has been switched."""


# -- the environment -----------------------------------------------------------------------------------


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
        """The file's base name, which the client's matcher lists."""
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
