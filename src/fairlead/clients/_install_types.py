"""The types and protocols of an install: request, plan, result, status. Touches no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from fairlead.clients._settings_file import FileVersion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Version = tuple[int, int, int]


def format_version(version: Version) -> str:
    """Return a version as the client writes it."""
    return ".".join(map(str, version))


StatusLineChoice = Literal["chain", "show", "leave"]
"""What an install does with the status line.

chain  run ours before the user's own
show   like `chain`, and add ours if there is none
leave  change nothing
"""
StatusLineChange = Literal["", "chained", "added", "updated", "restored", "removed"]
"""What an install or uninstall has done with the status line; "" is nothing."""
StatusLineKind = Literal["none", "own", "odd", "chained", "ours"]
"""The kind of a status line in settings.

none     there is no status line
own      the user's own
odd      a value that the client does not run
chained  ours, which then runs the user's own
ours     only ours
"""
InstallState = Literal["installed", "partial", "outdated", "broken", "not installed"]
"""Whether our hooks are installed, and up to date.

installed      every event has our hook, as an install would write it
partial        some events have no hook of ours
outdated       all events have our hook, but an install would write it differently
broken         the client cannot read the file, or cannot start the launcher
not installed  the file has nothing of ours
"""


class Launcher(msgspec.Struct, frozen=True):
    """The paths of the programs that an installed hook starts."""

    hook: str
    """The launcher."""
    python: str
    """The interpreter that the launcher starts if no daemon answers."""


class EventSetting(msgspec.Struct, frozen=True):
    """How the hook of an event is installed, or why it is not."""

    timeout: int
    """Seconds that the client waits for the hook."""
    since: Version
    """The first version of the client that is known to have the event."""
    blocks_on_failure: bool = False
    """Whether the client blocks if the hook fails."""
    left_out: str | None = None
    """The reason why the hook is not installed by default; `None` if it is."""
    is_optional: bool = False
    """Whether `--with` can install a hook that is not installed by default."""


class InstallRequest(msgspec.Struct, frozen=True):
    """The options of an install."""

    launcher: Launcher
    version: Version | None = None
    """The version of the client; `None` if it is not known."""
    also: frozenset[str] = frozenset()
    """Optional events that are installed, too."""
    replace: frozenset[str] = frozenset()
    """Programs whose hooks are removed. Uninstall restores them."""
    status_line: StatusLineChoice = "chain"
    stay: str | None = None
    """How agents stay reachable for mail (`always`, `wake`, `no`). `None`: unchanged."""
    allows_mail: bool = False
    """Whether to add the permission rules for the mail commands. Existing rules are never removed."""
    answer: bool | None = None
    """Whether questions can be answered outside of the client for longer than a minute. `None`: unchanged."""


class RemovedEntry(msgspec.Struct, frozen=True):
    """A settings entry of another program that an install has removed. Uninstall restores it."""

    event: str
    entry: str
    """The JSON of the entry, with only the removed hooks."""


class InstallResult(msgspec.Struct, frozen=True):
    """The new text of the settings, and the changes in it."""

    text: str
    added: tuple[str, ...] = ()
    """Events that got a hook of ours."""
    updated: tuple[str, ...] = ()
    """Events whose hook of ours has changed."""
    dropped: tuple[str, ...] = ()
    """Events whose hook of ours was removed."""
    taken: tuple[RemovedEntry, ...] = ()
    """The entries of other programs that were removed; after an uninstall, the entries that were restored."""
    status_line: StatusLineChange = ""
    stay: str = ""
    """The new `--stay` value, "" if it has not changed; after an uninstall, the removed value."""
    rules: tuple[str, ...] = ()
    """The permission rules that were added; after an uninstall, the rules that were removed."""

    @property
    def had_ours(self) -> bool:
        """Whether an uninstall has removed anything of ours."""
        return bool(self.dropped or self.status_line or self.stay or self.rules)


class InstallReceipt(msgspec.Struct, frozen=True):
    """What an uninstall needs to restore a settings file. Stored as JSON."""

    file: str
    original: bytes | None
    """The content before the first install; `None` if there was no file."""
    written: str
    """The SHA-256 of the content that the install wrote."""
    folders: tuple[str, ...] = ()
    """The folders that the install created, outermost first."""
    taken: tuple[RemovedEntry, ...] = ()


class InstallPlan(msgspec.Struct, frozen=True):
    """The planned change of a settings file, which `carry_out` makes."""

    before: FileVersion
    after: bytes | None
    """The new content. `None`: there is no file, or it is deleted, because the install created it."""
    result: InstallResult
    receipt: InstallReceipt | None
    """The new receipt; `None` after an uninstall."""
    folders: tuple[str, ...] = ()
    """The folders to remove if they are empty, outermost first."""
    is_exact: bool = False
    """Whether an uninstall restores the original bytes."""

    @property
    def changes(self) -> bool:
        """Whether the content of the file changes."""
        return self.after != self.before.content


class InstallStatus(msgspec.Struct, frozen=True):
    """The status of our hooks in one settings file."""

    scope: str
    file: str
    state: InstallState
    events: tuple[str, ...] = ()
    """The events that have a hook of ours."""
    missing: tuple[str, ...] = ()
    """The events to which an install would add a hook."""
    differences: tuple[str, ...] = ()
    """What is broken, and what an install would change, each as a text for the user."""
    notes: tuple[str, ...] = ()
    """Other settings that concern our hooks, each as a text for the user."""
    status_line: StatusLineKind = "none"
    stay: str = ""
    """How agents stay reachable for mail: `always`, `wake`, `no`; "" if the file does not contain it."""


class InstalledHook(msgspec.Struct, frozen=True):
    """A hook of any program in a settings file, for the doctor."""

    scope: str
    file: str
    event: str
    program: str
    """The program of the hook without its arguments, which may contain secrets."""
    identity: tuple[str, ...] = ()
    """The values by which the client compares hooks. It runs only one of the hooks with the same identity."""
    argv: tuple[str, ...] = ()
    """The command line that the client starts; empty if only the client itself can run the hook."""
    words: tuple[str, ...] = ()
    """The command line of the hook, split as a shell would."""
    timeout: float | None = None
    """Seconds that the client waits for the hook; `None` if the settings do not set it."""
    is_ours: bool = False
    rival: str = ""
    """The program that the hook belongs to, if that program decides the same events as Fairlead; else ""."""
    blocks_on_failure: bool = False
    """Whether the client blocks if the hook fails."""
    only_wakes: bool = False
    """Whether the hook only waits in the background for mail, and decides nothing."""


class SettingsFile(msgspec.Struct, frozen=True):
    """The parts of a client's settings file that concern hooks."""

    scope: str
    file: str
    is_there: bool = False
    problem: str = ""
    """The reason why the client skips the file, or a part of it; "" if it does not."""
    hooks: tuple[InstalledHook, ...] = ()
    env: dict[str, str] = {}
    """The environment variables that the file sets for hooks."""
    off_switch: str = ""
    """The key that turns all hooks off, if the file sets it; else ""."""
    managed_only: str = ""
    """The key that turns all hooks off except an administrator's, if the file sets it; else ""."""
    status_line: str = ""
    """The launcher that the status line starts; "" if the status line is not ours."""
    line_there: bool = True
    """Whether the launcher of the status line can be started; true if the status line is not ours."""


class SettingsEditor(Protocol):
    """Edits the text of a client's settings. Touches no file."""

    def install(self, text: str, request: InstallRequest, original: str | None) -> InstallResult:
        """Return the settings with our hooks and other settings added or updated, as requested.

        `original` is the text before the first install; `None` if there was no file.
        """

    def uninstall(self, text: str, original: str | None, taken: Sequence[RemovedEntry]) -> InstallResult:
        """Return the settings without anything of ours, and with what an install has removed or replaced.

        `original` is the text before the first install; `None` without a file or receipt. `taken` are the entries of
        other programs to restore.
        """

    def is_empty(self, text: str) -> bool:
        """Return whether the settings have no key."""


class Installer(Protocol):
    """The interface of the installer of one client, implemented by a module."""

    @property
    def SCOPES(self) -> Mapping[str, str]:
        """Name of each scope → a line of help about its file."""

    @property
    def EVENTS(self) -> Mapping[str, EventSetting]:
        """Name of each event of the client → how its hook is installed."""

    @property
    def REPLACEABLE(self) -> Mapping[str, object]:
        """Name of each other program whose hooks `--replace` can remove → the test whether an entry is its hook."""

    @property
    def STAYS(self) -> tuple[str, ...]:
        """The values of `--stay`."""

    @property
    def PROGRAM(self) -> str:
        """The name of the client's program on the PATH."""

    @property
    def MIN_VERSION(self) -> Version:
        """The oldest version that can start our hooks."""

    @property
    def BASE_VERSION(self) -> Version:
        """The oldest version whose events are known."""

    def settings_file(self, scope: str, folder: Path, environ: Mapping[str, str]) -> Path:
        """Return the settings file of a scope. Raise `UsageError` for an unknown scope."""

    def events_for(self, version: Version | None, also: frozenset[str] = ...) -> list[str]:
        """Return the events to install for a version of the client, with the optional events in `also`.

        Raise `OldClientError` if the version is too old.
        """

    def plan_install(self, file: Path, request: InstallRequest, state: Path) -> InstallPlan:
        """Return the plan of an install in a settings file. `state` is our state folder, which has the receipts."""

    def plan_uninstall(self, file: Path, state: Path) -> InstallPlan:
        """Return the plan of an uninstall from a settings file. `state` is our state folder, which has the receipts."""

    def carry_out(self, plan: InstallPlan, state: Path) -> Path | None:
        """Carry out a plan completely, or not at all. Return the path of a copy of the previous file.

        `None`: no copy was made. `state` is our state folder, which has the receipts. Raise `InstallError` if the file
        has changed since it was read, or cannot be written.
        """

    def status(self, scope: str, file: Path, launcher: Launcher | None, version: Version | None) -> InstallStatus:
        """Return the status of our hooks in one file.

        Without a launcher, the paths of programs are not compared. `version` is the client's; `None` if not known.
        """

    def warnings(self, text: str) -> list[str]:
        """Return warnings about settings that turn our hooks off, or let other programs decide, too."""

    def stay_of(self, text: str) -> str:
        """Return the `--stay` value of the settings; "" if they have none."""

    def mail_rules_of(self, text: str) -> tuple[str, ...]:
        """Return the permission rules for the mail commands if the settings have all of them, else an empty tuple."""

    def status_line_of(self, text: str) -> StatusLineKind:
        """Return the kind of the status line in the settings."""

    def skill_file(self, settings: Path) -> Path:
        """Return the file of the mail skill for the scope of a settings file."""

    def client_version(self, path: str | None = None) -> Version | None:
        """Return the version of the client on the PATH; `None` if there is no client, or it prints no version.

        `path` is the PATH to search; `None` for that of this process.
        """

    def parse_version(self, text: str) -> Version:
        """Return the version in a text. Raise `VersionError` if there is none."""

    def inspect(self, folder: Path, environ: Mapping[str, str]) -> tuple[SettingsFile, ...]:
        """Read all settings files that apply in a folder, in the client's order: later files override earlier ones."""

    def hook_environment(self, environ: Mapping[str, str], session: str, project: str) -> dict[str, str]:
        """Return the environment in which the client would start a hook of a session."""

    def harmless_payload(self, event: str) -> dict[str, object]:
        """Return payload fields of a harmless tool call for an event; empty for events that need none."""
