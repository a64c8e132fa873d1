"""The facts that the checks evaluate, as plain values that a test can construct. Nothing here reads the system."""

from __future__ import annotations

from typing import Literal

import msgspec

from fairlead.clients import DEFAULT_CLIENT, InstallStatus, SettingsFile
from fairlead.policy import FileTrust, HookFileState

RunRoute = Literal["daemon", "no daemon", "isolated"]
"""How a hook was run.

daemon     the daemon of this home answered the launcher
no daemon  in this home, but no daemon answered; also for each hook of another program
isolated   in an empty home, because in this home the event could run a command or notify the user
"""

SLOW_SECONDS = 0.05
"""Seconds above which a hook is reported as slow. Users do not notice shorter delays."""

EntryKind = Literal["missing", "folder", "file", "socket", "link", "other"]
"""The kind of a directory entry."""


class ClientFacts(msgspec.Struct, frozen=True):
    """The client on the PATH."""

    program: str = ""
    """The path of the client's program; "" if there is none on the PATH."""
    version: tuple[int, int, int] | None = None
    """`None` if it is not known."""
    name: str = DEFAULT_CLIENT


class ProgramResult(msgspec.Struct, frozen=True):
    """The result of running a program to find out its version."""

    exit_code: int | None = None
    """`None` if it could not be started, or did not end in time."""
    output: str = ""
    """The output, which is the version if all is well."""
    error: str = ""
    """The last line of stderr, or the reason why `exit_code` is `None`."""


class ProgramFacts(msgspec.Struct, frozen=True):
    """A launcher, and the Python that its hooks use."""

    hook: str
    """The path of the launcher."""
    python: str
    """The path of the Python."""
    is_there: bool = True
    """Whether the launcher exists."""
    is_executable: bool = True
    """Whether the launcher is executable."""
    version: str = ""
    """The version that is written in the launcher's file; "" if there is none."""
    is_python: bool = False
    """Whether this is the slower launcher in Python, for machines without a C compiler."""
    start: ProgramResult = ProgramResult()
    """The result of `--version`, for which the launcher starts its Python."""
    python_there: bool = True
    """Whether the Python exists and is executable."""
    imports: ProgramResult = ProgramResult()
    """The version of the Fairlead that this Python imports."""


class FileFacts(msgspec.Struct, frozen=True):
    """A directory entry: its kind, permissions and owner. Links are not followed."""

    path: str
    kind: EntryKind = "missing"
    mode: int = 0
    """The permission bits."""
    owner: int = 0
    """The user id."""


class OtherDaemonFacts(msgspec.Struct, frozen=True):
    """A running daemon of this user, which may be the one of this home."""

    pid: int
    listens: bool = True
    """Whether it listens on a socket of this home."""
    different_variables: tuple[str, ...] = ()
    """The folder variables (`paths.FOLDER_VARIABLES`) whose values differ from those of this process."""


class DaemonFacts(msgspec.Struct, frozen=True):
    """The daemon of this home: its files, and whether it answers."""

    folder: FileFacts
    socket: FileFacts
    lock: FileFacts
    state: Literal["running", "down", "refused", "silent", "not a daemon"] = "down"
    """The result of a request.

    running       it answered
    down          there is no socket
    refused       nothing listens on the socket
    silent        no answer in time
    not a daemon  the answer is not that of a daemon
    """
    error: str = ""
    """The error of the request; "" if it answered, or if there is no socket."""
    version: str = ""
    """The version in its answer; "" without one."""
    pid: int = 0
    """The pid in its answer; 0 without one."""
    lock_pid: int = 0
    """The pid in the lock file; 0 if there is none."""
    lock_held: bool = False
    """Whether a process holds the lock."""
    processes: tuple[OtherDaemonFacts, ...] = ()
    """The running daemons that listen for this home, or have this home but another value of a folder variable."""
    max_socket_path: int = 107
    """The maximum length of the path of a socket, in bytes."""
    user: int = 0
    """The user id of this process."""
    starts_on_demand: bool = True
    """Whether an event starts a daemon if none runs; `False` if `FAIRLEAD_NO_DAEMON` is set."""
    integrity_limits: tuple[str, ...] = ()
    """Limits of the integrity check that were reached, each with its project."""


class DatabaseFacts(msgspec.Struct, frozen=True):
    """The database of events or of mail, checked within a time limit."""

    file: str
    is_there: bool = False
    revision: str = ""
    """The revision of its schema; "" if it has none yet, or if it cannot be read."""
    head: str = ""
    """The newest revision that this version of Fairlead knows."""
    is_known_revision: bool = True
    problem: str = ""
    """Why it cannot be read, or how it is damaged; "" if no problem was found."""
    was_checked: bool = True
    """Whether all its pages could be checked in time."""
    set_aside: tuple[str, ...] = ()
    """The files of damaged databases that a daemon has replaced, the oldest first."""


class StateFacts(msgspec.Struct, frozen=True):
    """The state folder and what is in it."""

    folder: FileFacts
    write_error: str = ""
    """Why the folder cannot be written; "" if it can."""
    free_bytes: int | None = None
    """`None` if it is not known."""
    spooled: int = 0
    """The number of events in the spool."""
    max_spooled: int = 10_000
    """The maximum number of events in the spool."""
    unreadable: int = 0
    """The number of files in the spool that are not events."""
    journal_bytes: int = 0
    store: DatabaseFacts | None = None
    mail: DatabaseFacts | None = None
    log: str = ""
    """The path of the daemon's log."""
    last_log_line: str = ""
    """The last line of the daemon's log; empty if it only says that the daemon started."""


class PolicyFacts(msgspec.Struct, frozen=True):
    """The policy that applies in this folder."""

    files: tuple[str, ...] = ()
    """The policy files, including deleted ones whose last good version applies."""
    errors: tuple[str, ...] = ()
    """The positions of the errors in the files."""
    hints: tuple[str, ...] = ()
    """The positions of valid settings that may not do what the user means."""
    warnings: tuple[str, ...] = ()
    is_unusable: bool = False
    """Whether there is a file, but neither it nor an earlier version of it can be read."""
    integrity: str = "off"
    """The setting `preToolUse.integrity`; `off` also if no files are protected."""
    trust: tuple[FileTrust, ...] = ()
    """Whether and by whom each of the files is trusted."""
    hooks: tuple[HookFileState, ...] = ()
    """The hook files that the policy files list."""
    user_wide: str = ""
    """The user-wide file, which need not exist."""
    answer_seconds: int = 0
    """For how long a question can be answered outside of the client; 0 if `attention.answer` is off."""


class HookRunFacts(msgspec.Struct, frozen=True):
    """The result of running one hook."""

    event: str
    scope: str
    program: str
    """The program of the hook, without its arguments."""
    is_ours: bool = True
    route: RunRoute | None = None
    """`None` if it was not run."""
    seconds: float = 0.0
    exit_code: int | None = None
    error: str = ""
    """Why it was not run, could not be started, or was killed; "" if it ended by itself."""
    stdout: bytes = b""
    stderr: bytes = b""


class HookRuns(msgspec.Struct, frozen=True):
    """The results of running all hooks."""

    runs: tuple[HookRunFacts, ...] = ()
    started_daemon: bool = False
    """Whether a hook has started the daemon, which was not running."""
    daemon_came_up: bool = True
    """Whether the started daemon answers; `True` if none was started."""


class Facts(msgspec.Struct, frozen=True):
    """All facts about an installation."""

    version: str
    """The version of this Fairlead."""
    cwd: str
    scopes: tuple[str, ...]
    """The requested scopes of settings."""
    files: tuple[SettingsFile, ...]
    statuses: tuple[InstallStatus, ...]
    """The status of our hooks in each requested scope."""
    client: ClientFacts
    programs: tuple[ProgramFacts, ...]
    own_launcher: str
    """The path of the launcher of this installation; "" if there is none."""
    on_path: tuple[str, ...]
    """Programs `fairlead` on the PATH that belong to another installation."""
    moved_variables: tuple[str, ...]
    """The folder variables that the client's settings set to other values than this process has."""
    daemon: DaemonFacts
    state: StateFacts
    policy: PolicyFacts
    hook_runs: HookRuns
