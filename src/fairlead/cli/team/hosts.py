"""`fairlead team confirm`, `remove` and `leave`: change the members of a team. Only a person can run them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import request_daemon
from fairlead.cli.support.invocation import print_line
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.errors import FairleadError, UsageError
from fairlead.ipc import RequestRefused
from fairlead.text import one_line

if TYPE_CHECKING:
    from fairlead.cli.support.daemon_client import Document

_TIMEOUT = 30.0


class TeamRefused(FairleadError):
    """The daemon, or the team's relay, refused a change of the team."""


def find_host(document: Document, name: str, states: tuple[str, ...]) -> Document:
    """Return the host in a status document with this name and one of the states, or raise `UsageError`."""
    matching = [host for host in document["hosts"] if host["name"] == name]
    fitting = [host for host in matching if host["state"] in states]
    if fitting:
        return dict(fitting[0])
    if matching:
        raise UsageError(f"{name} is {_STATES[matching[0]['state']]} already")
    names = ", ".join(host["name"] for host in document["hosts"] if not host["is_here"]) or "none"
    raise UsageError(f"the team has no other host {name!r}; its other hosts: {names}")


_STATES = {"member": "a member", "removed": "removed", "pending": "waiting to be confirmed"}


@click.command(
    "confirm",
    cls=Command,
    arguments=(("NAME", "a host that waits, see: fairlead team status"),),
    examples=("fairlead team confirm laptop",),
    exit_codes=((0, "confirmed"), (1, "nothing was changed; stderr says why")),
)
@click.argument("name", metavar="NAME")
@yes_option
def confirm(*, name: str, yes: bool) -> int:
    """Confirm that a host is a member of the team.

    Shows the fingerprint of its key: compare it with what `fairlead team status` shows on that host. From then on its
    mail is delivered here and on all other members.
    """
    refuse_below_session("confirm a host")
    host = find_host(_status(), name, ("pending",))
    print_line(f"{one_line(host['name'])} has the key {host['fingerprint']}")
    require_person(f"make {host['name']} a member of the team", assume_yes=yes)
    _change("confirm", {"name": name, "fingerprint": host["fingerprint"]})
    print_line(f"{name} is a member of the team now")
    return 0


@click.command(
    "remove",
    cls=Command,
    arguments=(("NAME", "a host of the team, see: fairlead team status"),),
    examples=("fairlead team remove old-server",),
    exit_codes=((0, "removed"), (1, "nothing was changed; stderr says why")),
)
@click.argument("name", metavar="NAME")
@yes_option
def remove(*, name: str, yes: bool) -> int:
    """Remove a host from the team permanently.

    Mail on its way to the host bounces, mail from it is refused, and the history that it has copied is deleted from the
    relay. Its name becomes free. It can join again only as a new host: `fairlead team join --new-identity`.
    """
    refuse_below_session("remove a host")
    host = find_host(_status(), name, ("member", "pending"))
    if host["is_here"]:
        raise UsageError("this is the host itself; to leave the team: fairlead team leave")
    require_person(f"remove {host['name']} ({host['fingerprint']}) from the team permanently", assume_yes=yes)
    _change("remove", {"name": name, "fingerprint": host["fingerprint"]})
    print_line(f"{name} was removed from the team")
    return 0


@click.command(
    "leave",
    cls=Command,
    examples=("fairlead team leave",),
    exit_codes=((0, "left, or it was in no team"), (1, "nothing was changed; stderr says why")),
)
@click.option("--force", is_flag=True, help="Leave although messages are on their way; they bounce.")
@yes_option
def leave(*, force: bool, yes: bool) -> int:
    """Leave the team.

    The key of this host is deleted, and the other hosts are notified. Mail that has arrived stays. Refuses while
    messages are on their way to other hosts, unless `--force` is given.
    """
    refuse_below_session("leave the team")
    document = request_daemon("GET", "/v1/team")
    if not document["in_team"]:
        print_line("this host is in no team")
        return 0
    waiting = document["on_its_way"]
    if waiting and not force:
        raise UsageError(f"{in_transit_text(document)}; wait until they have arrived; with --force they bounce")
    bounce = f", bounce {waiting} packets" if waiting else ""
    require_person(f"leave the team as {document['name']}{bounce}, and delete the key of this host", assume_yes=yes)
    is_announced = _change("leave", {})["told"]
    print_line(f"{document['name']} has left the team")
    if not is_announced:
        print_line(
            f"The relay could not be reached; on another host of the team, run: fairlead team remove {document['name']}"
        )
    return 0


def in_transit_text(document: Document) -> str:
    """Return one line with how many packets are on their way, in all and to each host."""
    rows = [f"{host['on_its_way']} to {host['name']}" for host in document["hosts"] if host["on_its_way"]]
    return f"{document['on_its_way']} packets are on their way ({', '.join(rows)})"


def _status() -> Document:
    document = _change("refresh", {})
    if not document["in_team"]:
        raise UsageError("this host is in no team; run: fairlead team join URL")
    return document


def _change(what: str, fields: dict[str, Any]) -> Document:
    try:
        document: Document = request_daemon("POST", f"/v1/team/{what}", fields, timeout=_TIMEOUT)
    except RequestRefused as error:
        raise TeamRefused(error.text) from None
    return document
