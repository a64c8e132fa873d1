"""Runs git's plumbing commands: read-only, limited in time and output, and without running code of a repository.

Every setting that lets git start a program for these commands is overridden: file system monitors, hooks, pagers, ssh,
credential helpers. Filters, text converters and diff programs do not run, because no command compares contents with the
working tree. Objects that are missing in a partial clone are not fetched.
"""

from __future__ import annotations

import os
import re
from time import monotonic
from typing import TYPE_CHECKING, Final

from fairlead.errors import CommandFailed, NeedsThread

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMEOUT: Final = 2.0
"""Seconds for all git processes of one tool call."""
MAX_OUTPUT: Final = 16 * 1024 * 1024

_SETTINGS: Final = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "core.pager=cat",
    "core.editor=false", "core.sshCommand=false", "core.gitProxy=", "core.askPass=false", "core.quotePath=false",
    "core.alternateRefsCommand=false", "core.commitGraph=true", "credential.helper=", "diff.external=",
    "diff.orderFile=/dev/null", "protocol.allow=never", "submodule.recurse=false", "log.showSignature=false",
    "safe.directory=*", "gc.auto=0", "maintenance.auto=false",
)  # fmt: skip
_OVERRIDES: Final = tuple(part for setting in _SETTINGS for part in ("-c", setting))
_ENVIRONMENT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",  # versions before 2.45 do not know the line above
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SSH_COMMAND": "false",
    "GIT_ASKPASS": "false",
    "GIT_ATTR_NOSYSTEM": "1",
    "LC_ALL": "C",
}
_KEPT: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "TMPDIR")
_MISSING: Final = re.compile(rb"unknown revision|bad revision|does not have any commits yet")
"""Git's messages about a revision that does not exist. The command of the agent would fail, too."""
_SYSTEM_PATH: Final = "/usr/bin:/bin:/usr/local/bin:/opt/homebrew/bin"


class NotKnown(Exception):
    """The effect of a command is not known. The text describes it for the user."""


class Deadline:
    """The deadline for all git processes of one tool call."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end: float | None = None

    @property
    def end(self) -> float:
        """The deadline on the monotonic clock: `TIMEOUT` seconds after the first access."""
        if self._end is None:
            self._end = monotonic() + TIMEOUT
        return self._end


class GitProcess:
    """Runs git in a folder, for the repository that the options choose."""

    def __init__(self, folder: str, options: Sequence[str], deadline: Deadline, *, may_wait: bool = True) -> None:
        self.folder = folder
        self.may_wait = may_wait
        """Whether this thread may wait for git. If not, `run` raises `NeedsThread`."""
        self.options = tuple(option for option in options if not option.startswith("--index-file="))
        index = [option.partition("=")[2] for option in options if option.startswith("--index-file=")]
        self.index_file = os.path.join(folder, index[-1]) if index else None
        self._deadline = deadline

    def run(self, *args: str, stdin: bytes = b"", may_fail: bool = False) -> bytes | None:
        """Return the output of git; `None` if a revision does not exist, or if git fails and `may_fail` is set.

        Raise `NotKnown` for any other failure, and `NeedsThread` in a thread that may not wait.
        """
        self.require_waiting()
        from fairlead.process import run_process

        argv = ["git", "--no-pager", *_OVERRIDES, *self.options, *args]
        try:
            result = run_process(
                argv,
                stdin,
                deadline=self._deadline.end,
                cwd=self.folder,
                env=self._environment(),
                max_stdout=MAX_OUTPUT,
            )
        except CommandFailed as error:
            raise NotKnown(f"git cannot be asked: {error}") from None
        if result.exit_code is None:
            raise NotKnown(f"git did not answer within {TIMEOUT:g} seconds")
        if result.exit_code == 0:
            return result.stdout
        if may_fail or _MISSING.search(result.stderr):
            return None
        problem = result.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise NotKnown(f"git cannot tell: {problem or f'it ended with {result.exit_code}'}")

    def require_waiting(self) -> None:
        """Raise `NeedsThread` in a thread that may not wait."""
        if not self.may_wait:
            raise NeedsThread

    def lines(self, *args: str, stdin: bytes = b"") -> list[str]:
        """Return the fields of git's output, each of which ends with a NUL; empty if `run` returns `None`."""
        output = self.run(*args, stdin=stdin) or b""
        return [os.fsdecode(field) for field in output.split(b"\0")[:-1]]

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        path = ":".join(part for part in os.environ.get("PATH", "").split(":") if part.startswith("/"))
        environment = {**kept, **_ENVIRONMENT, "PATH": path or _SYSTEM_PATH}
        if self.index_file is not None:
            environment["GIT_INDEX_FILE"] = self.index_file
        return environment
