"""The state of the team as JSON documents, for `fairlead team status` and `/metrics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.team import fingerprint

if TYPE_CHECKING:
    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.daemon.team.history._copier import CopyStatus
    from fairlead.team import Host


def status_document(
    log: ConnectionLog, roster: Roster | None, directory: TeamDirectory, copying: CopyStatus, now: float
) -> dict[str, Any]:
    """Return everything about the team. Every key is always present; what is not known yet is `None` or empty.

    `roster` is `None` until the membership was read; `now` is the time by this host's clock.
    """
    own = roster.membership if roster is not None else None
    return {
        "in_team": True,
        "now": now,
        "team": own.team if own else "",
        "host": own.host if own else "",
        "name": own.name if own else "",
        "fingerprint": fingerprint(own.key.public) if own else "",
        "state": roster.state(own.host) if roster and own else "pending",
        "relay": log.location or (own.relay.describe() if own else ""),
        "connection": log.state,
        "since": log.since,
        "why": log.why,
        "error": log.error,
        "revision": log.revision,
        "offset": round(log.offset, 3) if log.connections else None,
        "round_trip": round(log.round_trip, 4) if log.connections else None,
        "read": log.last_read or None,
        "pushed": log.pushed,
        "received": log.received,
        "refused": log.refused,
        "on_its_way": directory.unacknowledged_count,
        "events": {
            "mode": copying.events,
            "copied": copying.copied,
            "pending": copying.pending,
            "given_up": copying.given_up,
            "at": copying.at or None,
            "why": copying.why,
        },
        "hosts": _hosts(roster, directory, now) if roster else [],
    }


def gauges(log: ConnectionLog, directory: TeamDirectory, copying: CopyStatus, now: float) -> dict[str, float]:
    """Return the values for Prometheus. They contain no names or ids of hosts."""
    oldest = min((since for _, since in directory.unacknowledged.values() if since), default=now)
    return {
        "team_connected": int(log.state == "connected"),
        "team_connections": log.connections,
        "team_packets_on_their_way": directory.unacknowledged_count,
        "team_oldest_packet_seconds": round(max(0.0, now - oldest), 3),
        "team_packets_pushed": log.pushed,
        "team_packets_received": log.received,
        "team_packets_refused": log.refused,
        "team_clock_offset_seconds": round(log.offset, 3),
        "team_events_copied": copying.copied,
        "team_events_pending": copying.pending,
        "team_events_given_up": copying.given_up,
    }


def _hosts(roster: Roster, directory: TeamDirectory, now: float) -> list[dict[str, Any]]:
    own = roster.membership.host
    listed = sorted(roster.hosts.values(), key=lambda host: (host.id != own, host.name))
    rows = [_host(host, roster, directory, now) for host in listed]
    known = [*roster.trust.members.values(), *roster.trust.removed.values()]
    names = {row["name"] for row in rows}
    unlisted = [
        host
        for host in known
        if host.host not in roster.hosts
        and host.host != own
        and (host.host in roster.trust.members or host.name not in names)
    ]
    return rows + [
        _row(host.host, host.name, host.key, roster.trust.state(host.host)) | _in_transit(directory, host.host)
        for host in unlisted
    ]


def _host(host: Host, roster: Roster, directory: TeamDirectory, now: float) -> dict[str, Any]:
    age = roster.ages.get(host.id)
    remote = directory.members.get(host.id)
    return _row(host.id, host.name, host.key, roster.state(host.id)) | {
        "is_here": host.id == roster.membership.host,
        "age": None if age is None else round(age + now - roster.read_at, 1),
        "version": host.version,
        "offset": remote.offset if remote else None,
        "agents": len(remote.agents) if remote else None,
        **_in_transit(directory, host.id),
    }


def _row(host: str, name: str, key: bytes, state: str) -> dict[str, Any]:
    return {
        "id": host,
        "name": name,
        "state": state,
        "fingerprint": fingerprint(key),
        "is_here": False,
        "age": None,
        "version": "",
        "offset": None,
        "agents": None,
    }


def _in_transit(directory: TeamDirectory, host: str) -> dict[str, Any]:
    count, oldest = directory.unacknowledged.get(host, (0, 0.0))
    return {"on_its_way": count, "oldest": oldest or None, "waiting": directory.waiting.get(host, 0)}
