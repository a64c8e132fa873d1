"""`fairlead team status`: what it shows, and what it does not claim to know."""

from __future__ import annotations

from typing import Any

from fairlead.cli.support.invocation import Screen
from fairlead.cli.team.status import to_text
from fairlead.daemon.team._directory import TeamDirectory
from fairlead.daemon.team._documents import status_document
from fairlead.daemon.team._state import ConnectionLog
from fairlead.daemon.team.history._copier import CopyStatus

NOW = 1_763_208_000.0
HOST = {
    "name": "beta",
    "state": "member",
    "fingerprint": "k2",
    "is_here": False,
    "age": None,
    "version": "",
    "offset": None,
    "on_its_way": 0,
    "oldest": None,
}


def document(**fields: Any) -> dict[str, Any]:
    copies = {"mode": "off", "copied": 0, "pending": 0, "given_up": 0, "at": None, "why": ""}
    return {
        "in_team": True,
        "now": NOW,
        "name": "alpha",
        "fingerprint": "k1",
        "state": "member",
        "refused": 0,
        "relay": "postgresql://db/team",
        "connection": "connecting",
        "since": NOW,
        "why": "",
        "offset": None,
        "on_its_way": 0,
        "events": copies,
        "hosts": [],
        **fields,
    }


def lines(**fields: Any) -> list[str]:
    return list(to_text(document(**fields), Screen(None, has_colour=False)))


def test_of_a_relay_that_was_never_read_nothing_is_claimed() -> None:
    leases = {"ours": 2, "others": 0, "read": None}
    assert lines(leases=leases, hosts=[HOST]) == [
        "host        alpha, key k1",
        "relay       postgresql://db/team: connecting",
        "on its way  0 packets",
        "leases      2 of this host, those of others are not known yet",
        "",
        "beta  member  no contact yet  k2",
    ]


def test_what_is_known_has_its_age() -> None:
    leases = {"ours": 0, "others": 3, "read": NOW - 90}
    host = {**HOST, "age": 12.0, "on_its_way": 1, "oldest": NOW - 60}
    shown = lines(connection="unreachable", since=NOW - 60, on_its_way=1, refused=1, leases=leases, hosts=[host])
    assert shown[1:] == [
        "relay       postgresql://db/team: unreachable for 1m00s",
        "on its way  1 packet; it waits until the relay is reached",
        "refused     1 packet of hosts that are no members, or not signed by them",
        "leases      0 of this host, 3 of others, as of 1m30s ago",
        "",
        "beta  member  last contact 12s ago  k2  1 on its way for 1m00s",
    ]
    assert lines(hosts=[{**HOST, "on_its_way": 2}])[-1].endswith("2 on their way")


def test_the_document_has_no_zero_for_what_is_not_known() -> None:
    log = ConnectionLog()

    def known() -> tuple[Any, ...]:
        found = status_document(log, None, TeamDirectory(), CopyStatus(), NOW)
        return found["offset"], found["round_trip"], found["read"], found["events"]["at"]

    assert known() == (None, None, None, None)
    log.note_connected("postgresql://db/team", "0002", 0.0, 0.001)
    log.last_read = NOW
    assert known() == (0.0, 0.001, NOW, None)
