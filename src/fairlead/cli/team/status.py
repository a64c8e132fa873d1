"""`fairlead team status`: whether the relay is reached, the hosts of the team, and what is on its way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import request_daemon
from fairlead.cli.support.invocation import print_line, print_lines, stdout_screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.support.daemon_client import Document
    from fairlead.cli.support.invocation import Screen

_NOT_IN_TEAM = 3
_MAX_CLOCK_OFFSET = 2.0
"""Seconds that clocks may differ without a remark."""
_STATES = {"member": "member", "pending": "waits to be confirmed", "removed": "removed"}
_CONNECTIONS = {
    "connected": "connected for {since}",
    "connecting": "connecting",
    "unreachable": "unreachable for {since}",
    "refused": "refused for {since}",
}


def to_text(document: Document, screen: Screen) -> Iterator[str]:
    """Yield the lines of the status. `document` is the daemon's answer to `/v1/team`."""
    from fairlead.text import duration, one_line

    if not document["in_team"]:
        yield "this host is in no team; to join one: fairlead team join URL"
        return
    now = document["now"]
    pending = "" if document["state"] == "member" else f" ({_STATES[document['state']]})"
    yield f"host        {one_line(document['name'])}{pending}, key {document['fingerprint']}"
    if document["state"] == "pending":
        yield f"            confirm it on a member: fairlead team confirm {document['name']}"
    since = duration(max(0.0, now - document["since"]))
    state = _CONNECTIONS[document["connection"]].format(since=since)
    yield f"relay       {one_line(document['relay'])}: {state}"
    if document["why"]:
        yield f"            {one_line(document['why'], 400)}"
    if abs(document["offset"] or 0.0) > _MAX_CLOCK_OFFSET:
        yield f"clock       {_offset(document['offset'])} the relay's"
    they = "it waits" if document["on_its_way"] == 1 else "they wait"
    waits = f"; {they} until the relay is reached" if _waits(document) else ""
    yield f"on its way  {_packets(document['on_its_way'])}{waits}"
    yield from _event_lines(document["events"], now)
    if document["refused"]:
        yield f"refused     {_packets(document['refused'])} of hosts that are no members, or not signed by them"
    yield from _lease_lines(document)
    yield from _host_lines(document, screen)


def _event_lines(events: Document, now: float) -> Iterator[str]:
    """Yield the progress of copying events to the relay; nothing if copying was never turned on."""
    from fairlead.text import ago, one_line

    if events["mode"] != "off":
        waiting = f"{events['pending'] or 'none'} waiting"
        last = f", as of {ago(events['at'], now)}" if events["at"] else ""
        yield f"events      {events['mode']}: {events['copied']} copied, {waiting}{last}"
    if events["mode"] != "off" and events["why"]:
        yield f"            {one_line(events['why'], 400)}"
    if events["given_up"]:
        yield f"            {events['given_up']} were given up: the relay was gone for too long"


def _waits(document: Document) -> bool:
    return bool(document["on_its_way"]) and document["connection"] != "connected"


def _lease_lines(document: Document) -> Iterator[str]:
    from fairlead.text import ago

    leases = document.get("leases")
    if not leases or not (leases["ours"] or leases["others"]):
        return
    others = f"{leases['others']} of others" if leases["read"] else "those of others are not known yet"
    read = f", as of {ago(leases['read'], document['now'])}" if leases["read"] else ""
    yield f"leases      {leases['ours']} of this host, {others}{'' if document['connection'] == 'connected' else read}"


def _host_lines(document: Document, screen: Screen) -> Iterator[str]:
    from fairlead.cli.support.mail_text import table
    from fairlead.text import one_line

    rows = [
        (
            one_line(host["name"]) + (" (here)" if host["is_here"] else ""),
            _STATES[host["state"]],
            _last_contact(host),
            one_line(host["version"]),
            host["fingerprint"],
            ", ".join(_remarks(host, document["now"])),
        )
        for host in document["hosts"]
    ]
    if rows:
        yield ""
        yield from table(rows, screen)


def _last_contact(host: Document) -> str:
    from fairlead.text import duration

    if host["is_here"]:
        return ""
    if host["age"] is None:
        return "no contact yet"
    return f"last contact {duration(host['age'])} ago"


def _remarks(host: Document, now: float) -> Iterator[str]:
    from fairlead.text import duration

    if host["on_its_way"]:
        age = f" for {duration(now - host['oldest'])}" if host["oldest"] else ""
        yield f"{host['on_its_way']} on {'its' if host['on_its_way'] == 1 else 'their'} way{age}"
    if host.get("waiting"):
        yield "its mail waits until it is confirmed"
    if host["offset"] is not None and abs(host["offset"]) > _MAX_CLOCK_OFFSET:
        yield f"its clock is {_offset(host['offset'])} the relay's"


def _packets(number: int) -> str:
    return f"{number} packet{'' if number == 1 else 's'}"


def _offset(seconds: float) -> str:
    from fairlead.text import duration

    return f"{duration(abs(seconds))} {'behind' if seconds > 0 else 'ahead of'}"


@click.command(
    "status",
    cls=Command,
    examples=("fairlead team status", "fairlead team status --json"),
    exit_codes=((0, "shown"), (1, "no daemon answers"), (3, "this host is in no team")),
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> int:
    """Show the team: its relay, its hosts, and what is on its way.

    For each host: whether it is a member, when the last contact with it was, its version, the fingerprint of its key,
    and how much mail is on its way to it.
    """
    document = request_daemon("GET", "/v1/team")
    if as_json:
        print_line(json.dumps(document))
    else:
        print_lines(to_text(document, stdout_screen()))
    return 0 if document["in_team"] else _NOT_IN_TEAM
