"""From the relay to the mail: verified, in order, acknowledged once it is on this host's disk."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from fairlead.mail.remote import IncomingParcel, Received
from fairlead.team import verify_parcel

if TYPE_CHECKING:
    from fairlead.daemon.team._directory import TeamDirectory
    from fairlead.daemon.team._notices import TeamNotices
    from fairlead.daemon.team._roster import Roster
    from fairlead.daemon.team._state import ConnectionLog
    from fairlead.daemon.team.answers._remote_answers import RemoteAnswers
    from fairlead.mail import MessageService
    from fairlead.team import Parcel
    from fairlead.team.relay import Relay

_PAGE = 200


class Incoming:
    """Takes the parcels to this host, over one connection."""

    def __init__(  # noqa: PLR0913, PLR0917 - the parts of the service
        self,
        relay: Relay,
        service: MessageService,
        roster: Roster,
        directory: TeamDirectory,
        notices: TeamNotices,
        log: ConnectionLog,
        answers: RemoteAnswers,
    ) -> None:
        self._relay = relay
        self._service = service
        self._roster = roster
        self._directory = directory
        self._notices = notices
        self._log = log
        self._answers = answers

    def take(self) -> bool:
        """Take all parcels that can be applied. Return whether there were some."""
        skipped: set[str] = set()
        count = 0
        while parcels := self._relay.pull(skip=sorted(skipped), limit=_PAGE):
            for origin, group in groupby(parcels, key=lambda parcel: parcel.origin):
                if not self._take_from(origin, list(group)):
                    skipped.add(origin)
            count += len(parcels)
        self._directory.waiting = {host: 1 for host in skipped if self._roster.state(host) == "pending"}
        return count > 0

    def _take_from(self, origin: str, parcels: list[Parcel]) -> bool:
        """Take the parcels of one host. Return whether more of it can be taken."""
        state = self._roster.state(origin)
        if state != "removed" and (origin not in self._roster.hosts or state == "pending"):
            self._roster.read(self._relay)  # it may have been confirmed a moment ago
            self._directory.follow_roster(self._service, self._roster)
            state = self._roster.state(origin)
        if state == "removed":
            return self._refuse(origin, parcels, "That host was removed from the team.")
        if origin not in self._roster.hosts:
            return self._refuse(origin, parcels, "It is of a host that the team does not know.")
        key = self._roster.trust.key(origin)
        if state == "pending" or key is None:
            return False
        team = self._roster.membership.team
        genuine = []
        for parcel in parcels:
            if not verify_parcel(parcel, key, team):
                break
            genuine.append(parcel)
        applied = self._apply(origin, genuine)
        if len(genuine) < len(parcels):
            self._refuse(origin, [parcels[len(genuine)]], "It was not signed with the key of that host.")
        return applied and len(genuine) == len(parcels)

    def _apply(self, origin: str, parcels: list[Parcel]) -> bool:
        """Apply parcels of a member. Return whether all were: a gap waits until its host has pushed again."""
        if not parcels:
            return True
        shift = self._directory.clock_shift(origin, self._log.offset)
        self._answers.forget_uncommitted()
        received = self._service.team.receive(
            [msgspec.structs.replace(_incoming(one), clock_shift=shift) for one in parcels]
        )
        self._answers.handle_committed()
        done = [one.seq for one, what in zip(parcels, received, strict=True) if what is not Received.GAP]
        if done:
            self._service.team.sync()
            self._relay.acknowledge({origin: max(done)})
        self._log.received += received.count(Received.APPLIED)
        self._log.repeats += received.count(Received.REPEATED)
        return len(done) == len(parcels)

    def _refuse(self, origin: str, parcels: list[Parcel], why: str) -> bool:
        """Set parcels aside, delete them from the relay, and tell the person once."""
        self._service.team.keep_aside([_incoming(one) for one in parcels], why)
        self._service.team.sync()
        self._relay.refuse(origin, parcels[-1].seq)
        self._log.refused += len(parcels)
        self._notices.tell_refused(self._service, origin, self._roster.name(origin), why)
        return True


def _incoming(parcel: Parcel) -> IncomingParcel:
    return IncomingParcel(origin=parcel.origin, seq=parcel.seq, kind=parcel.kind, body=parcel.body)
