"""Which files a tool call is about, and whether it reads or changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_READERS = frozenset({"Read", "NotebookRead", "Grep", "Glob", "LS", "LSP"})
_SHELLS = frozenset({"Bash", "Monitor"})
_FILE_KEYS = ("file_path", "notebook_path", "path", "filename")
_OTHER_KEYS = ("filePath", "file", "target_file", "relative_path", "source", "destination", "paths", "files")
"""What tools of other servers call their files."""

_READS = frozenset(
    {"read", "get", "list", "ls", "search", "find", "grep", "glob", "view", "show", "stat", "tree", "describe"}
)
"""The first word in the name of a tool of another server that reads."""

_ADDS = ("write", "create", "edit", "save", "move", "copy", "rename", "put", "append", "insert", "touch")


class Call(msgspec.Struct, frozen=True):
    """A tool call, as far as files are concerned."""

    paths: tuple[str, ...] = ()
    reads: bool = False
    adds: bool = False
    """It may make a file that is not there."""
    command: str | None = None
    """A shell command that it runs."""


def read_call(tool: str, tool_input: Mapping[str, Any]) -> Call:
    """Find the files in a tool's input. A tool that is not known to read is taken to write."""
    if tool in _WRITERS or tool in _READERS:
        reads = tool in _READERS
        return Call(tuple(_known_paths(tool, tool_input)), reads=reads, adds=not reads)
    command = tool_input.get("command")
    if tool in _SHELLS:
        if not isinstance(command, str):
            raise TypeError(f"{tool}: its command must be a string, not {type(command).__name__}")
        return Call(command=command)
    own_name = tool.rpartition("__")[2]
    return Call(
        tuple(_paths(tool_input)),
        reads=own_name.partition("_")[0].lower() in _READS,
        adds="file_path" in tool_input or any(word in own_name.lower() for word in _ADDS),
        command=command if tool.startswith("mcp__") and isinstance(command, str) else None,
    )


def _known_paths(tool: str, tool_input: Mapping[str, Any]) -> Iterator[str]:
    for key in _FILE_KEYS:
        path = tool_input.get(key)
        if path is None:
            continue
        if not isinstance(path, str):
            raise TypeError(f"{tool}: {key} must be a string, not {type(path).__name__}")
        yield path
    glob = tool_input.get("glob") if tool == "Grep" else None
    if isinstance(glob, str):
        yield f"{tool_input.get('path') or '.'}/{glob}"


def _paths(tool_input: Mapping[str, Any]) -> Iterator[str]:
    for key in (*_FILE_KEYS, *_OTHER_KEYS):
        value = tool_input.get(key)
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and _is_path(path):
                yield path.removeprefix("file://")


def _is_path(text: str) -> bool:
    return bool(text) and "\n" not in text and "://" not in text.removeprefix("file://")
