"""Checks of the state folder, and of the policy that applies."""

from __future__ import annotations

import os
from shlex import quote
from typing import TYPE_CHECKING

from fairlead.doctor._findings import ok, skipped, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.doctor._facts import DaemonFacts, DatabaseFacts, Facts, PolicyFacts, StateFacts
    from fairlead.doctor._findings import Finding
    from fairlead.policy import FileTrust, HookFileState

LOW_SPACE = 100_000_000
"""Free bytes below which there is a warning."""
NO_SPACE = 10_000_000
"""Free bytes below which nothing can be recorded."""
LARGE_JOURNAL = 300_000_000
"""Bytes from which on there is a warning. A daemon keeps the journal below half of this size."""
LONG_SPOOL = 1000
"""The number of events in the spool from which on there is a warning."""

_EMPTY_SPOOL = "fairlead daemon start, which records them"
_FIX_POLICY = "fix it: fairlead validate lists all errors"


def check_state(facts: Facts) -> Iterator[Finding]:
    """Yield findings about the state folder: whether events can be recorded, and whether they have been."""
    state = facts.state
    yield from _check_folder(state)
    yield from _check_spool(state, facts.daemon)
    if state.store is not None:
        yield from _check_database("store", state.store, state)
    if state.mail is not None:
        yield from _check_database("mail", state.mail, state)
    if state.last_log_line:
        yield warning("state.log", f"the daemon's log ends with: {state.last_log_line}", f"see {state.log}")


def _check_folder(state: StateFacts) -> Iterator[Finding]:
    path = state.folder.path
    if state.write_error:
        yield wrong(
            "state.unwritable",
            f"{path} cannot be written: {state.write_error}; nothing is recorded",
            "make it writable, or set FAIRLEAD_HOME to a folder that is",
        )
        return
    if state.free_bytes is not None and state.free_bytes < LOW_SPACE:
        make_finding = wrong if state.free_bytes < NO_SPACE else warning
        yield make_finding("state.space", f"only {_size(state.free_bytes)} are free at {path}", "free some disk space")
    else:
        free = f", {_size(state.free_bytes)} free" if state.free_bytes is not None else ""
        yield ok("state", f"{path}: writable{free}")


def _check_spool(state: StateFacts, daemon: DaemonFacts) -> Iterator[Finding]:
    if state.spooled >= state.max_spooled:
        yield wrong(
            "state.spool_full", f"the spool is full: {state.spooled} events wait, and no more fit", _EMPTY_SPOOL
        )
    elif state.spooled > LONG_SPOOL:
        yield warning("state.spool", f"{state.spooled} events wait in the spool", _EMPTY_SPOOL)
    elif state.spooled and daemon.state != "running":
        yield ok("state.spool", f"{state.spooled} events wait in the spool for a daemon")
    if state.unreadable:
        yield warning(
            "state.broken",
            f"{state.unreadable} files in the spool are not events",
            f"inspect and delete them: {state.folder.path}/spool/broken",
        )
    if state.journal_bytes > LARGE_JOURNAL:
        yield warning(
            "state.journal",
            f"the journal has {_size(state.journal_bytes)}",
            "fairlead daemon start, which removes what is in the store",
        )


def _has_no_space(state: StateFacts) -> bool:
    return bool(state.write_error) or (state.free_bytes is not None and state.free_bytes < NO_SPACE)


def _check_database(name: str, database: DatabaseFacts, state: StateFacts) -> Iterator[Finding]:
    file, has_no_space = database.file, _has_no_space(state)
    if database.problem:
        fix = "fairlead daemon stop, then fairlead daemon start: it copies what can be read, and keeps the damaged file"
        yield wrong(
            f"{name}.damaged",
            f"{file} cannot be read: {database.problem}",
            "free some disk space first, then run fairlead doctor again: it may be intact" if has_no_space else fix,
        )
    elif not database.is_known_revision:
        yield wrong(
            f"{name}.too_new",
            f"{file} is from a newer Fairlead (revision {database.revision}, this version knows {database.head})",
            "upgrade Fairlead, or move the file away",
        )
    elif not database.was_checked:
        yield skipped(name, f"{file} could not be checked in a moment: it is large, or in use")
    elif database.is_there:
        yield ok(name, f"{file}: intact, revision {database.revision or 'none yet'}")
    else:
        yield skipped(name, f"no {file.rpartition('/')[2]} yet: the first daemon creates it")
    if database.set_aside:
        yield warning(
            f"{name}.set_aside",
            f"a damaged database was set aside: {database.set_aside[-1]}",
            "what could be read is in the new database; keep the damaged one until you know that nothing is missing",
        )


def check_policy(policy: PolicyFacts) -> Iterator[Finding]:
    """Yield findings about the policy: whether its files are valid, which version applies, and what is trusted."""
    more = f" (and {len(policy.errors) - 1} more)" if len(policy.errors) > 1 else ""
    if policy.is_unusable:
        yield wrong(
            "policy.broken",
            f"every tool call is denied here, because the policy has an error: {policy.errors[0]}{more}",
            _FIX_POLICY,
        )
    elif policy.errors:
        yield wrong(
            "policy.last_good",
            f"an earlier version of the policy applies, because this one has an error: {policy.errors[0]}{more}",
            _FIX_POLICY,
        )
    elif policy.warnings:
        yield warning("policy.warning", policy.warnings[0], "see fairlead validate")
    elif not policy.files:
        yield skipped("policy", "no policy applies here: only settings and policy files are guarded", "fairlead init")
    else:
        yield ok("policy", f"valid: {' and '.join(policy.files)}")
    if policy.hints:
        yield warning("policy.hint", f"valid, but may not do what you mean: {policy.hints[0]}", "see fairlead validate")
    yield from _check_trust(policy.trust)
    yield from _check_hooks(policy)


def _check_trust(files: Sequence[FileTrust]) -> Iterator[Finding]:
    """Yield findings about trusted policy files, and about changes since they were trusted.

    A single file that no person has trusted is not mentioned.
    """
    by_person = [trust.file for trust in files if trust.state == "person"]
    in_sessions = [trust.file for trust in files if trust.state != "person"]
    if by_person or len(files) > 1:
        parts = [f"trusted by you: {' and '.join(by_person)}"] if by_person else []
        parts += [f"trusted in sessions that begin here: {' and '.join(in_sessions)}"] if in_sessions else []
        yield ok("policy.trust", "; ".join(parts))
    for trust in files:
        file, sessions = trust.file, trust.changed_sessions
        if trust.state == "changed":
            text = f"{file} has changed since you trusted it: in sessions that begin elsewhere only its rules apply"
            yield warning("policy.changed", text, f"fairlead trust {file}")
        if sessions:
            began = "a running session began" if sessions == 1 else f"{sessions} running sessions began"
            text = f"{file} has changed since {began}: what it loosens does not apply there"
            yield warning("policy.session", text, f"fairlead trust {file}, or start them again")


def _check_hooks(policy: PolicyFacts) -> Iterator[Finding]:
    """Yield findings about hook files: which run, and which deny events because they are missing or not trusted."""
    trusted = [hook.file for hook in policy.hooks if hook.state == "trusted"]
    if trusted:
        yield ok("policy.hooks", f"hooks of your own, as you trusted them: {' and '.join(trusted)}")
    for hook in policy.hooks:
        if hook.state != "trusted":
            text = f"every event that can be blocked is denied here: {hook.problem}"
            is_missing = hook.state == "missing"
            advice = f"restore it, or: {_removal(hook, policy)}" if is_missing else f"fairlead trust {quote(hook.file)}"
            yield wrong(f"policy.hook_{hook.state}", text, advice)


def _removal(hook: HookFileState, policy: PolicyFacts) -> str:
    """Return the command that takes a hook file out of its policy, after a `cd` if another policy is nearer."""
    if hook.policy == policy.user_wide:
        return f"fairlead hooks remove --user {quote(hook.file)}"
    nearest = next((file for file in policy.files if file != policy.user_wide), None)
    folder = "" if hook.policy == nearest else f"cd {quote(os.path.dirname(hook.policy))} && "
    return f"{folder}fairlead hooks remove {quote(hook.file)}"


def _size(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size < 10**9 else f"{size / 1e9:.0f} GB"
