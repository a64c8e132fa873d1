"""The normal form of a tool call, by the kind of the tool and the keys of its input. Shared by clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.clients.protocol import Client

ToolKind = Literal["shell", "file_write", "file_read", "search", "fetch", "spawn", "other"]
"""What a tool does. `other` is everything else, and every tool that is not known."""


class SubagentRequest(msgspec.Struct, frozen=True, gc=False):
    """What a call of a `spawn` tool asks for."""

    type: str = ""
    """The type of subagent, after the client's default."""
    name: str = ""
    """What the client will call it: the name that the call gives it, else its type."""
    description: str = ""


class ToolCall(msgspec.Struct, frozen=True, gc=False):
    """A tool call in the form that all clients share."""

    kind: ToolKind = "other"
    paths: tuple[str, ...] = ()
    """The files and folders that the call names, absolute or relative to the agent's working directory."""
    command: str | None = None
    """The shell command that it runs."""
    reads: bool = False
    """It only reads its paths. A call that is not known to read is checked as a write."""
    below: bool = False
    """It also reads the files below a folder."""
    among: tuple[str, ...] = ()
    """Glob patterns of file names: of the files below a folder it reads only those that match one. Empty: all."""
    adds: bool = False
    """It may create a file."""
    subagent: SubagentRequest | None = None


def tool_call(client: Client, tool: str, tool_input: Mapping[str, Any]) -> ToolCall:
    """Return the normal form of a call, by the client's `tool_kinds`, `command_keys` and `path_keys`.

    A tool that is not known to read is taken to write. Raise `TypeError` if a shell tool has no command.
    """
    kind = client.kind_of(tool)
    reads = kind in {"file_read", "search"}
    return ToolCall(
        kind,
        tuple(paths_in(tool_input, client.path_keys)),
        command=_command(client, tool, tool_input) if kind == "shell" else None,
        reads=reads,
        below=kind == "search",
        adds=not reads,
        subagent=client.subagent_request(tool_input) if kind == "spawn" else None,
    )


def paths_in(tool_input: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the values of some keys that can be paths: strings, or lists of them, and no URL but of a file."""
    for key in keys:
        value = tool_input.get(key)
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and _is_path(path):
                yield path.removeprefix("file://")


def _command(client: Client, tool: str, tool_input: Mapping[str, Any]) -> str:
    command = next((tool_input[key] for key in client.command_keys if key in tool_input), None)
    if not isinstance(command, str):
        raise TypeError(f"{tool}: its command must be a string, not {type(command).__name__}")
    return command


def _is_path(text: str) -> bool:
    return bool(text) and "\n" not in text and "://" not in text.removeprefix("file://")
