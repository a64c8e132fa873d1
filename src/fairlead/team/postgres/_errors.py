"""Translates errors of the driver into `TeamError`s whose messages say what to do. Knows no statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.team._errors import RelayRefused, RelayUnreachable

if TYPE_CHECKING:
    import psycopg

    from fairlead.team._errors import TeamError

_ADMIN_SQL: Final = "have an administrator run what `fairlead team schema` prints"
_REFUSED_STATES: Final = {
    "28P01": "the user or the password is wrong",
    "28000": "the user may not connect; look at pg_hba.conf of the server",
    "3D000": "the database does not exist; have it created, or correct the URL",
    "42501": f"the role lacks rights; {_ADMIN_SQL}",
    "3F000": f"the schema fairlead is missing; {_ADMIN_SQL}",
    "42P01": f"a table is missing in the schema fairlead; {_ADMIN_SQL}",
    "42703": f"a column is missing in the schema fairlead; {_ADMIN_SQL}",
    "25006": "the database is read-only; connect to the primary server",
    "53100": "the disk of the server is full; free space on it",
    "58030": "the server cannot read or write its files; look at its log",
}
_UNREACHABLE_STATES: Final = {
    "57P01": "the server shuts down",
    "57P02": "the server crashed",
    "57P03": "the server is starting or shutting down",
    "57014": "the server did not answer in time",
    "55P03": "the server did not answer in time",
    "53300": "the server has too many connections",
}
_UNREACHABLE_CLASSES: Final = ("08", "40", "53", "57")
"""Classes of SQLSTATEs for temporary errors: lost connections, deadlocks, lack of memory, actions of an operator."""
_REFUSED_TEXTS: Final = (
    (r"password authentication failed|no password supplied", _REFUSED_STATES["28P01"]),
    (
        r"no pg_hba\.conf entry|role .* (does not exist|is not permitted)|authentication failed",
        _REFUSED_STATES["28000"],
    ),
    (r"database .* does not exist", _REFUSED_STATES["3D000"]),
    (r"permission denied for database", "the role may not connect to the database; have it granted CONNECT"),
    (r"definition of service .* not found|service file", "the service is not in pg_service.conf"),
    (r"does not support SSL", "the server does not offer TLS, which the URL requires"),
    (r"certificate|SSL error|sslrootcert", "TLS failed; look at sslmode and sslrootcert in the URL"),
)
"""Error texts of a failed connection, for which the driver has no SQLSTATE. Only English texts are recognized."""


def translate(error: psycopg.Error, location: str, *, hidden: tuple[str, ...] = ()) -> TeamError:
    """Return the `TeamError` for an error of the driver.

    `location` is the relay's name in the message. `hidden` are passwords that are removed from the driver's text.
    """
    state = error.sqlstate
    detail = _detail(error, hidden)
    if state is None:
        return _without_state(detail, location)
    if why := _REFUSED_STATES.get(state):
        return RelayRefused(f"{location}: {why} ({detail})")
    if why := _UNREACHABLE_STATES.get(state):
        return RelayUnreachable(f"{location}: {why}")
    if state.startswith(_UNREACHABLE_CLASSES):
        return RelayUnreachable(f"{location}: {detail}")
    return RelayRefused(f"{location}: the server refused a statement: {detail}")


def _without_state(detail: str, location: str) -> TeamError:
    for pattern, why in _REFUSED_TEXTS:
        if re.search(pattern, detail, re.IGNORECASE):
            return RelayRefused(f"{location}: {why} ({detail})")
    return RelayUnreachable(f"{location} cannot be reached: {detail}")


def _detail(error: psycopg.Error, hidden: tuple[str, ...]) -> str:
    text = error.diag.message_primary or str(error)
    for secret in hidden:
        text = text.replace(secret, "***")
    return " ".join(text.split())[:300]
