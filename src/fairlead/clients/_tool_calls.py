"""The normal form of a tool call: what the call does, without any name that only one client knows. Shared by clients.

A client makes it from its own tables; `_any_tool` makes it for all that no table has.
"""

from __future__ import annotations

from fairlead.structs import LIGHT, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

if TYPE_CHECKING or not LIGHT:
    from typing import Any, Literal

    ToolKind = Literal["shell", "file_write", "file_read", "search", "fetch", "spawn", "other"]
    """What a tool does. `other` is everything else, and every tool that is not known."""
    PathMode = Literal["read", "list", "write", "make_folder", "delete", "move", "any"]
    """What is done to a path.

    read         its contents are read
    list         only names and properties are shown
    write        its contents are changed; it is created if it does not exist
    make_folder  a folder is created
    delete       it is removed, a folder with all that is below
    move         it is removed from there, and can be read elsewhere
    any          it is given to a tool of which that is not known
    """


class PathAccess(Struct, frozen=True, gc=False):
    """A file or folder that a call names, and what the call does to it."""

    path: str
    """Absolute, or relative to the agent's working directory."""
    mode: PathMode = "write"
    below: bool = False
    """What lies below a folder is accessed too. `delete` and `move` always do that."""
    among: tuple[str, ...] = ()
    """Glob patterns of file names: of the files below a folder only those that match one. Empty: all."""
    glob: bool = False
    """The path is a pattern (`*`, `?`, `[…]`), for the files that it matches."""


class InlineCode(Struct, frozen=True, gc=False):
    """Code that a call runs."""

    language: str
    """Lower case: `python`, `javascript`; "" if it is not known."""
    text: str


class Choice(Struct, frozen=True, gc=False):
    """One question that a call asks the user."""

    question: str
    options: tuple[str, ...] = ()
    """What the client offers; the user may write something else."""
    several: bool = False
    """More than one option can be chosen."""
    descriptions: tuple[str, ...] = ()
    """What the client says about each option, in their order; "" where it says nothing."""


class SubagentRequest(Struct, frozen=True, gc=False):
    """What a call of a `spawn` tool asks for."""

    type: str = ""
    """The type of subagent, after the client's default."""
    name: str = ""
    """What the client will call it: the name that the call gives it, else its type."""
    description: str = ""


class ToolCall(Struct, frozen=True, gc=False):
    """A tool call in the form that all clients share."""

    kind: ToolKind = "other"
    paths: tuple[PathAccess, ...] = ()
    """The files and folders that the call names."""
    command: str | None = None
    """The shell commands that it runs, one a line if there are several."""
    folder: str = ""
    """Where the command runs, if that is not the agent's working directory."""
    code: tuple[InlineCode, ...] = ()
    subagent: SubagentRequest | None = None
    unknown: tuple[str, ...] = ()
    """What the input does not tell, each as text for the user."""


def shell_call(tool: str, tool_input: Mapping[str, Any], keys: tuple[str, ...] = ("command",)) -> ToolCall:
    """Return the call of a tool that runs a shell command. Raise `TypeError` if it has none."""
    command = next((tool_input[key] for key in keys if key in tool_input), None)
    if not isinstance(command, str):
        raise TypeError(f"{tool}: its command must be a string, not {type(command).__name__}")
    return ToolCall("shell", command=command)


def paths_in(tool_input: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of some keys that can be paths: strings, or lists of them, and no URL but of a file."""
    for key in keys:
        value = tool_input.get(key)
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and (local := local_path(path)):
                yield local


def local_path(text: str) -> str:
    """Return a path, or the path of a `file:` URL; "" for what is neither."""
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
