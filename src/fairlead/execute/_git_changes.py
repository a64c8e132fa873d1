"""Whether files that a command cares about have changed, by git's reckoning. Who cannot tell says yes."""

from __future__ import annotations

import os
from time import monotonic

from fairlead.errors import CommandFailed, HookTimeout
from fairlead.process import CancellationToken, run_process

_PATIENCE = 10.0  # seconds for git to answer
_A_DAY_AGO = "HEAD@{24.hours.ago}"
"""What was committed since then counts as changed, else a commit would be a way around every check."""


class Changes:
    """Asks git once for each folder, and only if somebody wants to know."""

    def __init__(self, deadline: float, cancellation: CancellationToken) -> None:
        """Take the time by which all must be done."""
        self._deadline = deadline
        self._cancellation = cancellation
        self._known: dict[str, list[str] | None] = {}

    def match(self, folder: str, patterns: tuple[str, ...], *, loose: bool = False) -> bool:
        """Tell whether a file of the folder that matches one of the gitignore patterns has changed."""
        if folder not in self._known:
            self._known[folder] = self._ask(folder)
        changed = self._known[folder]
        if changed is None:
            return True
        from fairlead.policy import PatternError, PatternList

        try:
            return PatternList(patterns, folder, loose=loose).matches_any(changed)
        except PatternError:
            return True

    def _ask(self, folder: str) -> list[str] | None:
        try:
            prefix = os.fsdecode(self._git(folder, "rev-parse", "--show-prefix")).removesuffix("\n")
            listed = self._git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
            committed = self._committed(folder)
        except (CommandFailed, HookTimeout):
            return None
        names = [*_names(os.fsdecode(listed)), *os.fsdecode(committed).split("\0")]
        return [name.removeprefix(prefix) for name in names if name]

    def _committed(self, folder: str) -> bytes:
        if not self._git(folder, "rev-list", "--all", "--max-count=1"):
            return b""
        return self._git(folder, "diff", "--name-only", "-z", "--no-renames", _A_DAY_AGO, "--", ".")

    def _git(self, folder: str, *args: str) -> bytes:
        done = run_process(
            ["git", *args],
            b"",
            cwd=folder,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},  # a hook must not make the agent's own git fail
            deadline=min(self._deadline, monotonic() + _PATIENCE),
            cancellation=self._cancellation,
        )
        if done.exit_code:
            raise CommandFailed(f"git {args[0]} ended with exit code {done.exit_code}")
        return done.stdout


def _names(listed: str) -> list[str]:
    """Read `XY name`; a file that was moved or copied is followed by the name it had."""
    names = []
    entries = iter(listed.split("\0"))
    for entry in entries:
        if entry:
            names.append(entry[3:])
            if entry[0] in "RC" or entry[1] in "RC":
                names.append(next(entries, ""))
    return names
