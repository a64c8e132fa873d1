"""Checks the names of hosts and the URLs of relays, and removes passwords from URLs."""

from __future__ import annotations

import re
import socket
from typing import Final

from fairlead.team._errors import BadTeamSettings

MAX_HOST_NAME: Final = 31
_HOST_NAME: Final = re.compile(r"[a-z][a-z0-9-]*\Z")
_HIDDEN: Final = "***"
_USER_INFO: Final = re.compile(r"\A((?:[a-z][a-z0-9+.-]*://)?)(.*)\Z", re.IGNORECASE | re.DOTALL)
_SECRET_PARAMETER: Final = re.compile(
    r"((?:\A|[?&;\s])[a-z_]*(?:password|secret|token)[a-z_]*\s*=\s*)('[^']*'|[^&;\s]*)", re.IGNORECASE
)


def check_host_name(name: str) -> str:
    """Return the name if it is a valid host name. Raises `BadTeamSettings` otherwise."""
    if not name:
        raise BadTeamSettings("a host needs a name; give one with --name")
    if len(name) > MAX_HOST_NAME:
        raise BadTeamSettings(f"the host name {name!r} has {len(name)} characters; at most {MAX_HOST_NAME} are allowed")
    if not _HOST_NAME.match(name):
        raise BadTeamSettings(
            f"the host name {name!r} is invalid: it starts with a letter a-z, then come letters a-z, digits and '-'"
        )
    return name


def default_host_name(machine: str = "") -> str:
    """Return a valid host name made from a machine's name up to the first dot: `Mac_1.local` → `mac-1`.

    If `machine` is empty, this machine's name is used. If nothing valid is left, the name is "host".
    """
    first = (machine or socket.gethostname()).partition(".")[0].lower()
    name = re.sub(r"[^a-z0-9]+", "-", first).strip("-")[:MAX_HOST_NAME].rstrip("-")
    if not name:
        return "host"
    return name if name[0].isalpha() else f"host-{name}"[:MAX_HOST_NAME].rstrip("-")


def redact_url(url: str) -> str:
    """Return a URL, or a connection string of `key=value` pairs, with all passwords replaced by `***`."""
    match = _USER_INFO.match(url)
    if match:
        scheme, rest = match.groups()
        # A password may contain an unquoted `/`, `?` or `#`, so everything up to the last `@` is hidden.
        before, has_user, after = rest.rpartition("@")
        if has_user:
            user, has_password, _ = before.partition(":")
            url = f"{scheme}{user}{':' + _HIDDEN if has_password else ''}@{after}"
    return _SECRET_PARAMETER.sub(rf"\1{_HIDDEN}", url)


def secrets_of(url: str) -> tuple[str, ...]:
    """Return the passwords in a URL, so that they can be removed from error texts.

    Percent-encoded passwords are returned in both forms, as they are written and decoded.
    """
    from urllib.parse import unquote

    secrets = [match[2].strip("'") for match in _SECRET_PARAMETER.finditer(url)]
    match = _USER_INFO.match(url)
    if match and "@" in match[2]:
        secrets.append(match[2].rpartition("@")[0].partition(":")[2])
    return tuple(text for secret in secrets for text in dict.fromkeys((secret, unquote(secret))) if text)


def check_relay_url(url: str) -> str:
    """Return the URL of a relay without surrounding whitespace.

    Raises `BadTeamSettings` if its scheme is missing or not supported.
    """
    from fairlead.team.relay import relay_schemes

    scheme, has_scheme, _ = url.strip().partition("://")
    if not has_scheme or scheme.lower() not in relay_schemes():
        raise BadTeamSettings(f"{redact_url(url)!r} is not the URL of a relay; use postgresql://USER@HOST/DATABASE")
    return url.strip()
