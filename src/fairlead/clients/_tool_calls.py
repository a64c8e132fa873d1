"""The normal form of a tool call: what the call does, without names of a particular client. Shared by all clients.

A client creates it from its own tables, and `_any_tool` creates it for tools that are in no table.
"""

from __future__ import annotations

from fairlead.structs import LIGHT, Struct, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal

    ToolKind = Literal["shell", "file_write", "file_read", "search", "fetch", "spawn", "other"]
    """What a tool does. `other` is anything else, and every unknown tool."""
    PathMode = Literal["read", "list", "write", "make_folder", "delete", "move", "any"]
    """What a call does to a path.

    read         reads the contents
    list         shows only names and properties
    write        changes the contents, or creates the file
    make_folder  creates a folder
    delete       deletes it, a folder with everything below it
    move         moves it elsewhere, where it can be read
    any          passes it to a tool that may do any of these
    """


class PathAccess(Struct, frozen=True, gc=False):
    """A file or folder that a call names, and what the call does to it."""

    path: str
    """Absolute, or relative to the agent's working directory."""
    mode: PathMode = "write"
    below: bool = False
    """Whether everything below a folder is accessed, too. `delete` and `move` always include that."""
    among: tuple[str, ...] = ()
    """Glob patterns: only the files below the folder whose name matches one are accessed. Empty: all."""
    glob: bool = False
    """Whether the path is a pattern (`*`, `?`, `[…]`) for the accessed files."""


class InlineCode(Struct, frozen=True, gc=False):
    """Code that a call runs."""

    language: str
    """Lower case: `python`, `javascript`; "" if unknown."""
    text: str


class Choice(Struct, frozen=True, gc=False):
    """One question that a call asks the user."""

    question: str
    options: tuple[str, ...] = ()
    """The answers that the client offers. The user may write a different answer."""
    allows_several: bool = field(default=False, name="several")
    """Whether more than one option can be chosen."""
    descriptions: tuple[str, ...] = ()
    """The client's description of each option, parallel to `options`; "" if it has none."""


class SubagentRequest(Struct, frozen=True, gc=False):
    """The subagent that a call of a `spawn` tool starts."""

    type: str = ""
    """The type of the subagent; the client's default type if the call names none."""
    name: str = ""
    """The name of the subagent: the one in the call, or else its type."""
    description: str = ""


class ToolCall(Struct, frozen=True, gc=False):
    """A tool call in the form that all clients share."""

    kind: ToolKind = "other"
    paths: tuple[PathAccess, ...] = ()
    """The files and folders that the call names."""
    command: str | None = None
    """The shell commands that the call runs, one per line; `None` if it runs none."""
    folder: str = ""
    """The working directory of the command; "" for the agent's."""
    code: tuple[InlineCode, ...] = ()
    subagent: SubagentRequest | None = None
    unknown: tuple[str, ...] = ()
    """Effects of the call that are not known from its input, each as a text for the user."""


def shell_call(tool: str, tool_input: Mapping[str, Any], keys: tuple[str, ...] = ("command",)) -> ToolCall:
    """Return the normal form of a call that runs a shell command. Raise `TypeError` if it has no command.

    The command is the value of the first of the `keys` that the input has.
    """
    command = next((tool_input[key] for key in keys if key in tool_input), None)
    if not isinstance(command, str):
        raise TypeError(f"{tool}: its command must be a string, not {type(command).__name__}")
    return ToolCall("shell", command=command)


def paths_in(tool_input: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths in the values of some keys: strings or lists of strings, without URLs except `file:`."""
    for key in keys:
        value = tool_input.get(key)
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and (local := local_path(path)):
                yield local


def local_path(text: str) -> str:
    """Return a text as a path; the path of a `file:` URL; "" for other URLs and for several lines."""
    if text[:5].lower() == "file:":
        return _path_of_url(text)
    return "" if "\n" in text or "://" in text else text


def _path_of_url(url: str) -> str:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return unquote(parts.path)
