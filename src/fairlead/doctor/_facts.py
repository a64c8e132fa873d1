"""The facts that the checks are about: plain values, which a test can write down. Nothing here looks anywhere."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from fairlead.clients.claude._status import Status

Road = Literal["daemon", "cold", "apart"]
"""
daemon  the launcher asked the daemon of this home
cold    there was none that answered, so Python decided
apart   in an empty home, because here the event would run a command or tell a person
"""


SLOW = 0.05
"""Seconds that a person does not notice."""

Kind = Literal["missing", "folder", "file", "socket", "link", "other"]
"""Of a file, as far as it matters here."""


class Hook(msgspec.Struct, frozen=True):
    """A hook as it stands in some settings file."""

    scope: str
    file: str
    event: str
    value: dict[str, Any]
    is_ours: bool = False
    rival: str = ""
    """The program that decides the same events, if it is one of those."""

    @property
    def line(self) -> tuple[str, ...]:
        """What the client tells hooks apart by: of those with the same line it runs one."""
        words = [self.value.get(key) for key in ("command", "args", "shell", "if")]
        return (self.event, *map(repr, words))

    @property
    def program(self) -> str:
        """What it starts, without its arguments: they may hold a secret."""
        kind = self.value.get("type")
        if kind != "command":
            return f"a hook of the type {kind!r}"
        command = str(self.value.get("command", ""))
        if isinstance(self.value.get("args"), list):
            return command
        first, _, rest = command.strip().partition(" ")
        name, equals, _ = first.partition("=")
        return f"{name}=…" if equals else f"{first} …" if rest else first


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file of the client, in the order in which the client reads them."""

    scope: str
    file: str
    is_there: bool = False
    problem: str = ""
    """Why the client skips it, in part or as a whole."""
    hooks: tuple[Hook, ...] = ()
    env: dict[str, str] = {}
    """Those variables that it gives to hooks."""
    disables_hooks: bool = False
    managed_only: bool = False
    status_line: str = ""
    """The launcher that its status line starts, if that is ours."""
    line_there: bool = True


class Client(msgspec.Struct, frozen=True):
    """The client on the PATH."""

    program: str = ""
    version: tuple[int, int, int] | None = None


class Ran(msgspec.Struct, frozen=True):
    """How a program ended that was only asked about itself."""

    exit_code: int | None = None
    """`None`: it could not be started, or did not end."""
    said: str = ""
    trouble: str = ""


class Program(msgspec.Struct, frozen=True):
    """A launcher, and the Python that its hooks name."""

    hook: str
    python: str
    is_there: bool = True
    is_executable: bool = True
    version: str = ""
    """What was compiled in; empty if that is not to be found."""
    is_python: bool = False
    """Whether it is the slower launcher, for machines without a C compiler."""
    start: Ran = Ran()
    """How `--version` ended, which takes the launcher's own road to Python."""
    python_there: bool = True
    imports: Ran = Ran()
    """What that Python says is the version of the Fairlead that it imports."""


class Entry(msgspec.Struct, frozen=True):
    """A file or folder, as far as its rights go."""

    path: str
    kind: Kind = "missing"
    mode: int = 0
    owner: int = 0


class OtherDaemon(msgspec.Struct, frozen=True):
    """A daemon of this user that was found among the processes."""

    pid: int
    listens: bool = True
    """Whether it has a socket that was made for this home."""
    differs: tuple[str, ...] = ()
    """The variables that settle its folders and are not as here."""


class Daemon(msgspec.Struct, frozen=True):
    """All there is to know about the daemon of this home."""

    folder: Entry
    socket: Entry
    lock: Entry
    state: Literal["running", "down", "refused", "silent", "odd"] = "down"
    why: str = ""
    version: str = ""
    pid: int = 0
    lock_pid: int = 0
    lock_held: bool = False
    processes: tuple[OtherDaemon, ...] = ()
    longest: int = 107
    """Bytes of a socket's path."""
    user: int = 0
    wanted: bool = True
    """Whether events start one."""


class Database(msgspec.Struct, frozen=True):
    """The store, or the mail, as far as it could be looked at in a moment."""

    file: str
    is_there: bool = False
    revision: str = ""
    head: str = ""
    is_known: bool = True
    problem: str = ""
    is_whole: bool = True
    """Whether the look at its pages came to an end in time."""
    set_aside: tuple[str, ...] = ()


class State(msgspec.Struct, frozen=True):
    """The folder of all that is kept."""

    folder: Entry
    unwritable: str = ""
    free: int | None = None
    spooled: int = 0
    most_spooled: int = 10_000
    broken: int = 0
    """Spooled files that held no event."""
    journal: int = 0
    database: Database | None = None
    mail: Database | None = None
    log: str = ""
    last_words: str = ""
    """The last line of the daemon's log, if it is no good news."""


class Policy(msgspec.Struct, frozen=True):
    """The policy that holds here."""

    files: tuple[str, ...] = ()
    mistakes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: bool = False
    """There is a file, and neither it nor an earlier version of it can be read."""


class Run(msgspec.Struct, frozen=True):
    """How one hook did."""

    event: str
    scope: str
    program: str
    is_ours: bool = True
    road: Road | None = None
    """`None`: it was not run."""
    seconds: float = 0.0
    exit_code: int | None = None
    trouble: str = ""
    """Why it was not run, or could not be."""
    stdout: bytes = b""
    stderr: bytes = b""


class Played(msgspec.Struct, frozen=True):
    """What came of running the hooks."""

    runs: tuple[Run, ...] = ()
    awaited: bool = False
    """Whether an event had to start the daemon."""
    came: bool = True


class Facts(msgspec.Struct, frozen=True):
    """Everything."""

    version: str
    cwd: str
    scopes: tuple[str, ...]
    """Those that were asked about."""
    files: tuple[SettingsFile, ...]
    statuses: tuple[Status, ...]
    client: Client
    programs: tuple[Program, ...]
    own: str
    """The launcher of this installation; empty if there is none."""
    on_path: tuple[str, ...]
    """Programs `fairlead` on the PATH that belong to another installation."""
    settles: tuple[str, ...]
    """The variables by which the settings give hooks other folders than ours."""
    daemon: Daemon
    state: State
    policy: Policy
    played: Played
