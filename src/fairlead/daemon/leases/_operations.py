"""The operations on leases over HTTP. Each takes the caller and a request, and returns a document.

They may wait for the disk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from fairlead.daemon.http._mail_documents import MailRequest
from fairlead.daemon.leases._team_take import take_leases
from fairlead.durations import DAY
from fairlead.leases import Holder, LeaseError, WantedLease, lease_path
from fairlead.mail import SCRIPT, USER, BadMessage, MailError, NotYours
from fairlead.text import duration, one_line, quoted, replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.daemon.leases._service import LeaseService
    from fairlead.daemon.mail._operations import MailCall
    from fairlead.leases import Lease

MAX_SECONDS = DAY
_DEFAULT_SECONDS = 1800.0
_MAX_PATHS = 200
_MAX_SHOWN = 5
_Paths = Annotated[tuple[Annotated[str, msgspec.Meta(max_length=4096)], ...], msgspec.Meta(max_length=_MAX_PATHS)]


class LeaseHeld(MailError):
    """Another session holds a lease on the same files."""


class TakeRequest(MailRequest, frozen=True, kw_only=True):
    """A request to take leases."""

    paths: Annotated[_Paths, msgspec.Meta(min_length=1)]
    seconds: Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)] = _DEFAULT_SECONDS
    why: Annotated[str, msgspec.Meta(max_length=500)] = ""
    shared: bool = False
    local: bool = False
    """Whether the lease is for this host only, even if the host is in a team."""


class ListRequest(MailRequest, frozen=True, kw_only=True):
    """A request to list leases."""

    here: bool = False
    """Whether to list only the leases of this host."""


class ReleaseRequest(MailRequest, frozen=True, kw_only=True):
    """A request to end leases. Without a path, all leases of the caller end."""

    paths: _Paths = ()


class LeaseOperations:
    """The operations that commands request."""

    def __init__(self, leases: LeaseService) -> None:
        self._leases = leases

    def take(self, call: MailCall, request: TakeRequest) -> dict[str, Any]:
        """Take leases on all paths, or on none. Raises `LeaseHeld` if other sessions hold conflicting leases.

        Raises another `MailError` if the request is invalid, or if a lease cannot be stored here or on the relay.
        """
        holder = _holder(call)
        try:
            wanted = [
                WantedLease(
                    path=path,
                    folder=folder,
                    shared=request.shared,
                    why=replace_surrogates(request.why).strip(),
                    until=call.now + request.seconds,
                )
                for path, folder in (lease_path(replace_surrogates(text), request.cwd) for text in request.paths)
            ]
            taken = take_leases(self._leases, wanted, holder, local=request.local)
        except LeaseError as error:
            raise BadMessage(str(error)) from None
        if taken.conflicts:
            raise LeaseHeld(self._held_text(taken.conflicts, call.now))
        return {
            "leases": [
                self._document(lease, call) | {"why_local": taken.why_local.get(lease.title, "")}
                for lease in taken.leases
            ]
        }

    def list_all(self, call: MailCall, request: ListRequest) -> dict[str, Any]:
        """Return all valid leases: first of this host, then, unless `request.here` is set, of the other hosts."""
        leases = self._leases.in_force()
        remote = self._leases.remote
        if remote and not request.here:
            leases += remote.listed(request.cwd)
        return {"leases": [self._document(lease, call) for lease in leases]}

    def release(self, call: MailCall, request: ReleaseRequest) -> dict[str, Any]:
        """End leases. Raises `NotYours` for a lease of another session, unless the caller is the user.

        Raises `BadMessage` if there is no lease on a path. In the document, `told` is whether the relay knows that the
        leases have ended.
        """
        in_force = self._leases.in_force()
        if request.paths:
            chosen = {lease.id: lease for text in request.paths for lease in self._named(call, text, request, in_force)}
        else:
            chosen = {lease.id: lease for lease in in_force if self._is_own(lease, call)}
        ended = list(chosen.values())
        self._leases.release(ended)
        team = self._leases.team
        is_synchronized = team is None or all(lease.grant is None for lease in ended) or team.synchronize()
        return {"leases": [self._document(lease, call) for lease in ended], "told": is_synchronized}

    def _named(self, call: MailCall, text: str, request: ReleaseRequest, in_force: Sequence[Lease]) -> list[Lease]:
        """Return the leases that the caller may end, on the path or with the title `text`.

        Raise `BadMessage` if there is no such lease or the path is invalid, and `NotYours` if only others may end it.
        """
        try:
            path, folder = lease_path(replace_surrogates(text), request.cwd)
        except LeaseError as error:
            raise BadMessage(str(error)) from None
        leases = [lease for lease in in_force if (lease.path, lease.folder) == (path, folder) or lease.title == text]
        own = [lease for lease in leases if self._is_own(lease, call)]
        if not leases:
            self._check_other_hosts(text, path, folder, request.cwd)
            raise BadMessage(f"there is no lease on {one_line(text)}; `fairlead lease` lists them")
        if not own and not call.caller.is_person:
            name = self._leases.name_of(leases[0].holder)
            raise NotYours(
                f'{one_line(text)} is leased by {name}, who alone can release it; ask: fairlead send {name} "…"'
            )
        return own or leases

    def _check_other_hosts(self, text: str, path: str, folder: str, cwd: str) -> None:
        """Raise `NotYours` if another host holds a lease on a path. Only the host that holds a lease can end it."""
        remote = self._leases.remote
        for lease in remote.listed(cwd) if remote else ():
            if (lease.path, lease.folder) == (path, folder) or lease.title == text:
                name = one_line(self._leases.name_of(lease.holder))
                raise NotYours(
                    f"{one_line(text)} is leased by {name}, and only the host {lease.holder.host} can release it; "
                    f'ask: fairlead send {name} "…"'
                )

    def _is_own(self, lease: Lease, call: MailCall) -> bool:
        return not lease.holder.host and self._leases.is_same_session(call.agent.session, lease.holder.session)

    def _held_text(self, conflicts: Sequence[Lease], now: float) -> str:
        lines = []
        for lease in conflicts[:_MAX_SHOWN]:
            why = f" ({quoted(lease.why, 200)})" if lease.why else ""
            kind = "shares" if lease.shared else "holds"
            name = one_line(self._leases.name_of(lease.holder))
            lines.append(f"{name} {kind} {one_line(lease.title)} for another {duration(lease.until - now)}{why}")
        if len(conflicts) > _MAX_SHOWN:
            lines.append(f"and {len(conflicts) - _MAX_SHOWN} more")
        name = one_line(self._leases.name_of(conflicts[0].holder))
        return f'nothing was leased: {"; ".join(lines)}. To ask: fairlead send {name} --request "…"'

    def _document(self, lease: Lease, call: MailCall) -> dict[str, Any]:
        return {
            "id": lease.id,
            "path": lease.title,
            "pattern": bool(lease.folder),
            "holder": self._leases.name_of(lease.holder),
            "session": lease.holder.session,
            "agent_id": lease.holder.agent_id,
            "yours": self._is_own(lease, call),
            "shared": lease.shared,
            "why": lease.why,
            "since": lease.since,
            "until": lease.until,
            "host": lease.holder.host,
            "team": None if self._leases.team is None else lease.grant is not None,
            "project": lease.grant.project if lease.grant is not None else "",
        }


def _holder(call: MailCall) -> Holder:
    """Return the caller as a holder. Raises `NotYours` for a program, because its end cannot be detected."""
    agent = call.agent
    if agent.id == USER.id:
        return Holder(name=USER.name)
    if agent.id == SCRIPT.id or not agent.session:
        raise NotYours(
            "a lease belongs to a session or to the person, and this command runs in no session and has no terminal; "
            "name one: --session ID"
        )
    return Holder(agent.session, agent.agent_id, agent.name)
