"""Mail between the hosts of a team: their agents, and the packets from and to them.

`MessageService.team` is the entry point. Imported only if this host is in a team.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lazy import lazy_exports

if TYPE_CHECKING:
    from fairlead.mail.remote._packets import (
        MAX_RECEIPTS,
        MESSAGE,
        RECEIPT,
        VOID,
        AgentAddress,
        AgentInfo,
        AgentsAndTopics,
        DeliveryReceipt,
        MessagePacket,
        Origin,
        PacketSender,
        ReceiptPacket,
        decode_message,
        decode_receipts,
        decode_snapshot,
        encode,
    )
    from fairlead.mail.remote._receiving import IncomingPacket, ReceiveResult
    from fairlead.mail.remote._storage import (
        Backlog,
        Link,
        NewPacket,
        OutgoingPacket,
        ReceivedBatch,
        ReceivedMessage,
        RefusedPacket,
        TeamStorage,
    )
    from fairlead.mail.remote._team_mail import TeamMail

__all__ = [
    "MAX_RECEIPTS",
    "MESSAGE",
    "RECEIPT",
    "VOID",
    "AgentAddress",
    "AgentInfo",
    "AgentsAndTopics",
    "Backlog",
    "DeliveryReceipt",
    "IncomingPacket",
    "Link",
    "MessagePacket",
    "NewPacket",
    "Origin",
    "OutgoingPacket",
    "PacketSender",
    "ReceiptPacket",
    "ReceiveResult",
    "ReceivedBatch",
    "ReceivedMessage",
    "RefusedPacket",
    "TeamMail",
    "TeamStorage",
    "decode_message",
    "decode_receipts",
    "decode_snapshot",
    "encode",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "_packets": (
            "AgentInfo",
            "AgentsAndTopics",
            "MAX_RECEIPTS",
            "MESSAGE",
            "MessagePacket",
            "Origin",
            "PacketSender",
            "AgentAddress",
            "RECEIPT",
            "DeliveryReceipt",
            "ReceiptPacket",
            "VOID",
            "decode_message",
            "decode_receipts",
            "decode_snapshot",
            "encode",
        ),
        "_receiving": ("IncomingPacket", "ReceiveResult"),
        "_storage": (
            "Backlog",
            "Link",
            "NewPacket",
            "OutgoingPacket",
            "ReceivedBatch",
            "ReceivedMessage",
            "RefusedPacket",
            "TeamStorage",
        ),
        "_team_mail": ("TeamMail",),
    },
)
