"""The values and the protocols of an install: what is asked for, what was done, what is there. Touches no file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from fairlead.clients._settings_file import FileSnapshot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Version = tuple[int, int, int]


def format_version(version: Version) -> str:
    """Return a version as the client writes it."""
    return ".".join(map(str, version))


StatusLineChoice = Literal["chain", "show", "leave"]
"""What to do about the status line: listen to the user's own; show ours if there is none; nothing."""
StatusLineChange = Literal["", "chained", "added", "updated", "restored", "removed"]
"""What an install or uninstall did about it."""
StatusLineKind = Literal["none", "own", "odd", "chained", "ours"]
"""
none     there is none
own      the user's
odd      of a shape that the client does not run
chained  the user's, with ours before it
ours     ours alone
"""
InstallState = Literal["installed", "partial", "outdated", "broken", "not installed"]
"""
installed      every event has our hook, as an install would write it
partial        some events have none
outdated       all have one, but not as an install would write it
broken         the client cannot read the file, or cannot start the launcher
not installed  the file has nothing of ours
"""


class Launcher(msgspec.Struct, frozen=True):
    """The programs that an installed hook starts."""

    hook: str
    python: str


class EventSetting(msgspec.Struct, frozen=True):
    """How an event is installed, or why it is not."""

    timeout: int
    """Seconds that the client waits for the hook."""
    since: Version
    """The first version of the client that is known to have the event."""
    blocks_on_failure: bool = False
    left_out: str | None = None
    """Why it is not installed by default."""
    is_optional: bool = False
    """Whether `--with` installs it."""


class InstallRequest(msgspec.Struct, frozen=True):
    """What an install is to write."""

    launcher: Launcher
    version: Version | None = None
    also: frozenset[str] = frozenset()
    """Optional events to install too."""
    replace: frozenset[str] = frozenset()
    """Programs whose hooks are taken out, until uninstall."""
    status_line: StatusLineChoice = "chain"
    stay: str | None = None
    """How agents stay (`always`, `wake`, `no`); `None`: unchanged."""
    allows_mail: bool = False
    """Whether to add the permission rules of the mail commands; those that are there stay in any case."""
    answer: bool | None = None
    """Whether questions can be answered outside of the client for longer than a minute; `None`: unchanged."""


class RemovedEntry(msgspec.Struct, frozen=True):
    """An entry of another program that was taken out; uninstall puts it back."""

    event: str
    entry: str
    """Its text, with the hooks that were taken out alone."""


class InstallResult(msgspec.Struct, frozen=True):
    """The new text of the settings, and what was changed."""

    text: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    """Events that had a hook of ours, and have none now."""
    taken: tuple[RemovedEntry, ...] = ()
    status_line: StatusLineChange = ""
    stay: str = ""
    """How agents stay now, if that was changed; at uninstall, how they stayed."""
    rules: tuple[str, ...] = ()
    """Permission rules that were added; at uninstall, those that were removed."""

    @property
    def had_ours(self) -> bool:
        """Whether an uninstall found anything of ours."""
        return bool(self.dropped or self.status_line or self.stay)


class Receipt(msgspec.Struct, frozen=True):
    """What uninstall needs to know. Kept as JSON."""

    file: str
    original: bytes | None
    """The content before the first install; `None` if there was no file."""
    written: str
    """The SHA-256 of what we wrote."""
    folders: tuple[str, ...] = ()
    """The folders that the install created, outermost first."""
    taken: tuple[RemovedEntry, ...] = ()


class InstallPlan(msgspec.Struct, frozen=True):
    """What would be done to a file. Nothing is done until `carry_out`."""

    before: FileSnapshot
    after: bytes | None
    """`None`: the file is deleted, as the install created it."""
    result: InstallResult
    receipt: Receipt | None
    """What to keep from then on."""
    folders: tuple[str, ...] = ()
    """The folders to remove if they are empty, outermost first."""
    is_exact: bool = False
    """Whether an uninstall restores the same bytes."""

    @property
    def changes(self) -> bool:
        """Whether the file would be different."""
        return self.after != self.before.content


class InstallStatus(msgspec.Struct, frozen=True):
    """How far our hooks are installed in one settings file."""

    scope: str
    file: str
    state: InstallState
    events: tuple[str, ...] = ()
    """The events that have a hook of ours."""
    missing: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    status_line: StatusLineKind = "none"
    stay: str = ""
    """How agents stay: `always`, `wake`, `no`; "" if the file does not say."""


class InstalledHook(msgspec.Struct, frozen=True):
    """A hook in a settings file, of any owner, for the doctor."""

    scope: str
    file: str
    event: str
    program: str
    """What it starts, without arguments: they may hold a secret."""
    identity: tuple[str, ...] = ()
    """What the client tells hooks apart by: of those with the same identity it runs one."""
    argv: tuple[str, ...] = ()
    """What the client starts; empty if only the client itself can run it."""
    words: tuple[str, ...] = ()
    """Its command line, split as a shell would."""
    timeout: float | None = None
    is_ours: bool = False
    rival: str = ""
    """The program it belongs to, if that decides the same events."""
    blocks_on_failure: bool = False
    only_wakes: bool = False
    """It waits in the background for mail, and decides nothing."""


class SettingsFile(msgspec.Struct, frozen=True):
    """A settings file of the client, as far as it is about hooks."""

    scope: str
    file: str
    is_there: bool = False
    problem: str = ""
    """Why the client skips it, in part or as a whole."""
    hooks: tuple[InstalledHook, ...] = ()
    env: dict[str, str] = {}
    """The variables that it sets for hooks."""
    off_switch: str = ""
    """The key by which it turns all hooks off, if it does."""
    managed_only: str = ""
    """The key by which it turns all hooks off but an administrator's, if it does."""
    status_line: str = ""
    """The launcher that its status line starts, if that is ours."""
    line_there: bool = True


class SettingsEditor(Protocol):
    """Edits the text of a client's settings. Touches no file."""

    def put_in(self, text: str, request: InstallRequest, original: str | None) -> InstallResult:
        """Put everything in that a request asks for. `original` is the text before the first install."""

    def take_out(self, text: str, original: str | None, taken: Sequence[RemovedEntry]) -> InstallResult:
        """Take out everything of ours, and put back what it replaced."""

    def is_empty(self, text: str) -> bool:
        """Return whether the settings say nothing."""


class Installer(Protocol):
    """Our hooks in the settings of one client. A module fulfils it."""

    @property
    def SCOPES(self) -> Mapping[str, str]:  # noqa: N802 - a constant of the module
        """Name of each scope to a line of help about its file."""

    @property
    def EVENTS(self) -> Mapping[str, EventSetting]:  # noqa: N802
        """The client's events."""

    @property
    def REPLACEABLE(self) -> Mapping[str, object]:  # noqa: N802
        """Programs that decide the same events, whose hooks an install can take out."""

    @property
    def STAYS(self) -> tuple[str, ...]:  # noqa: N802
        """The ways in which agents can stay."""

    @property
    def PROGRAM(self) -> str:  # noqa: N802
        """The client's program on the PATH."""

    @property
    def MIN_VERSION(self) -> Version:  # noqa: N802
        """The oldest version that can start our hooks."""

    @property
    def BASE_VERSION(self) -> Version:  # noqa: N802
        """The oldest version whose events are known."""

    def settings_file(self, scope: str, folder: Path, environ: Mapping[str, str]) -> Path:
        """Return where the client looks for the settings of a scope. Raise `UsageError` for an unknown scope."""

    def events_for(self, version: Version | None, also: frozenset[str] = ...) -> list[str]:
        """Return the events to install for a version of the client; raise `OldClientError` if it is too old."""

    def plan_install(self, file: Path, request: InstallRequest, state: Path) -> InstallPlan:
        """Return what an install would do."""

    def plan_uninstall(self, file: Path, state: Path) -> InstallPlan:
        """Return what an uninstall would do."""

    def carry_out(self, plan: InstallPlan, state: Path) -> Path | None:
        """Do it, or nothing; return where the file's content before is kept."""

    def status(self, scope: str, file: Path, launcher: Launcher | None, version: Version | None) -> InstallStatus:
        """Return how far our hooks are installed in one file."""

    def warnings(self, text: str) -> list[str]:
        """Return what in installed settings keeps our hooks from being the last word."""

    def stay_of(self, text: str) -> str:
        """Return how agents stay by these settings; "" if they do not say."""

    def mail_rules_of(self, text: str) -> tuple[str, ...]:
        """Return the permission rules of the mail commands, if the settings have all of them."""

    def status_line_of(self, text: str) -> StatusLineKind:
        """Return what status line the settings have."""

    def skill_file(self, settings: Path) -> Path:
        """Return where the client looks for a skill, by the settings file of the same scope."""

    def client_version(self, path: str | None = None) -> Version | None:
        """Return the version of the client on the PATH; `None` if there is none, or it does not say."""

    def parse_version(self, text: str) -> Version:
        """Return the version in a text; raise `VersionError` if there is none."""

    def inspect(self, folder: Path, environ: Mapping[str, str]) -> tuple[SettingsFile, ...]:
        """Read all settings files that apply in a folder, in the client's order: of two values the last counts."""

    def hook_environment(self, environ: Mapping[str, str], session: str, project: str) -> dict[str, str]:
        """Return the environment in which the client would start a hook of a session."""

    def harmless_payload(self, event: str) -> dict[str, object]:
        """Return fields that make a payload of the event one of a call that does nothing."""
