"""A second client, in one file: its own names of events, keys, tools and answers. It proves the seam for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients import patch_paths
from fairlead.clients.protocol import (
    Capabilities,
    Client,
    ClientAnswer,
    PathAccess,
    SubagentRequest,
    ToolCall,
    Variables,
)
from fairlead.errors import PayloadError
from fairlead.events import decode_json, encode_json, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.events import Event, HookOutput

_KEYS = {"type": "hook_event_name", "conversation": "session_id", "dir": "cwd", "text": "prompt", "call": "tool_use_id"}


class Toy(Client):
    """It sends `{"type": "before_tool", "conversation": …, "tool": {"name": …, "args": …}}`, and reads JSON alone."""

    name = "toy"
    title = "Toy"
    event_names = {
        "opened": "SessionStart",
        "asked": "UserPromptSubmit",
        "before_tool": "PreToolUse",
        "after_tool": "PostToolUse",
        "turn_done": "Stop",
        "closed": "SessionEnd",
    }
    capabilities = Capabilities(
        blocks=frozenset({"PreToolUse", "UserPromptSubmit", "Stop"}), blocks_by_exit_code=frozenset()
    )
    variables = Variables(session_id=("TOY_CONVERSATION",))
    tool_kinds = {
        "write_file": "file_write",
        "convert": "file_write",
        "patch": "file_write",
        "show_file": "file_read",
        "run_shell": "shell",
        "helper": "spawn",
    }
    default_tools = {"shell": "run_shell", "file_write": "write_file"}
    command_keys = ("line",)
    path_keys = ("target", "targets")
    shell_mark = b'"run_shell"'

    def parse(self, payload: bytes, event: str) -> Event:
        try:
            document = decode_json(payload)
        except (ValueError, RecursionError) as error:
            raise PayloadError(f"payload: not valid JSON: {error}") from None
        if not isinstance(document, dict):
            raise PayloadError("payload: expected a JSON object")
        tool = document.pop("tool", None) or {}
        fields: dict[str, Any] = {_KEYS.get(key) or str(key): value for key, value in document.items()}
        fields["hook_event_name"] = self.event_names.get(document.get("type", event), event)
        if tool:
            fields |= {"tool_name": tool["name"], "tool_input": tool.get("args", {}), "tool_response": tool.get("out")}
        return self.own(parse(fields))

    def render(self, event: Event, output: HookOutput) -> ClientAnswer:
        del event
        document: dict[str, Any] = {}
        if output.blocked:
            document = {"verdict": "no", "because": output.reason}
        if output.additional_context:
            document["note"] = output.additional_context
        return ClientAnswer(stdout=encode_json(document) + b"\n" if document else b"")

    def refuse(self, event: str, payload: bytes, reason: str) -> ClientAnswer:
        if not self.is_gate(event, payload):
            return ClientAnswer(1, stderr=reason)
        return ClientAnswer(stdout=encode_json({"verdict": "no", "because": reason}) + b"\n")

    def tool_call(self, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
        if tool == "convert":
            return ToolCall("file_write", (PathAccess(tool_input["target"], "read"), PathAccess(tool_input["into"])))
        if tool == "patch":
            return ToolCall("file_write", tuple(patch_paths(tool_input["text"])))
        return super().tool_call(tool, tool_input)

    def subagent_request(self, tool_input: Mapping[str, Any]) -> SubagentRequest:
        role = str(tool_input.get("role", ""))
        return SubagentRequest(role, role, str(tool_input.get("task", "")))


CLIENT = Toy()
