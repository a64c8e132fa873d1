"""`fairlead team join`: makes this host a member of a team, or the first one of a new team."""

from __future__ import annotations

import os
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.daemon_client import request_daemon
from fairlead.cli.support.invocation import print_error, print_line, print_lines
from fairlead.cli.support.person import refuse_below_session, require_person, yes_option
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.team import Certificate, Host, Membership, RelaySource, Welcome
    from fairlead.team.relay import Relay


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    url: str = ""
    name: str = ""
    url_file: str = ""
    service: str = ""
    fingerprint: str = ""
    new_identity: bool = False
    yes: bool = False


def source_of(options: Options, before: Membership | None, variable: str) -> RelaySource:
    """Return the source of the relay's URL: that of the options, else of the membership `before`, else `variable`.

    `variable` is the value of `PGSERVICE`, which names a service. Raise `UsageError` if the options name more than one
    source, or if there is none.
    """
    from fairlead.team import RelaySource

    given = [value for value in (options.url, options.url_file, options.service) if value]
    if len(given) > 1:
        raise UsageError("team join: give one of URL, --url-file and --service")
    if options.url_file:
        return RelaySource(file=os.path.abspath(options.url_file))
    if options.url:
        return RelaySource(url=options.url)
    if options.service:
        return RelaySource(service=options.service)
    if before is not None:
        return before.relay
    if variable:
        return RelaySource(service=variable)
    raise UsageError("team join: where is the relay? Give postgresql://USER@HOST/DATABASE, --url-file or --service")


def members_of(hosts: Sequence[Host], certificates: Sequence[Certificate]) -> list[Host]:
    """Return the members according to the relay, sorted by name. They are trusted once a person has compared keys."""
    removed = {cert.host for cert in certificates if cert.status == "removed"}
    members = {(cert.host, cert.key) for cert in certificates if cert.status == "member" and cert.host not in removed}
    return sorted((host for host in hosts if (host.id, host.key) in members), key=lambda host: host.name)


def member_lines(members: Sequence[Host]) -> Iterator[str]:
    """Yield a heading, and a line for each member with its fingerprint. `members` must not be empty."""
    from fairlead.team import fingerprint
    from fairlead.text import one_line

    yield "The members of this team. Compare at least one of them with what `fairlead team status` shows there:"
    width = max(len(host.name) for host in members)
    for host in members:
        yield f"  {one_line(host.name):<{width}}  {fingerprint(host.key)}"


@click.command(
    "join",
    cls=Command,
    arguments=(("URL", "of the relay: postgresql://USER@HOST/DATABASE; a password in it is kept in a private file"),),
    examples=(
        "fairlead team join postgresql://fairlead@db.example.com/team --name laptop",
        "fairlead team join --url-file ~/.config/team-url --fingerprint SHA256:…",
        "fairlead team join --service team",
    ),
    exit_codes=((0, "joined"), (1, "not joined; stderr says why")),
)
@click.argument("url", metavar="[URL]", default="")
@click.option("--name", metavar="HOST", default="", help="The name of this host in the team (default: the machine's).")
@click.option(
    "--url-file", metavar="FILE", default="", type=click.Path(), help="Read the URL from this file at each connection."
)
@click.option("--service", metavar="NAME", default="", help="A service of ~/.pg_service.conf (default: $PGSERVICE).")
@click.option("--fingerprint", metavar="F", default="", help="Join only if a member of the team has this key.")
@click.option("--new-identity", is_flag=True, help="Join as a new host: this machine is a copy of a member.")
@yes_option
def join(**given: object) -> int:
    """Join a team of hosts, or found one.

    The first host founds the team. Each later one shows the keys of its members, and waits until a person confirms it
    on one of them with `fairlead team confirm`. Only a person can do this.
    """
    options = Options(**given)  # type: ignore[arg-type]
    refuse_below_session("join a team")
    from fairlead.team import check_host_name, default_host_name, load_membership, save_membership
    from fairlead.team.relay import open_relay

    before = load_membership()
    if before is not None and not options.new_identity:
        raise UsageError(f"this host is in a team already, as {before.name}; to join another: fairlead team leave")
    source = source_of(options, before, os.environ.get("PGSERVICE", ""))
    name = check_host_name(options.name or default_host_name())
    print_error(f"connecting to {source.describe()} …")
    relay = open_relay(source.read_url())
    try:
        if before is not None:
            request_daemon("POST", "/v1/team/forget")
        membership, is_founder = _register(relay, name, source, options)
        save_membership(membership)
    finally:
        relay.close()
    request_daemon("POST", "/v1/team/reload")
    print_lines(joined_lines(membership, is_founder=is_founder))
    return 0


def _register(relay: Relay, name: str, source: RelaySource, options: Options) -> tuple[Membership, bool]:
    """Register this host, ask a person to confirm, and return its membership and whether it founds the team.

    The identity is written to disk before the relay knows it, so that a second attempt uses the same one. If the person
    does not confirm, or an error occurs, the relay forgets this host, so that its name is free for another attempt.
    """
    from fairlead import __version__
    from fairlead.team import RelayUnreachable, TeamError, prepare_hello, remove_membership

    abandoned = _save_identity(name, source)
    unfinished, hello = prepare_hello(__version__)
    try:
        welcome = relay.connect(hello)
    except TeamError as error:
        if not isinstance(error, RelayUnreachable):  # if it was unreachable, it may know the host already
            remove_membership()
        raise
    try:
        if abandoned:
            relay.delete_host(abandoned)
        return _confirm_membership(relay, welcome, unfinished, options)
    except BaseException:
        with suppress(TeamError):
            relay.delete_host(unfinished.host)
            remove_membership()
        raise


def _save_identity(name: str, source: RelaySource) -> str:
    """Save a new identity, or keep the one of an earlier attempt to join under this name.

    Return the host id of an earlier attempt under another name, which is abandoned; "" if there was none.
    """
    from fairlead.team import Membership, generate_key, load_membership, new_host_id, save_membership

    before = load_membership(unfinished=True)
    if before is not None and before.name == name:
        save_membership(msgspec.structs.replace(before, relay=source))
        return ""
    key = generate_key().secret
    save_membership(Membership(team="", host=new_host_id(), name=name, relay=source, private_key=key))
    return before.host if before is not None else ""


def joined_lines(own: Membership, *, is_founder: bool) -> Iterator[str]:
    """Yield the result of joining, with the key of this host (`own`), and the next step."""
    from fairlead.team import fingerprint

    yield f"{'founded a team' if is_founder else 'joined'} as {own.name}, with the key"
    yield f"  {fingerprint(own.key.public)}"
    if is_founder:
        yield "On each other host run: fairlead team join with the same URL; then here: fairlead team confirm NAME"
    else:
        yield f"No mail is delivered until a person runs, on a member: fairlead team confirm {own.name}"


def _confirm_membership(
    relay: Relay, welcome: Welcome, unfinished: Membership, options: Options
) -> tuple[Membership, bool]:
    """Have a person confirm that this host founds the team, or trusts its members and joins.

    Return the complete membership, and whether this host founds the team. Raise `PersonRequired` without the
    confirmation, and `RelayRefused` if the relay's members are not as expected.
    """
    from fairlead.team import Anchor

    hosts, certificates = relay.hosts(), relay.certificates()
    # The relay has a team without hosts if its first host began to join, but no person confirmed it.
    is_first = welcome.is_founder or (not certificates and all(host.id == unfinished.host for host in hosts))
    anchors: tuple[Anchor, ...]
    if is_first:
        anchors = (Anchor(host=unfinished.host, name=unfinished.name, key=unfinished.key.public),)
        require_person(f"found a team on {relay.location}, as {unfinished.name}", assume_yes=options.yes)
        _certify_itself(relay, welcome, unfinished)
    else:
        members = members_of(hosts, certificates)
        _check_members(members, [host.name for host in hosts if host.id != unfinished.host], options.fingerprint)
        print_lines(member_lines(members))
        require_person(f"trust these hosts, and join their team as {unfinished.name}", assume_yes=options.yes)
        anchors = tuple(Anchor(host=host.id, name=host.name, key=host.key) for host in members)
    return msgspec.structs.replace(unfinished, team=welcome.team, anchors=anchors, joined=time()), is_first


def _check_members(members: Sequence[Host], names: Sequence[str], wanted: str) -> None:
    from fairlead.team import RelayRefused, fingerprint

    if not members:
        listed = f"; to finish joining there, run again: fairlead team join, on {' or '.join(names)}" if names else ""
        raise RelayRefused(f"the relay lists no member of the team{listed}")
    if wanted and wanted not in {fingerprint(host.key) for host in members}:
        keys = ", ".join(f"{host.name} {fingerprint(host.key)}" for host in members)
        raise RelayRefused(f"no member of the team has the key {wanted}, so it was not joined; its members: {keys}")


def _certify_itself(relay: Relay, welcome: Welcome, own: Membership) -> None:
    """Publish the first host's certificate for itself, by which later hosts learn which member can confirm them.

    Then print that the relay had no team.
    """
    from fairlead.team import Certificate, sign_certificate

    statement = Certificate(
        host=own.host, name=own.name, key=own.key.public, status="member", by=own.host, at=round(time(), 3)
    )
    relay.add_certificate(sign_certificate(statement, own.key, welcome.team))
    print_line(f"{relay.location} has no team yet")
