"""The HTTP routes for `fairlead lease`. `MailApi` identifies the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.leases._operations import LeaseOperations, ListRequest, ReleaseRequest, TakeRequest

if TYPE_CHECKING:
    from starlette.routing import Route

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.http._mail_routes import MailApi


def lease_routes(daemon: Daemon, api: MailApi) -> list[Route]:
    """Return the routes for leases, whose operations `api` runs."""
    operations = LeaseOperations(daemon.leases)
    return [
        api.route("leases", operations.list_all, ListRequest, "GET"),
        api.route("leases", operations.take, TakeRequest, "POST"),
        api.route("leases/release", operations.release, ReleaseRequest, "POST"),
    ]
