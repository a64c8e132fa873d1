"""Converts leases to rows of the relay and back. The caller verifies signatures."""

from __future__ import annotations

import re
from time import time
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta

from fairlead.daemon.leases._remote import RemoteLease
from fairlead.leases import TeamGrant
from fairlead.team import TeamLease, sign_lease

if TYPE_CHECKING:
    from fairlead.daemon.team._roster import Roster
    from fairlead.leases import WantedLease

_HOLDER: Final = r"^[A-Za-z][A-Za-z0-9._-]{0,39}(/[a-z0-9][a-z0-9-]{0,60})?$"
_OUTSIDE: Final = re.compile(r"(^|/)\.\.(/|$)|//|\0")


class LeaseBody(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The data of a lease that only hosts interpret. Fields of a newer version are ignored."""

    path: Annotated[str, Meta(max_length=4096)]
    folder: Annotated[str, Meta(max_length=4096)] = ""
    """The folder that a pattern is relative to, as in `TeamGrant`; "" if `path` is no pattern."""
    holder: Annotated[str, Meta(pattern=_HOLDER)]
    shared: bool = False
    why: Annotated[str, Meta(max_length=500)] = ""


def with_relay_time(wanted: WantedLease, relay_now: float) -> WantedLease:
    """Return a lease with the end of its grant by the relay's clock. `relay_now` is the present time by that clock."""
    assert wanted.grant is not None, "it is one of the team"
    until = round(relay_now + wanted.until - time(), 3)
    return msgspec.structs.replace(wanted, grant=msgspec.structs.replace(wanted.grant, until=until))


def sign_wanted(roster: Roster, wanted: WantedLease, holder: str) -> TeamLease:
    """Return the signed row of a lease of this host. `holder` is the name of the agent."""
    own, grant = roster.membership, wanted.grant
    assert grant is not None, "it is one of the team"
    body = LeaseBody(path=grant.path, folder=grant.folder, holder=holder, shared=wanted.shared, why=wanted.why)
    row = TeamLease(
        id=grant.id, host=own.host, project=grant.project, until=grant.until, body=msgspec.json.encode(body)
    )
    return sign_lease(row, own.key, own.team)


def decode_row(row: TeamLease, host: str) -> RemoteLease | None:
    """Return a lease of another host; `None` if it is invalid, or covers files outside of the repository.

    `host` is the name of that host. The caller sets `ends`.
    """
    try:
        body = msgspec.json.decode(row.body, type=LeaseBody)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    is_pattern = bool(body.folder)
    is_folder = body.folder.startswith("/") and body.folder.endswith("/")
    if _OUTSIDE.search(body.path) or _OUTSIDE.search(body.folder) or (is_pattern and not is_folder):
        return None
    if (is_pattern and body.path.startswith("!")) or (not is_pattern and body.path.startswith("/")):
        return None
    grant = TeamGrant(id=row.id, project=row.project, path=body.path, folder=body.folder, until=row.until)
    return RemoteLease(grant=grant, host=host, holder=body.holder, shared=body.shared, why=body.why, ends=0.0)
