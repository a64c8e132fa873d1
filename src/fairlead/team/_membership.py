"""The membership file of this host, which only its user can read. Knows no relay.

The file holds the private key and perhaps a password, so it is refused if other users can read it. Every change is
made under a lock, because a command and the daemon may change it at the same time.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.files import sync_folder, write_private
from fairlead.paths import make_private, state_folder
from fairlead.team._errors import BadTeamSettings, NotInTeam
from fairlead.team._keys import KEY_BYTES, PrivateKey
from fairlead.team._names import check_host_name, check_relay_url, redact_url
from fairlead.team._trust import Anchor
from fairlead.team._types import Certificate, Hello

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FORMAT: Final = 1
MAX_BOOTS: Final = 4000
"""How many nonces are kept in `Membership.boots`.

A relay restored from a backup may hold an old nonce of this host. If more connections than this were made since the
backup, the nonce is no longer known, and the host is taken for a clone.
"""
_NONCE_BYTES: Final = 8
_OTHERS: Final = 0o077


class RelaySource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the URL of the relay comes from. Exactly one field is not empty."""

    url: str = ""
    """The URL itself."""
    file: str = ""
    """The absolute path of a file that holds the URL. It is read at each connection."""
    service: str = ""
    """The name of a service in PostgreSQL's `pg_service.conf`."""

    def read_url(self) -> str:
        """Return the URL with its password. Raises `BadTeamSettings` if it is invalid or its file cannot be read."""
        if self.service:
            from urllib.parse import quote

            return f"postgresql:///?service={quote(self.service, safe='')}"
        return check_relay_url(self.url or _read_url_file(self.file))

    def describe(self) -> str:
        """Return a description for messages, without the password."""
        if self.service:
            return f"the service {self.service}"
        return f"the URL in {self.file}" if self.file else redact_url(self.url)


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """The membership file: the team, the identity and key of this host, and the hosts that it trusts."""

    format: int = FORMAT
    """The version of the file's form."""
    team: str
    """The id of the team. Empty while this host joins, because its identity is stored before the relay gets it."""
    host: str
    """The id of this host."""
    name: str
    relay: RelaySource
    private_key: bytes
    anchors: tuple[Anchor, ...] = ()
    """Hosts that are trusted without a certificate.

    The first host of a team trusts itself. Any other host trusts those that were shown to a person when it joined.
    """
    certificates: tuple[Certificate, ...] = ()
    """The accepted certificates, in the order in which this host learned them (`Trust.effective`)."""
    boots: tuple[str, ...] = ()
    """The last `MAX_BOOTS` nonces that this host has used, the newest last."""
    joined: float = 0.0
    """The Unix time at which this host joined the team."""

    @property
    def key(self) -> PrivateKey:
        """The key with which this host signs, created from `private_key`."""
        return PrivateKey(self.private_key)

    def __repr__(self) -> str:
        return f"<Membership of {self.name} ({self.host}) in {self.team} by {self.relay.describe()}>"


def membership_folder() -> str:
    """Return the folder of the membership file."""
    return f"{state_folder()}/team"


def membership_file() -> str:
    """Return the path of the membership file. The file may not exist."""
    return f"{membership_folder()}/membership.json"


def new_host_id() -> str:
    """Return a new random id for a host or a team."""
    return uuid.uuid4().hex


def load_membership(*, unfinished: bool = False) -> Membership | None:
    """Return the membership of this host; None if it is in no team.

    With `unfinished`, a membership whose join was interrupted is returned, too. The next attempt uses its identity.
    Raises `BadTeamSettings` if the file is invalid, or cannot be read, or if other users can read it.
    """
    path = membership_file()
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadTeamSettings(f"{path} cannot be read: {error.strerror}") from error
    if mode & _OTHERS:
        raise BadTeamSettings(f"{path} holds the key of this host, and other users can read it; run: chmod 600 {path}")
    membership = _decode(path, content)
    return membership if membership.team or unfinished else None


def save_membership(membership: Membership) -> None:
    """Write the membership file. Raises `BadTeamSettings` if that fails.

    After a crash the file has either the old or the new content.
    """
    with _locked():
        _write(membership)


def update_membership(change: Callable[[Membership], Membership]) -> Membership:
    """Replace the membership by the result of `change`, and return that result.

    `change` is called under the lock, also with a membership whose join was interrupted. Raises `NotInTeam` if there is
    no file, and `BadTeamSettings` if the file is invalid or cannot be written.
    """
    with _locked():
        membership = load_membership(unfinished=True)
        if membership is None:
            raise NotInTeam("this host is in no team; run: fairlead team join URL")
        changed = change(membership)
        if changed != membership:
            _write(changed)
        return changed


def remove_membership() -> bool:
    """Delete the membership file and the key in it. Return whether the file existed."""
    with _locked():
        _remove_unfinished()
        try:
            os.unlink(membership_file())
        except FileNotFoundError:
            return False
        sync_folder(membership_folder())
        return True


def prepare_hello(version: str) -> tuple[Membership, Hello]:
    """Return the membership and the `Hello` of a new connection. Raises `NotInTeam` if there is no membership.

    `version` is that of Fairlead. The new nonce in the `Hello` is already stored on disk. Call this for each
    connection, and only after the relay was reached. Otherwise a nonce that is stored but not sent yet could be copied
    with the machine, and then both machines could use it.
    """
    boot = secrets.token_hex(_NONCE_BYTES)
    membership = update_membership(lambda old: msgspec.structs.replace(old, boots=(*old.boots, boot)[-MAX_BOOTS:]))
    hello = Hello(
        team=membership.team,
        host=membership.host,
        name=membership.name,
        key=membership.key.public,
        version=version,
        known_boots=membership.boots[:-1],
        boot=boot,
    )
    return membership, hello


def _decode(path: str, content: bytes) -> Membership:
    advice = "restore it from a backup, or delete it and join the team again"
    try:
        version = msgspec.json.decode(content, type=_Format).format
        if version > FORMAT:
            raise BadTeamSettings(f"{path} was written by a newer Fairlead; upgrade Fairlead")
        membership = msgspec.json.decode(content, type=Membership)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        # msgspec's error names the position, never a value.
        raise BadTeamSettings(f"{path} is damaged: {error}; {advice}") from None
    check_host_name(membership.name)
    relay = membership.relay
    if len(membership.private_key) != KEY_BYTES or not membership.host:
        raise BadTeamSettings(f"{path} is damaged: it has no complete identity; {advice}")
    if sum(map(bool, (relay.url, relay.file, relay.service))) != 1:
        raise BadTeamSettings(f"{path} is damaged: it does not say where the relay is; {advice}")
    return membership


class _Format(msgspec.Struct):
    format: int


def _write(membership: Membership) -> None:
    _remove_unfinished()
    path = membership_file()
    content = msgspec.json.format(msgspec.json.encode(membership), indent=2)
    try:
        write_private(path, content + b"\n", durable=True)
    except OSError as error:
        raise BadTeamSettings(f"{path} cannot be written: {error.strerror}") from error


def _remove_unfinished() -> None:
    """Delete temporary files of processes that were killed while writing, because they contain the key."""
    folder = membership_folder()
    for name in os.listdir(folder):
        if name.startswith("membership.json.") and name.endswith(".tmp"):
            os.unlink(f"{folder}/{name}")


@contextmanager
def _locked() -> Iterator[None]:
    folder = membership_folder()
    try:
        make_private(folder)
        os.chmod(folder, 0o700)
        descriptor = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BadTeamSettings(f"{folder} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read_url_file(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file.read().splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadTeamSettings(f"{path}, which holds the URL of the relay, cannot be read: {why}") from None
    urls = [line for line in lines if line and not line.startswith("#")]
    if len(urls) != 1:
        raise BadTeamSettings(f"{path} must hold one line, the URL of the relay; it has {len(urls)}")
    return urls[0]
