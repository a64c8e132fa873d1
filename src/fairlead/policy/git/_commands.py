"""Subcommands of git that change the working tree, and the files that calls name outside of a repository."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._types import FileAccess
from fairlead.policy.bash.programs._git_arguments import parse_git
from fairlead.policy.git._merges import patched_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.bash.programs._calls import GitCommand, Mode

TREE_COMMANDS: Final = frozenset(
    """am apply bisect checkout checkout-index cherry-pick clean filter-branch filter-repo merge pull read-tree rebase
    reset restore revert rm sparse-checkout stash submodule subtree switch""".split()  # noqa: SIM905 - a table
)
"""Commands that may change files of the working tree."""


@lru_cache(maxsize=512)
def named_files(command: GitCommand) -> tuple[FileAccess, ...]:
    """Return the files that a call names in a folder without a repository, because an earlier call may create one."""
    return tuple(_named_files(command))


def _named_files(command: GitCommand) -> Iterator[FileAccess]:
    for mode, path in _named(command):
        if path and command.folder is not None:
            joined = path if command.folder == "." or path.startswith(("/", "~")) else f"{command.folder}/{path}"
            exists = command.name == "checkout" and "--" not in command.args
            yield FileAccess(joined, mode, "git", below=True, folder=command.folder, if_exists=exists)


def _named(command: GitCommand) -> Iterator[tuple[Mode, str]]:
    opts = parse_git(command.args, "bBsmepC", "source message exclude orphan directory pathspec-from-file")
    name = command.name
    if name in {"checkout", "restore"}:
        only_index = opts.has("S", "staged") and not opts.has("W", "worktree")
        yield from (("write", path) for path in opts.words if not only_index)
    elif name == "rm":
        yield from (("delete", path) for path in opts.words if not opts.has("cached", "n", "dry-run"))
    elif name == "clean":
        if opts.has("f", "force") and not opts.has("n", "dry-run"):
            yield from (("delete", path) for path in opts.words or ["."])
    elif name == "stash":
        yield from (("write", path) for path in opts.words[1:] if opts.words[0] == "push")
    elif name == "checkout-index":
        yield from (("write", path) for path in opts.words or ["."])
    elif name in {"apply", "am"} and command.stdin is not None:
        yield from (("write", path) for path in patched_names(command.stdin, 1))
    elif name in {"diff", "log", "show", "grep", "archive", "cat-file", "whatchanged", "hash-object"}:
        yield from (("read", path.partition(":")[2] or path) for path in opts.words)
