"""The status of our hooks in one settings file, and their differences from what an install would write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import _settings_file as files
from fairlead.clients._install_types import InstallState, InstallStatus, Launcher
from fairlead.clients._json_text import JsonTextError
from fairlead.clients._programs import is_program
from fairlead.clients._settings_file import InstallError, SettingsError
from fairlead.clients.claude.settings._entries import (
    find_hooks,
    find_replaceable_programs,
    hook_for,
    is_blank,
    parse_settings,
)
from fairlead.clients.claude.settings._events import EVENTS, events_for, is_known
from fairlead.clients.claude.settings._status_line import read_status_line
from fairlead.clients.claude.settings._stay import differences as stay_differences
from fairlead.clients.claude.settings._stay import read_stay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairlead.clients._install_types import Version
    from fairlead.clients._json_text import Node
    from fairlead.clients.claude.settings._entries import HookEntry
    from fairlead.clients.claude.settings._status_line import StatusLineEntry

OFF_SWITCH = "disableAllHooks"


def status(scope: str, file: Path, launcher: Launcher | None, version: Version | None) -> InstallStatus:
    """Return the status of our hooks in one settings file; `broken` if it cannot be read or is invalid.

    Without a launcher, the paths of programs are not compared. `version` is the client's; `None` if not known.
    """
    try:
        text = files.text_of(files.read(file))
        if is_blank(text):
            return InstallStatus(scope, str(file), "not installed")
        root = parse_settings(text)
    except (InstallError, JsonTextError, SettingsError) as error:
        where = "" if isinstance(error, InstallError) else f"{file}:"
        return InstallStatus(scope, str(file), "broken", differences=(f"{where}{error}",))
    ours, line = list(find_hooks(root)), read_status_line(root)
    notes = tuple(_notes(root, ours))
    if not ours and not line.is_ours:
        return InstallStatus(scope, str(file), "not installed", notes=notes, status_line=line.kind)
    events = tuple(dict.fromkeys(hook.event for hook in ours))
    missing = tuple(event for event in events_for(version) if event not in events)
    broken = tuple(_missing_programs(ours))
    differences = (
        *broken,
        *_differences(ours, launcher),
        *_unknown_events(events, version),
        *_line_differences(line, launcher),
        *stay_differences(root),
    )
    state: InstallState = "broken" if broken else "partial" if missing else "outdated" if differences else "installed"
    return InstallStatus(scope, str(file), state, events, missing, differences, notes, line.kind, read_stay(root))


def warnings(text: str) -> list[str]:
    """Return warnings about settings that turn our hooks off, or let other programs decide, too."""
    root = parse_settings(text)
    off = f"{OFF_SWITCH} is set in this file, so the client runs no hooks at all"
    programs = find_replaceable_programs(root)
    others = [f"{name} has hooks here too, which decide the same events; see --replace" for name in programs]
    return [*([off] if is_set(root, OFF_SWITCH) else []), *others]


def is_set(root: Node, key: str) -> bool:
    """Return whether a key of the settings is `true`."""
    node = root.member(key)
    return node is not None and node.plain is True


def _line_differences(line: StatusLineEntry, launcher: Launcher | None) -> Iterator[str]:
    """Yield what is wrong with our part of the status line. The user's own command is not compared."""
    if not line.is_ours:
        return
    if not is_program(line.hook):
        yield f"statusLine: {line.hook} does not exist or cannot be started, so the status line is empty"
    elif launcher and (line.hook, line.python) != (launcher.hook, launcher.python):
        yield f"statusLine: it starts {line.hook} with {line.python or 'the Python beside it'}, and would start ours"


def _missing_programs(ours: Sequence[HookEntry]) -> Iterator[str]:
    """Yield the missing programs of our hooks, without which the client blocks every tool call."""
    programs = dict[str, None]()
    for hook in ours:
        if "args" in hook.value:  # without `args`, a shell searches the PATH
            programs |= dict.fromkeys([hook.value["command"], _python(hook)])
    for program in programs:
        if program and not is_program(program):
            yield f"{program} does not exist or cannot be started"


def _python(hook: HookEntry) -> str:
    args = hook.value.get("args", [])
    return str(args[args.index("--python") + 1]) if "--python" in args[:-1] else ""


def _differences(ours: Sequence[HookEntry], launcher: Launcher | None) -> Iterator[str]:
    """Yield the keys that an install would change. The same change of several events is one line."""
    changes: dict[tuple[str, str, str], list[str]] = {}
    for hook in ours:
        same = Launcher(hook.value["command"], _python(hook))  # without a launcher, paths are not compared
        new = hook_for(hook.event, launcher or same, hook.value)
        for key in dict.fromkeys([*hook.value, *new]):
            before, after = hook.value.get(key), new.get(key)
            if before != after:
                change = (key, _shown(before, hook.event), _shown(after, hook.event))
                changes.setdefault(change, []).append(hook.event)
    for (key, before, after), events in changes.items():
        where = events[0] if len(events) == 1 else f"{len(events)} events"
        yield f"{where}: {key} is {before}, and would be {after}"


def _shown(value: Any, event: str) -> str:
    if value is None:
        return "absent"
    words = ["<Event>" if word == event else word for word in value] if isinstance(value, list) else value
    return msgspec.json.encode(words).decode()


def _unknown_events(events: Sequence[str], version: Version | None) -> Iterator[str]:
    for event in events:
        if event in EVENTS and not is_known(event, version):
            yield f"{event}: this client does not know it, and says so at the start of every session"


def _notes(root: Node, ours: Sequence[HookEntry]) -> Iterator[str]:
    if is_set(root, OFF_SWITCH):
        yield f"{OFF_SWITCH} is set, so the client runs no hooks at all"
    for hook in ours:
        if hook.matcher not in (None, "", "*"):
            yield f"{hook.event}: only for the matcher {hook.matcher!r}"
    for name in find_replaceable_programs(root):
        yield f"{name} has hooks here too, which decide the same events; install with --replace {name} to take over"
