"""Keys, and what is signed with them: every field counts, and a signature is valid for one kind and one team."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.team import (
    BadTeamSettings,
    Certificate,
    HostSnapshot,
    Packet,
    PrivateKey,
    TeamLease,
    fingerprint,
    generate_key,
    sign_certificate,
    sign_lease,
    sign_packet,
    sign_snapshot,
    verify_certificate,
    verify_lease,
    verify_packet,
    verify_snapshot,
)
from fairlead.team._keys import verify
from fairlead.team._signatures import _join

KEY = PrivateKey(bytes(range(32)))
OTHER = PrivateKey(b"o" * 32)
TEAM = "7" * 32
PACKET = Packet(origin="a", target="b", seq=3, kind="message", body=b"{}")
SNAPSHOT = HostSnapshot(host="a", kind="agents", version=3, body=b"{}")
CERTIFICATE = Certificate(host="b", name="beta", key=b"k" * 32, status="member", by="a", at=1.5)


def test_a_key_is_the_same_after_it_was_stored() -> None:
    key = generate_key()
    again = PrivateKey(key.secret)
    assert again.public == key.public
    assert verify(key.public, again.sign(b"x"), b"x")
    assert generate_key().secret != key.secret


def test_a_fingerprint_has_the_form_that_openssh_shows() -> None:
    assert KEY.public.hex() == "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"
    assert fingerprint(KEY.public) == "SHA256:Vkdap1RjR0wChd9dvyvKtz2mUTWIOem3dIGy6rEHcIw"


def test_a_key_is_not_shown() -> None:
    assert repr(KEY) == f"<PrivateKey {fingerprint(KEY.public)}>"


def test_a_key_of_another_size_is_an_error() -> None:
    with pytest.raises(BadTeamSettings, match="the key of this host has 3 bytes instead of 32"):
        PrivateKey(b"abc")


@pytest.mark.parametrize(
    "public", [b"", b"x" * 31, b"\xff" * 32, OTHER.public], ids=["none", "short", "invalid", "other"]
)
def test_another_or_an_invalid_key_verifies_nothing(public: bytes) -> None:
    assert not verify(public, KEY.sign(b"x"), b"x")
    assert not verify(KEY.public, b"", b"x")
    assert not verify(KEY.public, b"s" * 64, b"x")


def test_a_packet_is_valid_as_it_was_signed() -> None:
    signed = sign_packet(PACKET, KEY, TEAM)
    assert verify_packet(signed, KEY.public, TEAM)
    assert not verify_packet(signed, KEY.public, "8" * 32)
    assert not verify_packet(PACKET, KEY.public, TEAM)


@pytest.mark.parametrize(
    ("field", "value"), [("origin", "c"), ("target", "c"), ("seq", 4), ("kind", "receipt"), ("body", b"{} ")]
)
def test_a_packet_with_another_field_is_not_valid(field: str, value: object) -> None:
    signed = sign_packet(PACKET, KEY, TEAM)
    assert not verify_packet(msgspec.structs.replace(signed, **{field: value}), KEY.public, TEAM)


@pytest.mark.parametrize(("field", "value"), [("host", "c"), ("kind", "sessions"), ("version", 4), ("body", b"x")])
def test_a_snapshot_with_another_field_is_not_valid(field: str, value: object) -> None:
    signed = sign_snapshot(SNAPSHOT, KEY, TEAM)
    assert verify_snapshot(msgspec.structs.replace(signed, at=99.0), KEY.public, TEAM)
    assert not verify_snapshot(msgspec.structs.replace(signed, **{field: value}), KEY.public, TEAM)


@pytest.mark.parametrize(
    ("field", "value"),
    [("host", "c"), ("name", "gamma"), ("key", b"x" * 32), ("status", "removed"), ("by", "c"), ("at", 2.0)],
)
def test_a_certificate_with_another_field_is_not_valid(field: str, value: object) -> None:
    signed = sign_certificate(CERTIFICATE, KEY, TEAM)
    assert verify_certificate(signed, KEY.public, TEAM)
    assert not verify_certificate(msgspec.structs.replace(signed, **{field: value}), KEY.public, TEAM)


@pytest.mark.parametrize(
    ("field", "value"), [("id", "2"), ("host", "c"), ("project", "q"), ("until", 2.0), ("body", b"x")]
)
def test_a_lease_with_another_field_is_not_valid(field: str, value: object) -> None:
    signed = sign_lease(TeamLease(id="1", host="a", project="p", until=1.0, body=b"{}"), KEY, TEAM)
    assert verify_lease(signed, KEY.public, TEAM)
    assert not verify_lease(signed, KEY.public, "8" * 32)
    assert not verify_lease(msgspec.structs.replace(signed, **{field: value}), KEY.public, TEAM)


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_different_fields_are_never_the_same_bytes(some: list[str], others: list[str]) -> None:
    assert (_join(b"kind\0", *some) == _join(b"kind\0", *others)) == (some == others)


def test_a_signature_of_one_kind_is_not_valid_for_another() -> None:
    """The fields of a snapshot and of a packet can be alike; the kind that comes first differs."""
    fields = ("a", "b", "3")
    assert _join(b"fairlead-parcel-1\0", *fields) != _join(b"fairlead-snapshot-1\0", *fields)
