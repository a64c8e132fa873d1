"""TLS by the rules of the URL: notifications pass through it; a certificate of another name or issuer is refused."""

from __future__ import annotations

import datetime as dt
import os
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.x509.oid import NameOID
from team.postgres_server import PostgresServer, new_server, ordinary_user
from team.relay_hosts import Relays, packet

from fairlead.team import RelayRefused

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def write_certificate(folder: Path, name: str) -> Path:
    """Write a self-signed certificate and its key for the server, and return the certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, SHA256())
    )
    form = serialization.PrivateFormat.PKCS8
    secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
    (folder / "server.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(secret)
    (folder / "server.key").chmod(0o600)
    if user := ordinary_user():
        for file in ("server.crt", "server.key"):
            os.chown(folder / file, user.pw_uid, user.pw_gid)
    return folder / "server.crt"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with new_server() as server:
        write_certificate(server.data, "localhost")
        with (server.data / "postgresql.auto.conf").open("a") as file:
            file.write("ssl = on\n")
        try:
            server.restart()
        except RuntimeError as error:
            assert "SSL is not supported by this build" in str(error)  # noqa: PT017 - the server's log
            pytest.skip(f"the PostgreSQL in {server.programs} was built without TLS")
        yield server


@pytest.fixture
def relays(server: PostgresServer) -> Iterator[Relays]:
    with Relays(server.url(server.create_database(), tcp=True)) as relays:
        yield relays


def test_the_bell_rings_through_tls(server: PostgresServer, relays: Relays) -> None:
    url = relays.url.replace("127.0.0.1", "localhost") + f"?sslmode=verify-full&sslrootcert={server.data}/server.crt"
    one, two = relays.open("one", url=url), relays.open("two", url=url)
    assert server.execute("SELECT count(*) FROM pg_stat_ssl WHERE ssl") == [(2,)]
    for seq in range(1, 30):
        one.push([packet("one", "two", seq, b"x" * 20_000)])
        assert two.wait(20)
        assert two.pull()[-1].seq == seq


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_certificate_of_another_name_or_issuer_is_refused(
    server: PostgresServer, relays: Relays, tmp_path: Path, name: str
) -> None:
    own = server.data / "server.crt"
    trusted = own if name == "127.0.0.1" else write_certificate(tmp_path, "localhost")
    with pytest.raises(RelayRefused, match="TLS failed; look at sslmode and sslrootcert in the URL"):
        relays.open("one", url=relays.url.replace("127.0.0.1", name) + f"?sslmode=verify-full&sslrootcert={trusted}")
