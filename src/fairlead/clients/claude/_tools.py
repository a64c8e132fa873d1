"""Claude Code's tools: what each one does, and the keys of commands and paths in its input."""

from __future__ import annotations

from fairlead.clients._tool_calls import PathAccess, SubagentRequest, ToolCall, paths_in, shell_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

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
    **dict.fromkeys(("TaskGet", "TaskList", "TaskOutput", "TaskStop", "SendMessage", "ToolSearch"), "other"),
    **dict.fromkeys(("TeamCreate", "TeamDelete", "CronCreate", "CronDelete", "CronList"), "other"),
}
DEFAULT_TOOLS: dict[ToolKind, str] = {"shell": "Bash", "file_write": "Write", "file_read": "Read", "spawn": "Agent"}
FILE_TOOLS = frozenset({"Edit", "MultiEdit", "NotebookEdit", "NotebookRead", "Read", "Write"})
SAME_TOOLS = {"Task": "Agent", "Agent": "Task"}
"""The old and new names of a tool that the client has renamed. Rules with either name match it."""
QUESTIONS = {
    "AskUserQuestion": "a question for you",
    "ExitPlanMode": "a plan to approve",
    "EnterPlanMode": "leave to make a plan",
}
"""Tool whose call is a question to the user → what the user is asked for."""

MCP_PREFIX = "mcp__"
_CODE_LANGUAGES = {"mcp__ide__executeCode": "python"}
"""Tool of the client's own MCP servers that runs code → the language of the code."""

_DEFAULT_SUBAGENT = "general-purpose"
"""The type of subagent that the client starts if the call names none."""
_FILE_KEYS = ("file_path", "notebook_path", "path", "filename")
PATH_KEYS = _FILE_KEYS
_TYPE_PATTERNS: dict[str, tuple[str, ...]] = {
    "c": ("*.[chH]", "*.cats"),
    "cpp": ("*.[ChH]", "*.cc", "*.[ch]pp", "*.[ch]xx", "*.hh", "*.inl"),
    "css": ("*.css", "*.scss"),
    "go": ("*.go",),
    "html": ("*.htm", "*.html", "*.ejs"),
    "java": ("*.java", "*.jsp", "*.jspx", "*.properties"),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "md": ("*.md", "*.markdown", "*.mdown", "*.mdwn", "*.mkd", "*.mkdn", "*.mdx"),
    "php": ("*.php*", "*.phtml"),
    "py": ("*.py", "*.pyi"),
    "rust": ("*.rs",),
    "ts": ("*.ts", "*.tsx", "*.cts", "*.mts"),
}
"""The file types of Grep, as ripgrep defines them. A type that is not listed may match any file."""
_SUMMARY_KEYS = ("command", "file_path", "notebook_path", "path", "pattern", "url", "query", "subagent_type")


def tool_call(tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the normal form of a tool call. Raise `TypeError` if the input does not have the tool's form."""
    kind = TOOL_KINDS.get(tool)
    if kind == "file_write":
        return ToolCall(kind, tuple([PathAccess(path) for path in _known_paths(tool, tool_input)]))
    if kind == "file_read":
        return ToolCall(kind, tuple([PathAccess(path, "read") for path in _known_paths(tool, tool_input)]))
    if kind == "search":
        return _search(tool, tool_input)
    if kind == "shell":
        return shell_call(tool, tool_input)
    return _without_known_paths(kind, tool, tool_input)


def _without_known_paths(kind: ToolKind | None, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    if kind == "spawn":
        return ToolCall(kind, subagent=subagent_request(tool_input))
    if kind == "fetch":
        local = (path for path in paths_in(tool_input, ("url",)) if path != tool_input["url"])
        return ToolCall(kind, tuple(PathAccess(path, "read") for path in local))
    if kind:
        return ToolCall(kind)
    from fairlead.clients._any_tool import generic_call

    return generic_call(tool, tool_input, language=_CODE_LANGUAGES.get(tool, ""))


def file_of(tool_input: Mapping[str, Any]) -> str | None:
    """Return the file in the input of a call; `None` if there is none."""
    for key in ("file_path", "notebook_path"):
        if isinstance(path := tool_input.get(key), str):
            return path
    return None


def path_of(tool_input: Mapping[str, Any]) -> str:
    """Return the file or folder in the input of a call; "" if there is none."""
    path = tool_input.get("file_path") or tool_input.get("notebook_path") or tool_input.get("path")
    return path if type(path) is str else ""


def summary_of(tool_input: Mapping[str, Any]) -> str:
    """Return the most informative value of a call's input, such as its command or path; "" if there is none."""
    return str(next((tool_input[key] for key in _SUMMARY_KEYS if tool_input.get(key)), ""))


def subagent_request(tool_input: Mapping[str, Any]) -> SubagentRequest:
    """Return the subagent that a call starts."""
    kind = tool_input.get("subagent_type") or _DEFAULT_SUBAGENT
    name, description = tool_input.get("name") or kind, tool_input.get("description")
    return SubagentRequest(
        str(kind),
        name if type(name) is str else "",
        description if type(description) is str else "",
    )


def without_files(tool: str, tool_input: Mapping[str, Any], globs: Sequence[str]) -> dict[str, Any] | None:
    """Return an input of Grep that also excludes files by `globs`; `None` for another tool or an invalid `glob`.

    The client splits the value of `glob` at blanks and passes each part to ripgrep, where the last match decides.
    """
    given = tool_input.get("glob") or ""
    if tool != "Grep" or not isinstance(given, str):
        return None
    return {**tool_input, "glob": " ".join([*given.split(), *(f"!{glob}" for glob in globs)])}


def _search(tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the normal form of a search: Grep reads all files below a folder, Glob only their names."""
    paths = [*_known_paths(tool, tool_input)]
    if tool != "Grep":
        return ToolCall("search", tuple(PathAccess(path, "list") for path in paths))
    glob = tool_input.get("glob")
    if isinstance(glob, str):
        paths.append(f"{tool_input.get('path') or '.'}/{glob}")
    if not tool_input.get("path"):
        paths.append(".")
    among = _file_names(glob) or _TYPE_PATTERNS.get(str(tool_input.get("type")), ())
    return ToolCall("search", tuple(PathAccess(path, "read", below=True, among=among) for path in paths))


def _known_paths(tool: str, tool_input: Mapping[str, Any]) -> Iterator[str]:
    for key in _FILE_KEYS:
        path = tool_input.get(key)
        if path is None:
            continue
        if not isinstance(path, str):
            raise TypeError(f"{tool}: {key} must be a string, not {type(path).__name__}")
        yield path


def _file_names(glob: object) -> tuple[str, ...]:
    """Return the file name patterns of a glob: `*.{js,ts}` → `*.js`, `*.ts`; empty if it may match any file."""
    import re

    plain = re.fullmatch(r"([\w.*-]*)(?:\{([\w.,*-]+)\})?([\w.-]*)", glob) if isinstance(glob, str) else None
    if not plain or not glob:
        return ()
    patterns = tuple(f"{plain[1]}{option}{plain[3]}" for option in (plain[2] or "").split(","))
    return patterns if all(patterns) else ()
