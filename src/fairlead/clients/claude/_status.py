"""How far our hooks are installed in one settings file, and what is different from what an install would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from fairlead.clients import _settings_file as files
from fairlead.clients._json_text import JsonTextError
from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude._hook_entries import Launcher, find, is_blank, others, settings, wanted_hook
from fairlead.clients.claude._install_events import EVENTS, events_for, is_known
from fairlead.clients.claude._programs import is_program
from fairlead.clients.claude._settings_rules import SettingsError
from fairlead.clients.claude._status_line_entry import Kind, read_line
from fairlead.clients.claude._stay_entries import differences as stay_differences
from fairlead.clients.claude._stay_entries import read_stay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairlead.clients._json_text import Node
    from fairlead.clients.claude._hook_entries import Found
    from fairlead.clients.claude._install_events import Version
    from fairlead.clients.claude._status_line_entry import StatusLine

State = Literal["installed", "partial", "outdated", "broken", "not installed"]
"""
installed      every event is asked for, as an install would write it
partial        some events are not asked for
outdated       all are, but not as an install would write it
broken         the client cannot read the file, or not start the launcher
not installed  nothing of ours is in the file
"""


class Status(msgspec.Struct, frozen=True):
    """What there is to say about one file."""

    scope: str
    file: str
    state: State
    events: tuple[str, ...] = ()
    """The events that have a hook of ours."""
    missing: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    status_line: Kind = "none"
    stay: str = ""
    """How agents stay: `always`, `wake`, `no`; "" if the file does not say."""


def status(scope: str, file: Path, launcher: Launcher | None, version: Version | None) -> Status:
    """Look at one settings file."""
    try:
        seen = files.look(file)
        text = files.text_of(seen)
        if is_blank(text):
            return Status(scope, str(file), "not installed")
        root = settings(text)
    except (InstallError, JsonTextError, SettingsError) as error:
        where = "" if isinstance(error, InstallError) else f"{file}:"
        return Status(scope, str(file), "broken", differences=(f"{where}{error}",))
    ours, line = list(find(root)), read_line(root)
    notes = tuple(_notes(root, ours))
    if not ours and not line.is_ours:
        return Status(scope, str(file), "not installed", notes=notes, status_line=line.kind)
    events = tuple(dict.fromkeys(found.event for found in ours))
    missing = tuple(event for event in events_for(version) if event not in events)
    gone = tuple(_gone(ours))
    differences = (
        *gone,
        *_differences(ours, launcher),
        *_unknown(events, version),
        *_line(line, launcher),
        *stay_differences(root),
    )
    state: State = "broken" if gone else "partial" if missing else "outdated" if differences else "installed"
    return Status(scope, str(file), state, events, missing, differences, notes, line.kind, read_stay(root))


def _line(line: StatusLine, launcher: Launcher | None) -> Iterator[str]:
    """Say what an install would change about our part of the status line. What the person runs there is not told."""
    if not line.is_ours:
        return
    if not is_program(line.hook):
        yield f"statusLine: {line.hook} is not there, or cannot be started, so the status line is empty"
    elif launcher and (line.hook, line.python) != (launcher.hook, launcher.python):
        yield f"statusLine: it starts {line.hook} with {line.python or 'the Python beside it'}, and would start ours"


def _gone(ours: Sequence[Found]) -> Iterator[str]:
    """Name the programs that our hooks start and that are not there: the client blocks every tool call then."""
    programs = dict[str, None]()
    for found in ours:
        if "args" in found.value:  # else a shell looks for it
            programs |= dict.fromkeys([found.value["command"], _python(found)])
    for program in programs:
        if program and not is_program(program):
            yield f"{program} is not there, or cannot be started"


def _python(found: Found) -> str:
    args = found.value.get("args", [])
    return str(args[args.index("--python") + 1]) if "--python" in args[:-1] else ""


def _differences(ours: Sequence[Found], launcher: Launcher | None) -> Iterator[str]:
    """Say which keys an install would change, the same change of many events in one line."""
    changes: dict[tuple[str, str, str], list[str]] = {}
    for found in ours:
        same = Launcher(found.value["command"], _python(found))  # where ours is not found, its place is no difference
        new = wanted_hook(found.event, launcher or same, found.value)
        for key in dict.fromkeys([*found.value, *new]):
            before, after = found.value.get(key), new.get(key)
            if before != after:
                change = (key, _shown(before, found.event), _shown(after, found.event))
                changes.setdefault(change, []).append(found.event)
    for (key, before, after), events in changes.items():
        where = events[0] if len(events) == 1 else f"{len(events)} events"
        yield f"{where}: {key} is {before}, and would be {after}"


def _shown(value: Any, event: str) -> str:
    if value is None:
        return "absent"
    words = ["<Event>" if word == event else word for word in value] if isinstance(value, list) else value
    return msgspec.json.encode(words).decode()


def _unknown(events: Sequence[str], version: Version | None) -> Iterator[str]:
    for event in events:
        if event in EVENTS and not is_known(event, version):
            yield f"{event}: this client does not know it, and says so at the start of every session"


def _notes(root: Node, ours: Sequence[Found]) -> Iterator[str]:
    off = root.member("disableAllHooks")
    if off is not None and off.plain is True:
        yield "disableAllHooks is set, so the client runs no hooks at all"
    for found in ours:
        if found.matcher not in (None, "", "*"):
            yield f"{found.event}: only for the matcher {found.matcher!r}"
    for name in others(root):
        yield f"{name} has hooks here too, which decide the same events; install with --replace {name} to take over"
