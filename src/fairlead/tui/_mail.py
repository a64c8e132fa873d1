"""Fetches the user's mail for the view, and sends replies."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.errors import FairleadError
from fairlead.ipc import RequestRefused, request

if TYPE_CHECKING:
    from collections.abc import Callable

_INTERVAL = 2.0
"""Seconds between two requests for the number of messages."""
_PAGE = 100


class MailCounted(msgspec.Struct, frozen=True):
    """The number of messages that wait for the user has changed."""

    waiting: int = 0
    """Unread messages and unanswered requests."""


class UserMail:
    """Fetches the user's mail from the daemon, and sends replies. Raises `FairleadError` if that fails.

    The daemon recognizes a person by the terminal of this process. `number` is the id of a message.
    """

    def __init__(self, socket_path: str) -> None:
        self._socket_path = socket_path

    async def run(self, deliver: Callable[[MailCounted], None]) -> None:
        """Deliver the number of waiting messages whenever it changes, until cancelled. Ignores errors."""
        last = MailCounted()
        while True:
            with suppress(FairleadError, ValueError):  # `SessionSource` reports a missing daemon
                counted = msgspec.convert(await self._ask("GET", "user"), MailCounted)
                if counted != last:
                    deliver(counted)
                last = counted
            await asyncio.sleep(_INTERVAL)

    async def inbox(self) -> dict[str, Any]:
        """Return the daemon's document of the newest messages, including read ones."""
        return await self._ask("GET", f"inbox?all=true&limit={_PAGE}")

    async def read(self, number: int) -> dict[str, Any]:
        """Mark a message as read, and return the daemon's document with its full text."""
        return await self._ask("GET", f"messages/{number}")

    async def reply(self, number: int, text: str) -> dict[str, Any]:
        """Answer a message, and return the daemon's document of the sent answer."""
        return await self._ask("POST", f"messages/{number}/reply", {"body": text, "key": f"view-{token_hex(8)}"})

    async def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = await asyncio.to_thread(
                request, method, f"/v1/mail/{path}", body, at=self._socket_path
            )
        except RequestRefused as error:
            raise FairleadError(_reason(error)) from None
        return answer


def _reason(error: RequestRefused) -> str:
    try:
        return str(msgspec.json.decode(error.text, type=dict[str, str])["error"])
    except (msgspec.MsgspecError, KeyError):
        return f"the daemon answers {error.status}"
