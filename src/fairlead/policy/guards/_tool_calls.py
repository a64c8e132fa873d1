"""Which files a tool call is about, and whether it reads or changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit"})
_READERS = frozenset({"Read", "NotebookRead", "Grep", "Glob", "LS", "LSP"})
_SEARCHERS = frozenset({"Grep"})
"""Tools that look into every file below a folder."""

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
    below: bool = False
    """It also reads what lies below a folder,"""
    among: tuple[str, ...] = ()
    """or those files there that match one of these patterns."""
    adds: bool = False
    """It may make a file that is not there."""
    command: str | None = None
    """A shell command that it runs."""


def read_call(tool: str, tool_input: Mapping[str, Any]) -> Call:
    """Find the files in a tool's input. A tool that is not known to read is taken to write."""
    if tool in _WRITERS or tool in _READERS:
        reads = tool in _READERS
        paths = tuple(_known_paths(tool, tool_input))
        if tool in _SEARCHERS:
            return Call(paths, reads=True, below=True, among=_among(tool_input.get("glob")))
        return Call(paths, reads=reads, adds=not reads)
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


def _among(glob: object) -> tuple[str, ...]:
    """Read a glob on the names of files, `*.py` or `*.{js,ts}`; any other is not relied upon to leave a file out."""
    import re

    plain = re.fullmatch(r"([\w.*-]*)(?:\{([\w.,*-]+)\})?([\w.-]*)", glob) if isinstance(glob, str) else None
    if not plain or not glob:
        return ()
    patterns = tuple(f"{plain[1]}{option}{plain[3]}" for option in (plain[2] or "").split(","))
    return patterns if all(patterns) else ()


def _paths(tool_input: Mapping[str, Any]) -> Iterator[str]:
    for key in (*_FILE_KEYS, *_OTHER_KEYS):
        value = tool_input.get(key)
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and _is_path(path):
                yield path.removeprefix("file://")


def _is_path(text: str) -> bool:
    return bool(text) and "\n" not in text and "://" not in text.removeprefix("file://")
