"""From the outbox of the mail to the relay: in order, again if the relay has lost it, until the target has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.team import Parcel, sign_parcel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.mail import MessageService
    from fairlead.mail.remote import OutgoingParcel
    from fairlead.team.relay import Relay

_PAGE = 200
_SEALED_AT_ONCE = 1000


class Outgoing:
    """Pushes the parcels of this host, over one connection."""

    def __init__(self, relay: Relay, service: MessageService, roster: Roster, log: ConnectionLog) -> None:
        self._relay = relay
        self._mail = service.team
        self._roster = roster
        self._log = log
        self._pushed = 0
        """The id up to which the relay has everything."""

    def push_missing(self) -> None:
        """Push what the relay does not have: all that was never sent, and all that it lost with an old backup."""
        self._seal()
        backlogs = self._mail.targets()
        for backlog in backlogs:
            missing = set(self._relay.missing(backlog.target, backlog.first, backlog.last))
            after = backlog.first - 1
            while after < backlog.last and (page := self._mail.outgoing(backlog.target, after, _PAGE)):
                self._push(one for one in page if one.seq in missing)
                after = page[-1].seq
        self._pushed = max([self._pushed, *(one.last_id for one in backlogs)])

    def push_new(self) -> bool:
        """Push what was put into the outbox since. Return whether there was something."""
        self._seal()
        before = self._pushed
        while page := self._mail.outgoing(None, self._pushed, _PAGE):
            self._push(page)
            self._pushed = page[-1].id
        return self._pushed > before

    def _seal(self) -> None:
        while self._mail.seal(_SEALED_AT_ONCE) >= _SEALED_AT_ONCE:
            pass

    def note_progress(self) -> bool:
        """Remove from the outbox what its targets have. Return whether there was something."""
        return bool(self._mail.acknowledged(self._relay.progress()))

    def _push(self, parcels: Iterable[OutgoingParcel]) -> None:
        own = self._roster.membership
        key = own.key
        signed = [
            sign_parcel(
                Parcel(origin=own.host, target=one.target, seq=one.seq, kind=one.kind, body=one.body), key, own.team
            )
            for one in parcels
        ]
        if signed:
            self._relay.push(signed)
            self._log.pushed += len(signed)
