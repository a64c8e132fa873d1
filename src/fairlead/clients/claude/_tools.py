"""Claude Code's tools: what each of them does, and where in its input the command and the paths are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.clients._tool_calls import SubagentRequest, ToolCall, paths_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients._tool_calls import ToolKind

TOOL_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("Bash", "Monitor"), "shell"),
    **dict.fromkeys(("Write", "Edit", "MultiEdit", "NotebookEdit"), "file_write"),
    **dict.fromkeys(("Read", "NotebookRead", "LS", "LSP"), "file_read"),
    **dict.fromkeys(("Grep", "Glob"), "search"),
    **dict.fromkeys(("WebFetch", "WebSearch"), "fetch"),
    **dict.fromkeys(("Agent", "Task"), "spawn"),
    **dict.fromkeys(("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"), "other"),
    **dict.fromkeys(("BashOutput", "KillShell", "Skill", "SlashCommand", "TodoWrite"), "other"),
    **dict.fromkeys(("TaskCreate", "TaskUpdate", "EnterWorktree", "ExitWorktree"), "other"),
}
DEFAULT_TOOLS: dict[ToolKind, str] = {"shell": "Bash", "file_write": "Write", "file_read": "Read", "spawn": "Agent"}
FILE_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "Write"})
SAME_TOOLS = {"Task": "Agent", "Agent": "Task"}
"""The client renamed the tool; rules with either name go on matching it."""
QUESTIONS = {
    "AskUserQuestion": "a question for you",
    "ExitPlanMode": "a plan to approve",
    "EnterPlanMode": "leave to make a plan",
}
"""Tools whose call is a question to the user."""

MCP_PREFIX = "mcp__"

_DEFAULT_SUBAGENT = "general-purpose"
"""What the client starts if the call names no type."""
_FILE_KEYS = ("file_path", "notebook_path", "path", "filename")
PATH_KEYS = (
    *_FILE_KEYS,
    *("filePath", "file", "target_file", "relative_path", "source", "destination", "paths", "files"),
)
"""Also how tools of MCP servers name their files."""
_SUMMARY_KEYS = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "subagent_type")
_READING_VERBS = frozenset(
    {"read", "get", "list", "ls", "search", "find", "grep", "glob", "view", "show", "stat", "tree", "describe"}
)
"""The first word in the name of an MCP tool that reads."""
_CREATING_VERBS = ("write", "create", "edit", "save", "move", "copy", "rename", "put", "append", "insert", "touch")


def tool_call(tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the normal form of a tool call. A tool that is not known to read is taken to write."""
    kind = TOOL_KINDS.get(tool, "other")
    if kind == "file_write":
        return ToolCall(kind, tuple(_known_paths(tool, tool_input)), adds=True)
    if kind == "file_read":
        return ToolCall(kind, tuple(_known_paths(tool, tool_input)), reads=True)
    if kind == "search":
        return _search(tool, tool_input)
    if kind == "shell":
        command = tool_input.get("command")
        if not isinstance(command, str):
            raise TypeError(f"{tool}: its command must be a string, not {type(command).__name__}")
        return ToolCall(kind, command=command)
    return _other(kind, tool, tool_input)


def file_of(tool_input: Mapping[str, Any]) -> str | None:
    """Return the file that a call is about; `None` if it names none."""
    for key in ("file_path", "notebook_path"):
        if isinstance(path := tool_input.get(key), str):
            return path
    return None


def path_of(tool_input: Mapping[str, Any]) -> str:
    """Return the file or folder that a call is about; "" if it names none."""
    path = tool_input.get("file_path") or tool_input.get("notebook_path") or tool_input.get("path")
    return path if type(path) is str else ""


def summary_of(tool_input: Mapping[str, Any]) -> str:
    """Return the value of an input that says most about the call."""
    return str(next((tool_input[key] for key in _SUMMARY_KEYS if tool_input.get(key)), ""))


def subagent_request(tool_input: Mapping[str, Any]) -> SubagentRequest:
    """Return which subagent a call asks for."""
    kind = tool_input.get("subagent_type") or _DEFAULT_SUBAGENT
    name, description = tool_input.get("name") or kind, tool_input.get("description")
    return SubagentRequest(
        str(kind),
        name if type(name) is str else "",
        description if type(description) is str else "",
    )


def _search(tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Grep reads every file below a folder, Glob only their names."""
    if tool != "Grep":
        return ToolCall("search", tuple(_known_paths(tool, tool_input)), reads=True)
    paths, glob = [*_known_paths(tool, tool_input)], tool_input.get("glob")
    if isinstance(glob, str):
        paths.append(f"{tool_input.get('path') or '.'}/{glob}")
    return ToolCall("search", tuple(paths), reads=True, below=True, among=_file_names(glob))


def _other(kind: ToolKind, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the call of a tool of an MCP server, or of one that only a newer client has: its name is a hint."""
    name, command = tool.rpartition("__")[2], tool_input.get("command")
    return ToolCall(
        kind,
        tuple(paths_in(tool_input, PATH_KEYS)),
        reads=name.partition("_")[0].lower() in _READING_VERBS,
        adds="file_path" in tool_input or any(verb in name.lower() for verb in _CREATING_VERBS),
        command=command if tool.startswith(MCP_PREFIX) and isinstance(command, str) else None,
        subagent=subagent_request(tool_input) if kind == "spawn" else None,
    )


def _known_paths(tool: str, tool_input: Mapping[str, Any]) -> Iterator[str]:
    for key in _FILE_KEYS:
        path = tool_input.get(key)
        if path is None:
            continue
        if not isinstance(path, str):
            raise TypeError(f"{tool}: {key} must be a string, not {type(path).__name__}")
        yield path


def _file_names(glob: object) -> tuple[str, ...]:
    """Return the patterns of a glob on file names, `*.py` or `*.{js,ts}`; any other may match any file."""
    import re

    plain = re.fullmatch(r"([\w.*-]*)(?:\{([\w.,*-]+)\})?([\w.-]*)", glob) if isinstance(glob, str) else None
    if not plain or not glob:
        return ()
    patterns = tuple(f"{plain[1]}{option}{plain[3]}" for option in (plain[2] or "").split(","))
    return patterns if all(patterns) else ()
