"""Checks of the client and its settings: whether our hooks are installed, read, and not overridden."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import client_named, format_version
from fairlead.doctor._findings import ok, skipped, warning, wrong
from fairlead.text import duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients import InstalledHook, InstallStatus
    from fairlead.doctor._facts import ClientFacts, Facts
    from fairlead.doctor._findings import Finding


_QUESTION_EVENT = "PermissionRequest"


def check_client(client: ClientFacts) -> Iterator[Finding]:
    """Yield a finding about the client: whether it can start our hooks, and whether we know its events."""
    version, installer = client.version, client_named(client.name).installer
    newest = max(event.since for event in installer.EVENTS.values())  # the newest version whose events are known
    program, base = installer.PROGRAM, format_version(installer.BASE_VERSION)
    if version is None:
        where = f"{client.program} does not say its version" if client.program else f"there is no {program} on the PATH"
        yield warning(
            "client.unknown",
            f"{where}, so the events of {base} are expected",
            f"put {program} on the PATH, or name its version: --client-version {format_version(newest)}",
        )
        return
    name = f"{client_named(client.name).title} {format_version(version)}"
    if version < installer.MIN_VERSION:
        oldest = format_version(installer.MIN_VERSION)
        yield wrong("client.old", f"{name} cannot start hooks without a shell", f"update it to {oldest} or newer")
    elif version < installer.BASE_VERSION:
        yield warning("client.unseen", f"{name} is older than any that was tried", f"update it to {base} or newer")
    elif version > newest:
        last = format_version(newest)
        yield ok("client", f"{name}, newer than {last}: if it has more events, no hooks are installed for them")
    else:
        yield ok("client", name)


# -- the install -----------------------------------------------------------------------------------------


def check_install(facts: Facts) -> Iterator[Finding]:
    """Yield a finding for each requested scope: whether our hooks are installed completely."""
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


def _installed(status: InstallStatus) -> Finding:
    where, fix = f"{status.scope}: {status.file}", f"fairlead hooks install --scope {status.scope}"
    first, more = _first(status.differences)
    if status.state == "installed":
        return ok("install", f"{status.scope}: {len(status.events)} events in {status.file}")
    if status.state == "not installed":
        return skipped("install", f"{status.scope}: not installed")
    if status.state == "partial":
        return wrong("install.partial", f"{where}: events are missing: {', '.join(status.missing)}", fix)
    if status.state == "outdated":
        return wrong("install.outdated", f"{where}: {first}{more}", fix)
    if status.events:
        return wrong("install.broken", f"{where}: {first}{more}", f"{fix}; until then every tool call is blocked")
    return skipped("install", f"{status.scope}: {status.file} cannot be read")


def _first(lines: tuple[str, ...]) -> tuple[str, str]:
    return (lines[0] if lines else ""), f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""


def check_double(facts: Facts) -> Iterator[Finding]:
    """Yield findings about events that we decide twice, because the client runs each different command line."""
    ours = [hook for hook in _hooks(facts) if hook.is_ours]
    lines: dict[str, set[tuple[str, ...]]] = {}
    for hook in ours:
        lines.setdefault(hook.event, set()).add(hook.identity)
    twice = [event for event, different in lines.items() if len(different) > 1]
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
    """Yield findings about hooks of other programs that decide the same events."""
    rivals = dict.fromkeys((hook.rival, hook.scope, hook.file) for hook in _hooks(facts) if hook.rival)
    for name, scope, file in rivals:
        advice = f"fairlead hooks install --scope {scope} --replace {name}"
        by_hand = f"take its entries out of {file}"
        yield warning(
            "install.rival",
            f"{name} has hooks in {file}, which decide the same events a second time",
            by_hand if scope == "managed" else advice,
        )


def check_answers(facts: Facts) -> Iterator[Finding]:
    """Yield findings about the hooks for questions: whether they wait as long as the policy lets a person answer."""
    usual = client_named(facts.client.name).installer.EVENTS[_QUESTION_EVENT].timeout
    seconds = facts.policy.answer_seconds
    hooks = [hook for hook in _hooks(facts) if hook.is_ours and hook.event == _QUESTION_EVENT and hook.timeout]
    short = next((hook for hook in hooks if hook.timeout and hook.timeout < seconds), None)
    waiting = next((hook for hook in hooks if hook.timeout and hook.timeout > usual), None)
    if short is not None:
        fix = f"fairlead hooks install --scope {short.scope} --answer"
        if short is waiting or short.scope == "managed":
            fix = f"set answerTimeout to less than {short.timeout:g}"
        yield warning(
            "install.answer",
            f"attention.answer lets you answer questions for {duration(seconds)}, but the client ends the hook in "
            f"{short.file} after {duration(short.timeout or 0)}; then only the client can be answered",
            fix,
        )
    elif seconds and hooks:
        yield ok("install.answer", f"questions can be answered outside of the client for {duration(seconds)}")
    elif waiting is not None:
        yield warning(
            "install.answer",
            f"the hook in {waiting.file} may wait for your answer to a question, but attention.answer is off, so "
            "questions can be answered in the client alone",
            "set `attention: {answer: true}` in the user-wide policy, or: "
            f"fairlead hooks install --scope {waiting.scope} --no-answer",
        )


def check_status_line(facts: Facts) -> Iterator[Finding]:
    """Yield findings about status lines that use our launcher: whether they can be shown."""
    for file in facts.files:
        if file.status_line and file.line_there:
            yield ok("install.status_line", f"{file.scope}: the status line tells what sessions cost")
        elif file.status_line:
            yield wrong(
                "install.status_line",
                f"the status line of {file.file} starts {file.status_line}, which does not exist: nothing is shown",
                f"fairlead hooks install --scope {file.scope}; or fairlead hooks uninstall --scope {file.scope}",
            )


# -- how the client reads its settings -------------------------------------------------------------------


def check_files(facts: Facts) -> Iterator[Finding]:
    """Yield findings about files that the client skips, and files that turn hooks off."""
    for file in facts.files:
        if file.problem:
            yield wrong("settings.skipped", f"{file.scope}: {file.problem}", "fix it: the client may skip all of it")
        if file.off_switch:
            yield wrong(
                "settings.disabled",
                f"{file.off_switch} is set in {file.file}, so the client runs no hooks",
                f"take {file.off_switch} out of it",
            )
        if file.managed_only and not any(hook.is_ours for hook in file.hooks):
            yield wrong(
                "settings.managed_only",
                f"{file.managed_only} is set in {file.file}, so the client runs no hooks of yours",
                "ask the administrator of this machine to put the hooks there",
            )
    read_scopes = [file.scope for file in facts.files if file.is_there and not file.problem]
    if read_scopes:
        yield ok("settings", f"read as the client does: {', '.join(dict.fromkeys(read_scopes))}")


def check_gate(facts: Facts) -> Iterator[Finding]:
    """Yield findings about our hooks that block on failure, if a later entry with the same command line does not.

    The client applies the last such entry.
    """
    events = client_named(facts.client.name).installer.EVENTS
    last: dict[tuple[str, ...], InstalledHook] = {}
    blocking: dict[tuple[str, ...], InstalledHook] = {}
    for hook in _hooks(facts):
        if hook.is_ours and (wanted := events.get(hook.event)) and wanted.blocks_on_failure:
            last[hook.identity] = hook
            if hook.blocks_on_failure:
                blocking[hook.identity] = hook
    for line, first in blocking.items():
        if not (later := last[line]).blocks_on_failure:
            place = "again" if later.file == first.file else f"also in {later.file}"
            yield wrong(
                "settings.reopened",
                f"{first.event} of {first.file} is defined {place}, later and without blocking on failure: "
                "a tool runs if the hook fails",
                f"take the later entry out of {later.file}",
            )


def _hooks(facts: Facts) -> list[InstalledHook]:
    return [hook for file in facts.files for hook in file.hooks]
