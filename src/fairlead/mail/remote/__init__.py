"""Mail between the hosts of a team: who is on them, what is on its way, what has arrived.

`MessageService.team` is the way in. Loaded only if this host is in a team.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.mail.remote._parcels import (
        MAX_RECEIPTS,
        MESSAGE,
        RECEIPT,
        VOID,
        AgentNews,
        HostSnapshot,
        MessageParcel,
        Origin,
        ParcelSender,
        Party,
        Receipt,
        ReceiptParcel,
        decode_message,
        decode_receipts,
        decode_snapshot,
        encode,
    )
    from fairlead.mail.remote._receiving import IncomingParcel, Received
    from fairlead.mail.remote._storage import (
        Backlog,
        Link,
        NewParcel,
        OutgoingParcel,
        ReceivedBatch,
        ReceivedMessage,
        RefusedParcel,
        TeamStorage,
    )
    from fairlead.mail.remote._team_mail import TeamMail, TransitState

__all__ = [
    "MAX_RECEIPTS",
    "MESSAGE",
    "RECEIPT",
    "VOID",
    "AgentNews",
    "Backlog",
    "HostSnapshot",
    "IncomingParcel",
    "Link",
    "MessageParcel",
    "NewParcel",
    "Origin",
    "OutgoingParcel",
    "ParcelSender",
    "Party",
    "Receipt",
    "ReceiptParcel",
    "Received",
    "ReceivedBatch",
    "ReceivedMessage",
    "RefusedParcel",
    "TeamMail",
    "TeamStorage",
    "TransitState",
    "decode_message",
    "decode_receipts",
    "decode_snapshot",
    "encode",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_parcels": (
            "AgentNews",
            "HostSnapshot",
            "MAX_RECEIPTS",
            "MESSAGE",
            "MessageParcel",
            "Origin",
            "ParcelSender",
            "Party",
            "RECEIPT",
            "Receipt",
            "ReceiptParcel",
            "VOID",
            "decode_message",
            "decode_receipts",
            "decode_snapshot",
            "encode",
        ),
        "_receiving": ("IncomingParcel", "Received"),
        "_storage": (
            "Backlog",
            "Link",
            "NewParcel",
            "OutgoingParcel",
            "ReceivedBatch",
            "ReceivedMessage",
            "RefusedParcel",
            "TeamStorage",
        ),
        "_team_mail": ("TeamMail", "TransitState"),
    },
)
