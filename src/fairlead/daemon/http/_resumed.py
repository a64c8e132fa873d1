"""uvicorn's protocol for a connection whose first bytes the Unix listener has already read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

    from uvicorn import Config
    from uvicorn.server import ServerState


class ResumedHttpProtocol(HttpToolsProtocol):
    """Parses the first bytes of an HTTP connection, which are `data`, and then reads on from the connection."""

    def __init__(self, data: bytes, config: Config, server: ServerState, state: dict[str, Any]) -> None:
        super().__init__(config, server, state)
        self._first_data = data

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn has it
        super().connection_made(transport)
        self.data_received(self._first_data)
