"""Converts calls of MCP tools for git (`git_checkout`, `mcp__git__checkout`) to the git commands that they run."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from fairlead.clients._tool_words import words_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SUBCOMMANDS = frozenset(
    {"add", "apply", "branch", "checkout", "cherry-pick", "clean", "commit", "diff", "grep", "log", "merge", "pull"}
    | {"push", "rebase", "reset", "restore", "revert", "rm", "mv", "show", "stash", "status", "switch", "tag"}
)
_FLAGS = {"hard": "--hard", "force": "--force", "staged": "--staged", "soft": "--soft", "cached": "--cached"}
_REVISION_KEYS = ("branch_name", "branch", "target", "revision", "ref", "commit", "source", "start_point", "stash")
_FILE_KEYS = ("files", "paths", "file", "path", "file_path", "pathspec")
_FOLDER_KEYS = ("repo_path", "repoPath", "repo", "repository", "cwd", "directory")


def git_command(tool: str, tool_input: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the git command of a call, and the folder of its repository; `None` if it is not a known git command.

    The folder is "" if the call names none.
    """
    server, _, name = tool.rpartition("__")
    words = words_of(name)
    if words[:1] != ["git"] and "git" not in words_of(server.rpartition("__")[2]):
        return None
    subcommand = "-".join(words[1:] if words[:1] == ["git"] else words)
    if subcommand.partition("-")[0] in {"diff", "stash"}:
        subcommand = subcommand.partition("-")[0]
    if subcommand not in _SUBCOMMANDS:
        return None
    folder = next((value for key in _FOLDER_KEYS if isinstance(value := tool_input.get(key), str)), "")
    return shlex.join(["git", subcommand, *_arguments(subcommand, tool_input)]), folder


def _arguments(subcommand: str, tool_input: Mapping[str, Any]) -> Iterator[str]:
    if subcommand == "commit":
        yield from ("-m", str(tool_input.get("message", "")))
    mode = tool_input.get("mode")
    given = {key for key in _FLAGS if tool_input.get(key) is True or mode == key}
    yield from (_FLAGS[key] for key in sorted(given))
    yield from _texts(tool_input, _REVISION_KEYS)
    files = list(_texts(tool_input, _FILE_KEYS))
    yield from ("--", *files) if files else ()


def _texts(tool_input: Mapping[str, Any], keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        value = tool_input.get(key)
        for text in value if isinstance(value, list) else (value,):
            if isinstance(text, str) and text:
                yield text
