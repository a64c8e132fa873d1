"""The facts that the checks evaluate, as plain values that a test can construct. Nothing here reads the system."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlead.clients import DEFAULT_CLIENT, InstallStatus, SettingsFile
from fairlead.policy import FileTrust, HookFileState

RunRoute = Literal["daemon", "no daemon", "isolated"]
"""How a hook was run.

daemon     the launcher asked the daemon of this home
no daemon  no daemon answered, so the event was handled without one
isolated   in an empty home, because here the event would run a command or notify the user
"""


SLOW_SECONDS = 0.05
"""The longest delay that a user does not notice."""

EntryKind = Literal["missing", "folder", "file", "socket", "link", "other"]
"""The kind of a directory entry."""


class ClientFacts(msgspec.Struct, frozen=True):
    """The client on the PATH."""

    program: str = ""
    version: tuple[int, int, int] | None = None
    name: str = DEFAULT_CLIENT


class ProgramResult(msgspec.Struct, frozen=True):
    """The result of running a program to get its version."""

    exit_code: int | None = None
    """`None` if it could not be started, or did not end."""
    output: str = ""
    error: str = ""


class ProgramFacts(msgspec.Struct, frozen=True):
    """A launcher, and the Python that its hooks use."""

    hook: str
    python: str
    is_there: bool = True
    is_executable: bool = True
    version: str = ""
    """The version written in the file; empty if there is none."""
    is_python: bool = False
    """Whether it is the slower launcher, for machines without a C compiler."""
    start: ProgramResult = ProgramResult()
    """The result of `--version`, for which the launcher starts its Python."""
    python_there: bool = True
    imports: ProgramResult = ProgramResult()
    """The version of the Fairlead that this Python imports."""


class FileFacts(msgspec.Struct, frozen=True):
    """A file or folder: its kind, mode and owner."""

    path: str
    kind: EntryKind = "missing"
    mode: int = 0
    owner: int = 0


class OtherDaemonFacts(msgspec.Struct, frozen=True):
    """A daemon of this user among the running processes."""

    pid: int
    listens: bool = True
    """Whether it listens on a socket of this home."""
    different_variables: tuple[str, ...] = ()
    """The variables for its folders whose values differ from those of this process."""


class DaemonFacts(msgspec.Struct, frozen=True):
    """The daemon of this home: its files, and whether it answers."""

    folder: FileFacts
    socket: FileFacts
    lock: FileFacts
    state: Literal["running", "down", "refused", "silent", "not a daemon"] = "down"
    """refused: nothing listens on the socket; silent: no answer in time; not a daemon: another answer."""
    error: str = ""
    version: str = ""
    pid: int = 0
    lock_pid: int = 0
    lock_held: bool = False
    processes: tuple[OtherDaemonFacts, ...] = ()
    max_socket_path: int = 107
    """Bytes."""
    user: int = 0
    starts_on_demand: bool = True
    """Whether an event starts a daemon."""
    integrity_limits: tuple[str, ...] = ()
    """Limits of the integrity check that were reached, each with its project."""


class DatabaseFacts(msgspec.Struct, frozen=True):
    """The database of events or of mail, checked within a time limit."""

    file: str
    is_there: bool = False
    revision: str = ""
    head: str = ""
    is_known_revision: bool = True
    problem: str = ""
    was_checked: bool = True
    """Whether the check of its pages ended in time."""
    set_aside: tuple[str, ...] = ()
    """Damaged databases that a daemon has replaced."""


class StateFacts(msgspec.Struct, frozen=True):
    """The state folder and what is in it."""

    folder: FileFacts
    write_error: str = ""
    free_bytes: int | None = None
    spooled: int = 0
    max_spooled: int = 10_000
    unreadable: int = 0
    """Files in the spool that are not events."""
    journal_bytes: int = 0
    store: DatabaseFacts | None = None
    mail: DatabaseFacts | None = None
    log: str = ""
    last_log_line: str = ""
    """The last line of the daemon's log; empty if it only says that the daemon started."""


class PolicyFacts(msgspec.Struct, frozen=True):
    """The policy that applies in this folder."""

    files: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    is_unusable: bool = False
    """Whether there is a file, but neither it nor an earlier version of it can be read."""
    integrity: str = "off"
    """The setting `preToolUse.integrity`; `off` also if no files are protected."""
    trust: tuple[FileTrust, ...] = ()
    """Which of the files are trusted."""
    hooks: tuple[HookFileState, ...] = ()
    """The hook files that they list."""
    user_wide: str = ""
    """The user-wide file, which need not exist."""
    answer_seconds: int = 0
    """For how long a question can be answered outside of the client; 0 if it cannot (`attention.answer`)."""


class HookRunFacts(msgspec.Struct, frozen=True):
    """The result of running one hook."""

    event: str
    scope: str
    program: str
    is_ours: bool = True
    route: RunRoute | None = None
    """`None` if it was not run."""
    seconds: float = 0.0
    exit_code: int | None = None
    error: str = ""
    """Why it was not run, or could not be started or ended."""
    stdout: bytes = b""
    stderr: bytes = b""


class HookRuns(msgspec.Struct, frozen=True):
    """The results of running all hooks."""

    runs: tuple[HookRunFacts, ...] = ()
    started_daemon: bool = False
    """Whether an event had to start the daemon."""
    daemon_came_up: bool = True


class Facts(msgspec.Struct, frozen=True):
    """All facts about an installation."""

    version: str
    cwd: str
    scopes: tuple[str, ...]
    """The requested scopes of settings."""
    files: tuple[SettingsFile, ...]
    statuses: tuple[InstallStatus, ...]
    client: ClientFacts
    programs: tuple[ProgramFacts, ...]
    own_launcher: str
    """The launcher of this installation; empty if there is none."""
    on_path: tuple[str, ...]
    """Programs `fairlead` on the PATH that belong to another installation."""
    moved_variables: tuple[str, ...]
    """The folder variables that the client's settings set to other values than this process has."""
    daemon: DaemonFacts
    state: StateFacts
    policy: PolicyFacts
    hook_runs: HookRuns
