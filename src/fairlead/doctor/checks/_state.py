"""Judges what is kept, and the policy that holds. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.doctor._findings import ok, skipped, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Daemon, Database, Facts, Policy, State
    from fairlead.doctor._findings import Finding

LITTLE_SPACE = 100_000_000
NO_SPACE = 10_000_000
LARGE_JOURNAL = 300_000_000
"""Bytes. A daemon keeps it below half of that."""
LONG_SPOOL = 1000

_BEGIN = "fairlead daemon start, which takes them in"


def check_state(facts: Facts) -> Iterator[Finding]:
    """Say whether events can be kept, and are."""
    state = facts.state
    yield from _folder(state)
    yield from _waiting(state, facts.daemon)
    if state.database is not None:
        yield from _database("store", state.database, "a new one is fed from the journal")
    if state.mail is not None:
        yield from _database("mail", state.mail, "a new one is begun, without what was in this one")
    if state.last_words:
        yield warning("state.log", f"the daemon's log ends with: {state.last_words}", f"see {state.log}")


def _folder(state: State) -> Iterator[Finding]:
    path = state.folder.path
    if state.unwritable:
        yield wrong(
            "state.unwritable",
            f"{path} cannot be written: {state.unwritable}; nothing is recorded",
            "make it writable, or set FAIRLEAD_HOME to a folder that is",
        )
        return
    if state.free is not None and state.free < LITTLE_SPACE:
        say = wrong if state.free < NO_SPACE else warning
        yield say("state.space", f"{_megabytes(state.free)} are free where {path} is", "make room")
    else:
        free = f", {_megabytes(state.free)} free" if state.free is not None else ""
        yield ok("state", f"{path}: writable{free}")


def _waiting(state: State, daemon: Daemon) -> Iterator[Finding]:
    if state.spooled >= state.most_spooled:
        yield wrong("state.spool_full", f"{state.spooled} events wait in the spool, and no more are kept", _BEGIN)
    elif state.spooled > LONG_SPOOL:
        yield warning("state.spool", f"{state.spooled} events wait in the spool", _BEGIN)
    elif state.spooled and daemon.state != "running":
        yield ok("state.spool", f"{state.spooled} events wait in the spool for a daemon")
    if state.broken:
        yield warning(
            "state.broken",
            f"{state.broken} files in the spool held no event",
            f"look at them, and delete them: {state.folder.path}/spool/broken",
        )
    if state.journal > LARGE_JOURNAL:
        yield warning(
            "state.journal",
            f"the journal has {_megabytes(state.journal)}",
            "fairlead daemon start, which removes what the store has",
        )


def _database(name: str, database: Database, then: str) -> Iterator[Finding]:
    file = database.file
    if database.problem:
        yield wrong(
            f"{name}.damaged",
            f"{file} cannot be read: {database.problem}",
            f"fairlead daemon stop, then start: it is set aside, and {then}",
        )
    elif not database.is_known:
        yield wrong(
            f"{name}.too_new",
            f"{file} is of a newer Fairlead (revision {database.revision}, this version knows {database.head})",
            "upgrade Fairlead, or move the file away",
        )
    elif not database.is_whole:
        yield skipped(name, f"{file} is too large to be looked at in a moment")
    elif database.is_there:
        yield ok(name, f"{file}: whole, revision {database.revision or 'none yet'}")
    else:
        yield skipped(name, f"there is no {file.rpartition('/')[2]} yet: the first daemon makes it")
    if database.set_aside:
        yield warning(
            f"{name}.set_aside",
            f"a damaged database was set aside: {database.set_aside[-1]}",
            "rescue what you need with sqlite3 FILE .recover, then delete it",
        )


def check_policy(policy: Policy) -> Iterator[Finding]:
    """Say which policy holds here, and whether it is what its file says."""
    more = f" (and {len(policy.mistakes) - 1} more)" if len(policy.mistakes) > 1 else ""
    if policy.broken:
        yield wrong(
            "policy.broken",
            f"no tool is allowed here, because the policy has a mistake: {policy.mistakes[0]}{more}",
            "mend it: fairlead validate lists all mistakes",
        )
    elif policy.mistakes:
        yield wrong(
            "policy.last_good",
            f"an earlier version of the policy holds, because this one has a mistake: {policy.mistakes[0]}{more}",
            "mend it: fairlead validate lists all mistakes",
        )
    elif policy.warnings:
        yield warning("policy.warning", policy.warnings[0], "see fairlead validate")
    elif not policy.files:
        yield skipped("policy", "none holds here: only settings and policies are guarded", "fairlead init")
    else:
        yield ok("policy", f"valid: {' and '.join(policy.files)}")
    if policy.hints:
        yield warning("policy.hint", f"valid, but may not do what is meant: {policy.hints[0]}", "see fairlead validate")


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.0f} MB" if size < 10**9 else f"{size / 1e9:.0f} GB"
