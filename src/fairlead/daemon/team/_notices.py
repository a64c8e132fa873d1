"""Notifies the user of what only a person can resolve: a pending host, refused packets, an identity that is used twice.

Each notice is a message from Fairlead to the user. Its idempotency key prevents a second one, even after a restart.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from fairlead.mail import FAIRLEAD, USER, Draft, MailError
from fairlead.team import HostCloned, RelayTooNew, fingerprint

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.team._roster import Roster
    from fairlead.mail import MessageService


class TeamNotices:
    """Sends the notices. For the thread of the team."""

    def __init__(self, errors: ErrorLog) -> None:
        self._errors = errors
        self._sent_keys: set[str] = set()

    def notify_pending(self, service: MessageService, roster: Roster) -> None:
        """Notify of hosts that want to join, if this host can confirm them."""
        if roster.state(roster.membership.host) != "member":
            return
        for host in roster.others("pending"):
            self._send(
                service,
                f"pending {host.id}",
                f"{host.name} wants to join your team",
                f"Its key is {fingerprint(host.key)}. Compare that with what `fairlead team status` shows on "
                f"{host.name}, then run: fairlead team confirm {host.name}\nUntil then nothing of it is delivered.",
            )

    def notify_refused(self, service: MessageService, host: str, name: str, why: str) -> None:
        """Notify that this host has refused packets of another one. `why` is a sentence."""
        self._send(
            service,
            f"refused {host} {why}",
            f"Mail of {name} was refused",
            f"{why} It was not delivered. `fairlead team status` shows the hosts of your team.",
        )

    def notify_refusal(self, service: MessageService, error: Exception) -> None:
        """Notify that the relay refuses this host."""
        if isinstance(error, HostCloned):
            subject = "Another machine has the identity of this host"
            advice = "If this machine is the copy, run here: fairlead team join URL --new-identity"
        elif isinstance(error, RelayTooNew):
            subject, advice = "Your team needs a newer Fairlead", "Upgrade Fairlead on this host."
        else:
            subject, advice = "Your team's relay refuses this host", "`fairlead team status` shows the state."
        self._send(
            service, f"{type(error).__name__} {error}", subject, f"{error}\n{advice}\nMail to other hosts waits."
        )

    def notify_given_up(self, service: MessageService, count: int, since: float) -> None:
        """Notify that events were not copied, once for each loss of the relay.

        `count` is the number of events given up since copying began, `since` the time at which the relay was lost.
        """
        self._send(
            service,
            f"given up {since}",
            "Events were not copied to your team",
            f"The team's relay was gone for so long that {count} events of this host, the oldest, will not be in the "
            "history of the other hosts. On this host they are. `fairlead team status` has the number.",
        )

    def _send(self, service: MessageService, what: str, subject: str, body: str) -> None:
        key = f"team-{hashlib.sha256(what.encode()).hexdigest()[:32]}"
        if key in self._sent_keys:
            return
        try:
            service.send(FAIRLEAD, Draft(to=(USER.name,), subject=subject, body=body, key=key))
            self._sent_keys.add(key)
        except MailError as error:
            self._errors.report(f"you are not notified about your team: {error}")
