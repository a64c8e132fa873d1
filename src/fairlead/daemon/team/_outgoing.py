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


class Outgoing:
    """Pushes the parcels of this host, over one connection."""

    def __init__(self, relay: Relay, service: MessageService, roster: Roster, log: ConnectionLog) -> None:
        self._relay = relay
        self._mail = service.team
        self._roster = roster
        self._log = log
        self._pushed: dict[str, int] = {}
        """Up to which number the relay has what goes to each host."""

    def push_missing(self) -> None:
        """Push what the relay does not have: all that was never sent, and all that it lost with an old backup."""
        self._seal()
        for backlog in self._mail.targets():
            missing = set(self._relay.missing(backlog.target, backlog.first, backlog.last))
            after = backlog.first - 1
            while page := self._mail.outgoing(backlog.target, after, _PAGE):
                self._push(one for one in page if one.seq in missing or one.seq > backlog.last)
                after = page[-1].seq
            self._pushed[backlog.target] = after

    def push_new(self, *, is_posted: bool = False) -> bool:
        """Push what was put into the outbox since; `is_posted`: also beside the messages. Return whether there was."""
        has_new = self._seal() or is_posted
        for backlog in self._mail.targets() if has_new else ():
            after = max(self._pushed.get(backlog.target, 0), backlog.first - 1)
            while after < backlog.last and (page := self._mail.outgoing(backlog.target, after, _PAGE)):
                self._push(page)
                after = self._pushed[backlog.target] = page[-1].seq
        return has_new

    def _seal(self) -> bool:
        sealed = 0
        while count := self._mail.seal():
            sealed += count
        return sealed > 0

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
