"""The text that `fairlead hooks` prints about an install, an uninstall and the status. Reads no file."""

from __future__ import annotations

import difflib
import textwrap
from typing import TYPE_CHECKING

from fairlead.clients import COMPILE_LAUNCHER, PYTHON_LAUNCHER, format_version

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from fairlead.clients import (
        Client,
        InstallPlan,
        InstallRequest,
        InstallStatus,
        SkillChange,
        StatusLineKind,
        Version,
    )

_WIDTH = 110

_STAY: dict[str, tuple[str, ...]] = {
    "": (),
    "always": ("agents stay: always; at the end of a turn they wait for mail",),
    "wake": ("agents stay: wake; at the end of a turn they stop, and mail wakes them",),
    "no": ("agents stay: no",),
}
STATUS_LINE_OFFER = (
    "You have no status line, and without one the context and the cost of a session are not known.\n"
    "Show Fairlead's, with model, context and cost? Press y for yes, any other key for no: "
)

_STATUS_LINE: dict[StatusLineKind, tuple[str, ...]] = {
    "none": (),
    "own": ("status line: yours; Fairlead does not read it",),
    "odd": ("status line: in a form that the client does not run, so it is left unchanged",),
    "chained": ("status line: yours; Fairlead reads it, too",),
    "ours": ("status line: Fairlead's",),
}


def client_name(client: Client, version: Version | None) -> str:
    """Return the client's name and version; `None` is a version that is not known."""
    return f"{client.title} {format_version(version) if version else '(version unknown, so the oldest events)'}"


# -- install and uninstall -----------------------------------------------------------------------------


def diff_lines(plan: InstallPlan) -> Iterator[str]:
    """Yield the lines of a diff that shows the change of the settings file."""
    name = str(plan.before.target)
    before, after = ((content or b"").decode().splitlines() for content in (plan.before.content, plan.after))
    old = "/dev/null" if plan.before.content is None else name
    new = "/dev/null" if plan.after is None else name
    return difflib.unified_diff(before, after, old, new, lineterm="")


def install_lines(client: Client, plan: InstallPlan, request: InstallRequest, scope: str, verb: str) -> Iterator[str]:
    """Yield what an install did, or would do. `verb` is "installed" or "would install"."""
    installer, result = client.installer, plan.result
    events = installer.events_for(request.version, request.also)
    yield f"{verb} in {plan.before.target}: {len(events)} events of {client_name(client, request.version)}"
    for what, names in (("added", result.added), ("updated", result.updated), ("removed", result.dropped)):
        if names:
            yield _listed(what, names)
    if result.taken:
        yield f"  replaced: {_entries(result.taken)} of {', '.join(sorted(request.replace))}, which uninstall restores"
    for name, setting in installer.EVENTS.items():
        if setting.left_out and name not in request.also:
            yield f"  left out: {name}: {setting.left_out}"
    stay = installer.stay_of(result.text) or result.stay
    yield from (f"  {line}" for line in _STAY[stay])
    if installer.mail_rules_of(result.text):
        how = f"{len(result.rules)} permission rules added" if result.rules else "by permission rules that are there"
        yield f"  agents may run fairlead's mail commands, and no others, without asking you: {how}"
    yield from _status_line_lines(client, plan, scope)


def _status_line_lines(client: Client, plan: InstallPlan, scope: str) -> Iterator[str]:
    kind = client.installer.status_line_of(plan.result.text)
    if plan.result.status_line == "updated":
        yield "  status line: updated"
    elif kind == "none" and scope == "user":
        yield "  no status line: install with --status-line to see model, context and cost there"
    else:
        yield from (f"  {line}" for line in _STATUS_LINE[kind])


def kept_lines(kept: Path | None) -> Iterator[str]:
    """Yield where the previous settings file is kept; nothing if there was none."""
    if kept is not None:
        yield f"  the previous file is kept as {kept}"


def warning_lines(
    client: Client, plan: InstallPlan, request: InstallRequest, scope: str, *, is_ignored: bool | None
) -> Iterator[str]:
    """Yield warnings about an install.

    `is_ignored` is whether git ignores the settings file; `None` if that is not known, or the scope is not `local`.
    """
    if scope == "project":
        yield (
            f"warning: others get this file with the project, and their tool calls are blocked unless they have "
            f"{request.launcher.hook}; to install for yourself only: --scope local"
        )
    if scope == "local" and is_ignored is False:
        yield f"warning: git does not ignore {plan.before.file}; add it to .gitignore: its paths are of this machine"
    yield from (f"warning: {line}" for line in client.installer.warnings(plan.result.text))


def launcher_lines(launcher: str, *, is_python: bool) -> Iterator[str]:
    """Yield a warning if the launcher is not compiled, but the slow script in Python."""
    if is_python:
        yield f"warning: {launcher} is {PYTHON_LAUNCHER}; {COMPILE_LAUNCHER}"


def skill_lines(file: Path, change: SkillChange | None) -> Iterator[str]:
    """Yield how an install or uninstall changed the skill file; nothing if `change` is `None` or `absent`."""
    if change == "kept":
        yield f"warning: {file} was changed by someone else, so it is left unchanged"
    elif change not in {None, "absent"}:
        yield f"skill {change}: {file}"


def next_lines(*, has_skill: bool) -> Iterator[str]:
    """Yield the next steps after an install."""
    yield "next:"
    yield "  running sessions use the hooks within seconds; /hooks in the client lists them"
    if not has_skill:
        yield "  fairlead hooks install --skill    teaches agents to write to each other"
    yield "  fairlead doctor"


def uninstall_line(plan: InstallPlan, verb: str) -> str:
    """Return one line with what an uninstall did, or would do. `verb` is "removed" or "would remove"."""
    result = plan.result
    if not result.had_ours:
        return f"nothing to do: {plan.before.target} contains nothing of Fairlead's"
    if plan.after is None:
        left = "the file is gone, as it was before"
    elif plan.is_exact:
        left = "the file is as it was before, byte for byte"
    else:
        restored = f", and {_entries(result.taken)} restored" if result.taken else ""
        left = f"the file was changed since, so only the hooks were removed{restored}"
    rules = f", {len(result.rules)} permission rules" if result.rules else ""
    line = " and the status line" if result.status_line else ""
    return f"{verb} from {plan.before.target}: {len(result.dropped)} events{rules}{line}; {left}"


# -- status --------------------------------------------------------------------------------------------


def status_lines(client: str, launcher: str, statuses: Sequence[InstallStatus], *, is_python: bool) -> Iterator[str]:
    """Yield the client, the launcher, and the status of each scope.

    `client` is the name and version of the client. `launcher` is the path of the launcher, or why there is none.
    """
    yield f"client: {client}"
    yield f"launcher: {launcher}"
    if is_python:
        yield f"  {PYTHON_LAUNCHER}; {COMPILE_LAUNCHER}"
    for status in statuses:
        amount = f", {len(status.events)} events" if status.events else ""
        yield f"{status.scope}: {status.state}{amount}: {status.file}"
        if status.missing:
            yield _listed("missing", status.missing)
        known = (*_STAY[status.stay], *_STATUS_LINE[status.status_line])
        yield from (f"  {line}" for line in (*status.differences, *known, *status.notes))
    if any(status.state in {"partial", "outdated", "broken"} for status in statuses):
        yield "to update: fairlead hooks install, with the scope"
    elif statuses and all(status.state == "not installed" for status in statuses):
        yield "to install: fairlead hooks install"


def _listed(what: str, names: Sequence[str]) -> str:
    return textwrap.fill(", ".join(names), _WIDTH, initial_indent=f"  {what}: ", subsequent_indent="    ")


def _entries(taken: Sequence[object]) -> str:
    return f"{len(taken)} {'entry' if len(taken) == 1 else 'entries'}"
