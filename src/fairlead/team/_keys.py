"""The Ed25519 key of a host, implemented with the package `cryptography`. It signs bytes of any kind."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Final

from fairlead.team._errors import BadTeamSettings, missing_package

if TYPE_CHECKING:
    from types import ModuleType

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64


class PrivateKey:
    """The key with which a host signs. It never appears in a `repr`."""

    def __init__(self, secret: bytes) -> None:
        """Create a key from its 32 bytes.

        Raises `BadTeamSettings` if there are more or fewer bytes, or if `cryptography` is not installed.
        """
        if len(secret) != KEY_BYTES:
            raise BadTeamSettings(f"the key of this host has {len(secret)} bytes instead of {KEY_BYTES}")
        self.secret: Final = secret
        self._key: Final = _ed25519().Ed25519PrivateKey.from_private_bytes(secret)
        self.public: Final[bytes] = self._key.public_key().public_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """Return the signature of `data`, which has `SIGNATURE_BYTES` bytes."""
        signature: bytes = self._key.sign(data)
        return signature

    def __repr__(self) -> str:
        return f"<PrivateKey {fingerprint(self.public)}>"


def generate_key() -> PrivateKey:
    """Return a new random key. Raises `BadTeamSettings` if `cryptography` is not installed."""
    return PrivateKey(_ed25519().Ed25519PrivateKey.generate().private_bytes_raw())


def verify(public: bytes, signature: bytes, data: bytes) -> bool:
    """Return whether the key `public` made `signature` over `data`; False for an invalid key or signature."""
    if len(public) != KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    from cryptography.exceptions import InvalidSignature

    try:
        _ed25519().Ed25519PublicKey.from_public_bytes(public).verify(signature, data)
    except (InvalidSignature, ValueError):
        return False
    return True


def fingerprint(public: bytes) -> str:
    """Return the fingerprint by which people compare a public key.

    It is `SHA256:` and 43 characters of Base64, as in OpenSSH.
    """
    digest = base64.b64encode(hashlib.sha256(public).digest()).decode().rstrip("=")
    return f"SHA256:{digest}"


def _ed25519() -> ModuleType:
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise missing_package("cryptography") from None
    return ed25519
