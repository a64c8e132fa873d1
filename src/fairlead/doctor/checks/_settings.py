"""Checks of the client and its settings: whether our hooks are installed, read, and not overridden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients.claude._install_events import BASE, EVENTS, OLDEST, show_version
from fairlead.doctor._findings import ok, skipped, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients.claude._status import Status
    from fairlead.doctor._facts import Client, Facts, Hook
    from fairlead.doctor._findings import Finding

NEWEST = max(event.since for event in EVENTS.values())
"""The newest client whose events were seen."""


def check_client(client: Client) -> Iterator[Finding]:
    """Yield whether the client can start our hooks, and whether its events are known."""
    version = client.version
    if version is None:
        where = f"{client.program} does not say its version" if client.program else "there is no claude on the PATH"
        yield warning(
            "client.unknown",
            f"{where}, so the events of {show_version(BASE)} are expected",
            "put claude on the PATH, or name its version: --client-version 2.1.325",
        )
        return
    name = f"Claude Code {show_version(version)}"
    if version < OLDEST:
        oldest = show_version(OLDEST)
        yield wrong("client.old", f"{name} cannot start hooks without a shell", f"update it to {oldest} or newer")
    elif version < BASE:
        base = show_version(BASE)
        yield warning("client.unseen", f"{name} is older than any that was tried", f"update it to {base} or newer")
    elif version > NEWEST:
        yield ok("client", f"{name}, newer than {show_version(NEWEST)}: what events it may have more are not asked for")
    else:
        yield ok("client", name)


# -- the install -----------------------------------------------------------------------------------------


def check_install(facts: Facts) -> Iterator[Finding]:
    """Yield how completely our hooks are installed, for each requested scope."""
    managed = {hook.event for hook in _hooks(facts) if hook.is_ours and hook.scope == "managed"}
    if managed:
        yield ok("install", f"managed: {len(managed)} events")
    if not managed and {status.state for status in facts.statuses} == {"not installed"}:
        scopes = " or ".join(facts.scopes)
        scope = f" --scope {facts.scopes[0]}" if len(facts.scopes) == 1 else ""
        yield wrong(
            "install.none",
            f"no hooks are installed in the scope {scopes}, so nothing is guarded",
            f"fairlead hooks install{scope}",
        )
        return
    for status in facts.statuses:
        yield _installed(status)


def _installed(status: Status) -> Finding:
    where, mend = f"{status.scope}: {status.file}", f"fairlead hooks install --scope {status.scope}"
    first, more = _first(status.differences)
    if status.state == "installed":
        return ok("install", f"{status.scope}: {len(status.events)} events in {status.file}")
    if status.state == "not installed":
        return skipped("install", f"{status.scope}: not installed")
    if status.state == "partial":
        return wrong("install.partial", f"{where}: events are missing: {', '.join(status.missing)}", mend)
    if status.state == "outdated":
        return wrong("install.outdated", f"{where}: {first}{more}", mend)
    if status.events:
        return wrong("install.broken", f"{where}: {first}{more}", f"{mend}; until then every tool call is blocked")
    return skipped("install", f"{status.scope}: {status.file} cannot be read")


def _first(lines: tuple[str, ...]) -> tuple[str, str]:
    return (lines[0] if lines else ""), f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""


def check_double(facts: Facts) -> Iterator[Finding]:
    """Yield the events that we decide twice: the client runs every different command line."""
    ours = [hook for hook in _hooks(facts) if hook.is_ours]
    lines: dict[str, set[tuple[str, ...]]] = {}
    for hook in ours:
        lines.setdefault(hook.event, set()).add(hook.line)
    twice = [event for event, found in lines.items() if len(found) > 1]
    scopes = list(dict.fromkeys(hook.scope for hook in ours))
    if twice:
        places = " and ".join(dict.fromkeys(hook.file for hook in ours if hook.event in twice))
        yield wrong(
            "install.double",
            f"{', '.join(twice[:3])}{' …' if len(twice) > 3 else ''}: decided twice, by different command lines "  # noqa: PLR2004
            f"in {places}",
            f"take one out: fairlead hooks uninstall --scope {scopes[-1]}",
        )
    elif len(scopes) > 1:
        yield ok("install.repeated", f"the scopes {' and '.join(scopes)} have the same command lines, which run once")


def check_rivals(facts: Facts) -> Iterator[Finding]:
    """Yield the hooks of other programs that decide the same events."""
    found = dict.fromkeys((hook.rival, hook.scope, hook.file) for hook in _hooks(facts) if hook.rival)
    for name, scope, file in found:
        advice = f"fairlead hooks install --scope {scope} --replace {name}"
        by_hand = f"take its entries out of {file}"
        yield warning(
            "install.rival",
            f"{name} has hooks in {file}, which decide the same events a second time",
            by_hand if scope == "managed" else advice,
        )


def check_status_line(facts: Facts) -> Iterator[Finding]:
    """Yield whether a status line that uses our launcher can be shown."""
    for file in facts.files:
        if file.status_line and file.line_there:
            yield ok("install.status_line", f"{file.scope}: the status line tells what sessions cost")
        elif file.status_line:
            yield wrong(
                "install.status_line",
                f"the status line of {file.file} starts {file.status_line}, which does not exist: nothing is shown",
                f"fairlead hooks install --scope {file.scope}; or fairlead hooks uninstall --scope {file.scope}",
            )


# -- what the client makes of its settings ---------------------------------------------------------------


def check_files(facts: Facts) -> Iterator[Finding]:
    """Yield the files that the client skips, and those that turn hooks off."""
    for file in facts.files:
        if file.problem:
            yield wrong("settings.skipped", f"{file.scope}: {file.problem}", "fix it: the client may skip all of it")
        if file.disables_hooks:
            yield wrong(
                "settings.disabled",
                f"disableAllHooks is set in {file.file}, so the client runs no hooks",
                "take disableAllHooks out of it",
            )
        if file.managed_only and not any(hook.is_ours for hook in file.hooks):
            yield wrong(
                "settings.managed_only",
                f"allowManagedHooksOnly is set in {file.file}, so the client runs no hooks of yours",
                "have those who manage this machine put the hooks there",
            )
    there = [file.scope for file in facts.files if file.is_there and not file.problem]
    if there:
        yield ok("settings", f"read as the client does: {', '.join(dict.fromkeys(there))}")


def check_gate(facts: Facts) -> Iterator[Finding]:
    """Yield later definitions of our command line without `onFailure`: the last one counts."""
    last: dict[tuple[str, ...], Hook] = {}
    blocking: dict[tuple[str, ...], Hook] = {}
    for hook in _hooks(facts):
        if hook.is_ours and (wanted := EVENTS.get(hook.event)) and wanted.blocks_on_failure:
            last[hook.line] = hook
            if hook.value.get("onFailure") == "block":
                blocking[hook.line] = hook
    for line, first in blocking.items():
        if (later := last[line]).value.get("onFailure") != "block":
            place = "again" if later.file == first.file else f"also in {later.file}"
            yield wrong(
                "settings.reopened",
                f'{first.event} of {first.file} stands {place}, later and without "onFailure": "block": '
                "a tool runs if the hook fails",
                f"take the later entry out of {later.file}",
            )


def _hooks(facts: Facts) -> list[Hook]:
    return [hook for file in facts.files for hook in file.hooks]
