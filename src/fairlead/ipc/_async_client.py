"""HTTP over the daemon's Unix socket, for an event loop: one answer whole, or one that goes on. Knows no sessions."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fairlead.ipc._requests import DaemonNotResponding, DaemonUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PATIENCE = 5.0
_LONGEST_LINE = 64 * 1024
_CHUNK = 256 * 1024
_OK = 200


class Answer:
    """An answer whose head has been read."""

    def __init__(self, status: int, head: dict[str, str], reader: asyncio.StreamReader) -> None:
        self.status = status
        self._head = head
        self._reader = reader

    async def pieces(self, patience: float) -> AsyncIterator[bytes]:
        """Give the body as it comes. Raises `TimeoutError` if nothing comes for so long."""
        if self._head.get("transfer-encoding", "").lower() == "chunked":
            while size := int(await self._within(self._reader.readline(), patience) or b"0", 16):
                yield (await self._within(self._reader.readexactly(size + 2), patience))[:-2]
            return
        length = self._head.get("content-length")
        left = int(length) if length else None
        while left is None or left > 0:
            piece = await self._within(self._reader.read(_CHUNK if left is None else min(left, _CHUNK)), patience)
            if not piece:
                return
            left = None if left is None else left - len(piece)
            yield piece

    async def body(self) -> bytes:
        """Give the body as a whole."""
        return b"".join([piece async for piece in self.pieces(_PATIENCE)])

    @staticmethod
    async def _within(coming: object, patience: float) -> bytes:
        return await asyncio.wait_for(coming, patience)  # type: ignore[arg-type]  # one of the reader's own


@asynccontextmanager
async def asked(place: str, path: str) -> AsyncIterator[Answer]:
    """Ask the daemon at a socket. Raises `DaemonUnavailable`, or `DaemonNotResponding` if there is one."""
    try:
        reader, writer = await asyncio.wait_for(
            asyncio.open_unix_connection(place, limit=_LONGEST_LINE), timeout=_PATIENCE
        )
    except (FileNotFoundError, ConnectionRefusedError):
        raise DaemonUnavailable("no daemon is running; begin one: fairlead daemon start") from None
    except (OSError, TimeoutError) as error:
        raise DaemonNotResponding(f"the daemon cannot be reached: {error}") from None
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: fairlead\r\nconnection: close\r\n\r\n".encode())
        answer = await asyncio.wait_for(_head(reader), timeout=_PATIENCE)
        if answer.status != _OK:
            raise DaemonNotResponding(_refused(answer.status))
        yield answer
    except (OSError, EOFError, TimeoutError, ValueError) as error:
        raise DaemonNotResponding(f"the daemon has gone silent{f': {error}' if str(error) else ''}") from None
    finally:
        writer.close()


def _refused(status: int) -> str:
    if status == 404:  # noqa: PLR2004 - HTTP's own word for it
        return "this daemon knows no sessions: it is older; run: fairlead daemon stop; fairlead daemon start"
    return f"the daemon answers {status}; see: fairlead doctor"


async def _head(reader: asyncio.StreamReader) -> Answer:
    first = (await reader.readline()).split(None, 2)
    if len(first) < 2:  # noqa: PLR2004 - version and status
        raise EOFError("it hung up")
    head: dict[str, str] = {}
    while (line := (await reader.readline()).strip()) != b"":
        name, _, value = line.decode("latin-1").partition(":")
        head[name.strip().lower()] = value.strip()
    return Answer(int(first[1]), head, reader)
