"""The messages to agents about leases and about each other's edits. Names, paths and reasons in them are escaped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.text import ago, duration, one_line, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.leases import Lease

MAX_SHOWN = 3
"""The maximum number of files of one call that a message names."""
_MAX_PATH = 300
_MAX_WHY = 200


def conflict_text(conflicts: Sequence[tuple[str, Lease, str]], now: float, *, is_blocked: bool) -> str:
    """Return the message to an agent whose call changes leased files. `is_blocked`: whether the call is blocked.

    Each of `conflicts` is a path, the lease on it, and the holder's name.
    """
    lines = [_conflict_line(path, lease, name, now) for path, lease, name in conflicts[:MAX_SHOWN]]
    if len(conflicts) > MAX_SHOWN:
        lines.append(f"… and {len(conflicts) - MAX_SHOWN} more: fairlead lease")
    name = one_line(conflicts[0][2])
    ask = f'fairlead send {name} --request "May I change {one_line(conflicts[0][0], _MAX_PATH)}?"'
    shared = all(lease.shared for _, lease, _ in conflicts)
    share = " The lease is shared: `fairlead lease --shared PATH` lets you work on it too." if shared else ""
    if is_blocked:
        lines.append(f"So the call is blocked (leases: block). {name} was notified. To ask: {ask}{share}")
    else:
        lines.append(f"{name} was notified. Do not change it before you have asked: {ask}{share}")
    return "\n".join(lines)


def _conflict_line(path: str, lease: Lease, name: str, now: float) -> str:
    why = f" Why: {quoted(lease.why, _MAX_WHY)}." if lease.why else ""
    kind = "a shared lease" if lease.shared else "a lease"
    left = duration(lease.until - now)
    return f"{one_line(path, _MAX_PATH)}: {one_line(name)} holds {kind} on it for another {left}.{why}"


def attempt_notice(path: str, lease: Lease, by: str, now: float, *, is_blocked: bool) -> tuple[str, str]:
    """Return subject and text of the message to the holder of a lease when the agent `by` changes the file `path`."""
    shown_path, title = _at_holder(path, lease)
    shown, name, title = one_line(shown_path, _MAX_PATH), one_line(by), one_line(title, _MAX_PATH)
    what = "wanted to change" if is_blocked else "changes"
    outcome = "The call was blocked." if is_blocked else "The call was allowed, with a warning (leases: warn)."
    text = (
        f"You hold a lease on {title} for another {duration(lease.until - now)}. {outcome}\n"
        f"If you are done with it: fairlead lease --release {title}"
    )
    return f"{name} {what} {shown}, which you have leased", text


def _at_holder(path: str, lease: Lease) -> tuple[str, str]:
    """Return a path and the title of a lease for its holder. On another host, both are relative to the repository."""
    if not lease.holder.host or lease.grant is None:
        return path, lease.title
    return path.removeprefix(f"{lease.root}/"), lease.grant.title


def edited_too(path: str, name: str, at: float, now: float) -> str:
    """Return the message to an agent that changes a file which the agent `name` of another session changed at `at`."""
    return (
        f"{one_line(name)} changed {one_line(path, _MAX_PATH)} {ago(at, now)}, in another session, and was notified. "
        f"Read the file again before you change it. {_lease_advice(path, name)}"
    )


def edited_after_you(path: str, name: str, at: float, now: float) -> str:
    """Return the message to an agent that changed a file at `at`, when `name`, of another session, changes it now."""
    return (
        f"{one_line(name)} changes {one_line(path, _MAX_PATH)} in another session; you changed it {ago(at, now)}. "
        f"Read the file again before you go on with it. {_lease_advice(path, name)}"
    )


def _lease_advice(path: str, name: str) -> str:
    shown = one_line(path, _MAX_PATH)
    return f'To agree on who works on it: fairlead send {one_line(name)} "…". To keep it: fairlead lease {shown}'
