"""What the routes have in common: JSON, the status codes of refusals, and requests that need a team."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from fairlead.errors import FairleadError

BAD_REQUEST = 400
FORBIDDEN = 403
NOT_FOUND = 404
CONFLICT = 409
UNAVAILABLE = 503


class NoTeam(FairleadError):
    """This host is in no team."""


def json_response(document: object) -> Response:
    """Return a response with a document as JSON."""
    return Response(msgspec.json.encode(document), media_type="application/json")
