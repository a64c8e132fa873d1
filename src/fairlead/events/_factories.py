"""Functions that create the ten events of the hook-system document (`docs/conformance.md`), for tests and agents."""

from __future__ import annotations

from time import time

from fairlead.events._agent_events import (
    PostToolUse,
    PostToolUseFailure,
    PreToolUse,
    SubagentStart,
    SubagentStop,
)
from fairlead.events._session_events import (
    PreCompact,
    SessionEnd,
    SessionStart,
    Stop,
    UserPromptSubmit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def pre_tool_use(session_id: str, tool_name: str, tool_input: Mapping[str, Any]) -> PreToolUse:
    """Return a `PreToolUse` event: a tool is about to run."""
    return PreToolUse(session_id=session_id, tool_name=tool_name, tool_input=dict(tool_input), received=time())


def post_tool_use(session_id: str, tool_name: str, tool_result: Any) -> PostToolUse:
    """Return a `PostToolUse` event: a tool has run."""
    return PostToolUse(session_id=session_id, tool_name=tool_name, tool_response=tool_result, received=time())


def post_tool_use_failure(session_id: str, tool_name: str, error: str) -> PostToolUseFailure:
    """Return a `PostToolUseFailure` event: a tool has failed."""
    return PostToolUseFailure(session_id=session_id, tool_name=tool_name, error=error, received=time())


def user_prompt_submit(session_id: str, prompt: str) -> UserPromptSubmit:
    """Return a `UserPromptSubmit` event: a prompt is about to be sent."""
    return UserPromptSubmit(session_id=session_id, prompt=prompt, received=time())


def session_start(session_id: str) -> SessionStart:
    """Return a `SessionStart` event: a session starts."""
    return SessionStart(session_id=session_id, received=time())


def session_end(session_id: str) -> SessionEnd:
    """Return a `SessionEnd` event: a session ends."""
    return SessionEnd(session_id=session_id, received=time())


def stop(session_id: str) -> Stop:
    """Return a `Stop` event: the agent stops."""
    return Stop(session_id=session_id, received=time())


def pre_compact(session_id: str) -> PreCompact:
    """Return a `PreCompact` event: the conversation is about to be compacted."""
    return PreCompact(session_id=session_id, received=time())


def subagent_start(session_id: str, subagent_id: str, subagent_type: str, description: str) -> SubagentStart:
    """Return a `SubagentStart` event: a subagent starts."""
    return SubagentStart(
        session_id=session_id,
        agent_id=subagent_id,
        agent_type=subagent_type,
        description=description,
        received=time(),
    )


def subagent_stop(session_id: str, subagent_id: str, success: bool, error: str | None = None) -> SubagentStop:  # noqa: FBT001 - the document's signature
    """Return a `SubagentStop` event: a subagent has ended, successfully or not."""
    return SubagentStop(session_id=session_id, agent_id=subagent_id, success=success, error=error, received=time())
