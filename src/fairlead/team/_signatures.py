"""Signs and verifies packets, snapshots, certificates, leases, and the events and sessions of the history.

The signed bytes start with the kind of the value and the id of the team, so that a signature is valid for no other
kind and in no other team. The length of each field is written before it.
"""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.team._keys import verify

if TYPE_CHECKING:
    from fairlead.team._keys import PrivateKey
    from fairlead.team._types import Certificate, HostSnapshot, Packet, TeamLease
    from fairlead.team.history import TeamEvent, TeamSession

_PACKET: Final = b"fairlead-parcel-1\0"
_SNAPSHOT: Final = b"fairlead-snapshot-1\0"
_CERTIFICATE: Final = b"fairlead-certificate-1\0"
_LEASE: Final = b"fairlead-lease-1\0"
_EVENT: Final = b"fairlead-event-1\0"
_SESSION: Final = b"fairlead-session-1\0"


def sign_packet(packet: Packet, key: PrivateKey, team: str) -> Packet:
    """Return a packet with the signature by `key`, the key of its origin."""
    return msgspec.structs.replace(packet, signature=key.sign(_packet_bytes(packet, team)))


def verify_packet(packet: Packet, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed a packet for this team."""
    return verify(public, packet.signature, _packet_bytes(packet, team))


def sign_snapshot(snapshot: HostSnapshot, key: PrivateKey, team: str) -> HostSnapshot:
    """Return a snapshot with the signature by `key`, the key of its host."""
    return msgspec.structs.replace(snapshot, signature=key.sign(_snapshot_bytes(snapshot, team)))


def verify_snapshot(snapshot: HostSnapshot, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed a snapshot for this team.

    `at` is not signed, because the relay sets it.
    """
    return verify(public, snapshot.signature, _snapshot_bytes(snapshot, team))


def sign_certificate(certificate: Certificate, key: PrivateKey, team: str) -> Certificate:
    """Return a certificate with the signature by `key`, the key of the host in its field `by`."""
    return msgspec.structs.replace(certificate, signature=key.sign(_certificate_bytes(certificate, team)))


def verify_certificate(certificate: Certificate, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed a certificate for this team."""
    return verify(public, certificate.signature, _certificate_bytes(certificate, team))


def sign_lease(lease: TeamLease, key: PrivateKey, team: str) -> TeamLease:
    """Return a lease with the signature by `key`, the key of its host."""
    return msgspec.structs.replace(lease, signature=key.sign(_lease_bytes(lease, team)))


def verify_lease(lease: TeamLease, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed a lease for this team."""
    return verify(public, lease.signature, _lease_bytes(lease, team))


def sign_event(event: TeamEvent, key: PrivateKey, team: str) -> TeamEvent:
    """Return an event with the signature by `key`, the key of its host."""
    return msgspec.structs.replace(event, signature=key.sign(_event_bytes(event, team)))


def verify_event(event: TeamEvent, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed an event for this team."""
    return verify(public, event.signature, _event_bytes(event, team))


def sign_session(session: TeamSession, key: PrivateKey, team: str) -> TeamSession:
    """Return a session with the signature by `key`, the key of its host."""
    return msgspec.structs.replace(session, signature=key.sign(_session_bytes(session, team)))


def verify_session(session: TeamSession, public: bytes, team: str) -> bool:
    """Return whether the host with the key `public` signed a session for this team."""
    return verify(public, session.signature, _session_bytes(session, team))


def _event_bytes(event: TeamEvent, team: str) -> bytes:
    named = (
        event.host,
        event.id,
        struct.pack(">d", event.at),
        event.session,
        event.event,
        event.verdict,
        str(event.stage),
    )
    return _join(_EVENT, team, *named, event.text, hashlib.sha256(event.body).digest())


def _session_bytes(session: TeamSession, team: str) -> bytes:
    times = struct.pack(">dd", session.started, session.last)
    body = hashlib.sha256(session.body).digest()
    return _join(_SESSION, team, session.host, session.session, times, session.folder, str(session.version), body)


def _packet_bytes(packet: Packet, team: str) -> bytes:
    body = hashlib.sha256(packet.body).digest()
    return _join(_PACKET, team, packet.origin, packet.target, str(packet.seq), packet.kind, body)


def _snapshot_bytes(snapshot: HostSnapshot, team: str) -> bytes:
    body = hashlib.sha256(snapshot.body).digest()
    return _join(_SNAPSHOT, team, snapshot.host, snapshot.kind, str(snapshot.version), body)


def _lease_bytes(lease: TeamLease, team: str) -> bytes:
    body, until = hashlib.sha256(lease.body).digest(), struct.pack(">d", lease.until)
    return _join(_LEASE, team, lease.host, lease.id, lease.project, until, body)


def _certificate_bytes(certificate: Certificate, team: str) -> bytes:
    at = struct.pack(">d", certificate.at)
    return _join(
        _CERTIFICATE, team, certificate.host, certificate.name, certificate.key, certificate.status, certificate.by, at
    )


def _join(domain: bytes, *fields: str | bytes) -> bytes:
    values = [field.encode("utf-8", "surrogatepass") if isinstance(field, str) else field for field in fields]
    return domain + b"".join(struct.pack(">I", len(value)) + value for value in values)
