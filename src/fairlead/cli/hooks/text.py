"""What `fairlead hooks` prints about an install, an uninstall and the status. Pure: no file is read here."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING

from fairlead.clients._json_text import parse
from fairlead.clients.claude import _skill as skills
from fairlead.clients.claude._hook_entries import others, settings
from fairlead.clients.claude._install_events import EVENTS, events_for, show_version
from fairlead.clients.claude._programs import COMPILE_LAUNCHER, PYTHON_LAUNCHER
from fairlead.clients.claude._status_line_entry import Kind, read_line
from fairlead.clients.claude._stay_entries import read_stay

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairlead.clients.claude._hook_entries import Asked
    from fairlead.clients.claude._install import Plan
    from fairlead.clients.claude._install_events import Version
    from fairlead.clients.claude._status import Status

_WIDTH = 110

_STAY: dict[str, tuple[str, ...]] = {
    "": (),
    "always": ("agents stay: always; at the end of a turn they wait for mail",),
    "wake": ("agents stay: wake; at the end of a turn they stop, and mail wakes them",),
    "no": ("agents stay: no",),
}
_STATUS_LINE: dict[Kind, tuple[str, ...]] = {
    "none": (),
    "own": ("status line: yours; Fairlead does not read it",),
    "odd": ("status line: in a form that the client does not run, so it is left unchanged",),
    "chained": ("status line: yours; Fairlead reads it, too",),
    "ours": ("status line: Fairlead's",),
}


def client_name(version: Version | None) -> str:
    """Return the client's name and version."""
    return f"Claude Code {show_version(version)}" if version else "Claude Code (version unknown, so the oldest events)"


# -- install and uninstall -----------------------------------------------------------------------------


def diff_lines(plan: Plan) -> Iterator[str]:
    """Yield the change of a settings file as a diff."""
    name = str(plan.seen.target)
    before, after = ((content or b"").decode().splitlines() for content in (plan.seen.content, plan.after))
    old = "/dev/null" if plan.seen.content is None else name
    new = "/dev/null" if plan.after is None else name
    return difflib.unified_diff(before, after, old, new, lineterm="")


def install_lines(plan: Plan, asked: Asked, scope: str, verb: str) -> Iterator[str]:
    """Yield what an install did, or would do."""
    events = events_for(asked.version, asked.also)
    yield f"{verb} in {plan.seen.target}: {len(events)} events of {client_name(asked.version)}"
    done = plan.done
    for what, names in (("added", done.added), ("updated", done.updated), ("removed", done.dropped)):
        if names:
            yield _listed(what, names)
    if done.taken:
        yield f"  replaced: {_entries(done.taken)} of {', '.join(sorted(asked.replace))}, which uninstall restores"
    for name, wanted in EVENTS.items():
        if wanted.left_out and name not in asked.also:
            yield f"  left out: {name}: {wanted.left_out}"
    stay = read_stay(parse(done.text)) or done.stay
    yield from (f"  {line}" for line in _STAY[stay])
    yield from _status_line_lines(plan, scope)


def _status_line_lines(plan: Plan, scope: str) -> Iterator[str]:
    kind = read_line(parse(plan.done.text)).kind
    if plan.done.status_line == "updated":
        yield "  status line: updated"
    elif kind == "none" and scope == "user":
        yield "  no status line: install with --status-line to see model, context and cost there"
    else:
        yield from (f"  {line}" for line in _STATUS_LINE[kind])


def kept_lines(kept: Path | None) -> Iterator[str]:
    """Yield where the previous settings file is kept."""
    if kept is not None:
        yield f"  the previous file is kept as {kept}"


def warning_lines(plan: Plan, asked: Asked, scope: str, *, is_git_ignored: bool | None) -> Iterator[str]:
    """Yield what the user should know at once."""
    root = settings(plan.done.text)
    off = root.member("disableAllHooks")
    if off is not None and off.plain is True:
        yield "warning: disableAllHooks is set in this file, so the client runs no hooks at all"
    if scope == "project":
        yield (
            f"warning: others get this file with the project, and are blocked at every tool call unless they have "
            f"{asked.launcher.hook}; --scope local is for you alone"
        )
    if scope == "local" and is_git_ignored is False:
        yield f"warning: git does not ignore {plan.seen.file}; add it to .gitignore, its paths are of this machine"
    for name in others(root):
        yield f"warning: {name} has hooks here, too, which decide the same events; see --replace"


def launcher_lines(launcher: str, *, is_python: bool) -> Iterator[str]:
    """Yield that the launcher is the slow one, and what to do."""
    if is_python:
        yield f"warning: {launcher} is {PYTHON_LAUNCHER}; {COMPILE_LAUNCHER}"


def skill_lines(file: Path, done: skills.Done | None) -> Iterator[str]:
    """Yield what was done with the skill."""
    if done == "kept":
        yield f"warning: {file} was changed by somebody, so it is left unchanged"
    elif done not in {None, "absent"}:
        yield f"skill {done}: {file}"


def next_lines(*, has_skill: bool) -> Iterator[str]:
    """Yield what to do after an install."""
    yield "next:"
    yield "  running sessions use the hooks within seconds; /hooks in the client lists them"
    if not has_skill:
        yield "  fairlead hooks install --skill    teaches agents to write to each other"
    yield "  fairlead doctor"


def uninstall_line(plan: Plan, verb: str) -> str:
    """Return what an uninstall did, or would do."""
    if not plan.done.found:
        return f"nothing to do: {plan.seen.target} contains nothing of Fairlead's"
    if plan.after is None:
        left = "the file is gone, as it was before"
    elif plan.is_exact:
        left = "the file is as it was before, byte for byte"
    else:
        restored = f", and {_entries(plan.done.taken)} restored" if plan.done.taken else ""
        left = f"the file was changed since, so only the hooks were removed{restored}"
    line = " and the status line" if plan.done.status_line else ""
    return f"{verb} from {plan.seen.target}: {len(plan.done.dropped)} events{line}; {left}"


# -- status --------------------------------------------------------------------------------------------


def status_lines(
    statuses: Sequence[Status], version: Version | None, launcher: str, *, is_python: bool
) -> Iterator[str]:
    """Yield the status of each scope. `launcher` is its path, or why there is none."""
    yield f"client: {client_name(version)}"
    yield f"launcher: {launcher}"
    if is_python:
        yield f"  {PYTHON_LAUNCHER}; {COMPILE_LAUNCHER}"
    for one in statuses:
        amount = f", {len(one.events)} events" if one.events else ""
        yield f"{one.scope}: {one.state}{amount}: {one.file}"
        if one.missing:
            yield _listed("missing", one.missing)
        known = (*_STAY[one.stay], *_STATUS_LINE[one.status_line])
        yield from (f"  {line}" for line in (*one.differences, *known, *one.notes))
    if any(one.state in {"partial", "outdated", "broken"} for one in statuses):
        yield "to update: fairlead hooks install, with the scope"


def _listed(what: str, names: Sequence[str]) -> str:
    return textwrap.fill(", ".join(names), _WIDTH, initial_indent=f"  {what}: ", subsequent_indent="    ")


def _entries(taken: Sequence[object]) -> str:
    return f"{len(taken)} {'entry' if len(taken) == 1 else 'entries'}"
