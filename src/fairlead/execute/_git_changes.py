"""Asks git whether files that a command depends on have changed. If git fails, they count as changed."""

from __future__ import annotations

import os
from time import monotonic

from fairlead.errors import CommandFailed
from fairlead.process import CancellationToken, run_process

_GIT_TIMEOUT = 10.0  # seconds
_BASE = "HEAD@{24.hours.ago}"
"""Files that were committed since then count as changed. Otherwise a commit would bypass every check."""


class FileChanges:
    """The changed files of each folder. Asks git once for each folder, on first use.

    `deadline` is a time of `time.monotonic()`.
    """

    def __init__(self, deadline: float, cancellation: CancellationToken) -> None:
        self._deadline = deadline
        self._cancellation = cancellation
        self._known: dict[str, list[str] | None] = {}

    def match(self, folder: str, patterns: tuple[str, ...], *, loose: bool = False) -> bool:
        """Return whether a changed file of the folder matches one of the gitignore patterns.

        Returns `True` as well if git fails or a pattern is invalid.
        """
        if folder not in self._known:
            self._known[folder] = self._list_changes(folder)
        changed = self._known[folder]
        if changed is None:
            return True
        from fairlead.policy import PatternError, PatternList

        try:
            return PatternList(patterns, folder, loose=loose).matches_any(changed)
        except PatternError:
            return True

    def _list_changes(self, folder: str) -> list[str] | None:
        try:
            prefix = os.fsdecode(self._git(folder, "rev-parse", "--show-prefix")).removesuffix("\n")
            listed = self._git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
            committed = self._committed(folder)
        except CommandFailed:
            return None
        names = [*_names(os.fsdecode(listed)), *os.fsdecode(committed).split("\0")]
        return [name.removeprefix(prefix) for name in names if name]

    def _committed(self, folder: str) -> bytes:
        if not self._git(folder, "rev-list", "--all", "--max-count=1"):
            return b""
        return self._git(folder, "diff", "--name-only", "-z", "--no-renames", _BASE, "--", ".")

    def _git(self, folder: str, *args: str) -> bytes:
        done = run_process(
            ["git", *args],
            b"",
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # a hook must not make the agent's own git fail
            deadline=min(self._deadline, monotonic() + _GIT_TIMEOUT),
            cancellation=self._cancellation,
        )
        if done.exit_code != 0:
            raise CommandFailed(f"git {args[0]} ended with exit code {done.exit_code}")
        return done.stdout


def _names(listed: str) -> list[str]:
    """Return the names in the output of `git status -z`; of a moved or copied file, the former name as well."""
    names = []
    entries = iter(listed.split("\0"))
    for entry in entries:
        if entry:
            names.append(entry[3:])
            if entry[0] in "RC" or entry[1] in "RC":
                names.append(next(entries, ""))
    return names
