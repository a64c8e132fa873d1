"""The waits for mail. Each is one asyncio wait that ends when a message is committed, and nothing is polled.

The thread that replies to an event issues a token. The wait starts when the launcher requests the token. A session has
at most one wait of each mode. A later wait replaces the earlier one, which ends without mail.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from secrets import token_urlsafe
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fairlead.daemon.events._messages import HookRequest
    from fairlead.events import Event

Mode = Literal["stop", "wake"]
"""`stop`: the client waits for the hook at the end of a turn. `wake`: the hook wakes the session when it ends."""

End = Literal["mail", "time", "over", "shutdown"]
"""What ended a wait.

`mail`: mail may be queued. `time`: the time is up. `over`: it was replaced or released. `shutdown`: the daemon shuts
down.
"""

_TOKEN_LIFETIME = 30.0
"""Seconds after which an unclaimed token may be deleted."""


class WaitToken(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that a launcher may start by requesting its token."""

    token: str
    mode: Mode
    event: Event
    request: HookRequest
    seconds: float
    """How long the wait lasts, from `issued_at`."""
    issued_at: float
    """When the token was issued, by the monotonic clock."""
    stdout: bytes = b""
    """The output that the hook must print in any case."""
    is_over: bool = False
    """Whether the session ended before the token was claimed."""

    def seconds_left(self) -> float:
        """Return the seconds until the wait ends; negative if the time is up."""
        return self.issued_at + self.seconds - monotonic()


class Waiter:
    """One wait. Belongs to the event loop."""

    def __init__(self) -> None:
        self._wakeup = asyncio.Event()
        self._final: End | None = None

    def end(self, how: End) -> None:
        """End the current `wait`, or the next one. Unless `how` is `mail`, `wait` must not be called after that."""
        if how != "mail" and self._final is None:
            self._final = how
        self._wakeup.set()

    async def wait(self, seconds: float) -> End:
        """Wait for at most the given seconds, and return what ended the wait.

        May be called again after `mail` or `time`.
        """
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._wakeup.wait()
        except TimeoutError:
            return self._final or "time"
        self._wakeup.clear()
        return self._final or "mail"


class WaiterRegistry:
    """All waits. Belongs to the event loop; `issue`, `notify` and `release` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._issued: dict[str, WaitToken] = {}
        self._lock = Lock()
        self._waiting: dict[int, set[Waiter]] = {}
        """By the agent's id."""
        self._by_session: dict[tuple[str, Mode], Waiter] = {}
        """The waits with a token, by session id and mode."""
        self._is_shutting_down = False

    def open(self) -> None:
        """Use the running event loop for calls from other threads. Must be called before any wait."""
        self._loop = asyncio.get_running_loop()

    def shut_down(self) -> None:
        """End all waits, and those that are started later, with `shutdown`."""
        self._is_shutting_down = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            waiter.end("shutdown")

    @property
    def count(self) -> int:
        """The number of current waits of all agents."""
        return sum(map(len, self._waiting.values()))

    @property
    def is_needed(self) -> bool:
        """Whether there is a wait, or a token that may still be claimed."""
        return bool(self._waiting) or any(
            monotonic() - token.issued_at < _TOKEN_LIFETIME for token in list(self._issued.values())
        )

    def waiting_agents(self) -> frozenset[int]:
        """Return the ids of the agents that wait for mail now."""
        return frozenset(tuple(self._waiting))  # copied to a tuple, because the event loop may add one meanwhile

    # -- tokens ----------------------------------------------------------------------------------------

    def issue(self, mode: Mode, event: Event, request: HookRequest, seconds: float, stdout: bytes = b"") -> WaitToken:
        """Return a token for a new wait of some seconds, and delete tokens that were not claimed in time."""
        name, now = token_urlsafe(16), monotonic()
        token = WaitToken(
            token=name, mode=mode, event=event, request=request, seconds=seconds, issued_at=now, stdout=stdout
        )
        with self._lock:
            for late in [issued.token for issued in self._issued.values() if now - issued.issued_at > _TOKEN_LIFETIME]:
                del self._issued[late]
            self._issued[name] = token
        return token

    def claim(self, token: str) -> WaitToken | None:
        """Return the wait of a token and delete the token, which can be claimed once; `None` if it is not known."""
        with self._lock:
            return self._issued.pop(token, None)

    @contextmanager
    def waiting_with_token(self, token: WaitToken, agent: int) -> Iterator[Waiter]:
        """Register a wait with a token for the mail of an agent, given by its id.

        Ends an earlier wait of the same session and mode with `over`.
        """
        key = token.event.session_id, token.mode
        with self.waiting(agent) as waiter:
            earlier, self._by_session[key] = self._by_session.get(key), waiter
            if earlier is not None:
                earlier.end("over")
            try:
                yield waiter
            finally:
                if self._by_session.get(key) is waiter:
                    del self._by_session[key]

    # -- waits -----------------------------------------------------------------------------------------

    @contextmanager
    def waiting(self, agent: int) -> Iterator[Waiter]:
        """Register a wait for the mail of an agent, given by its id.

        Inside the block, check first whether mail is already queued.
        """
        waiter, waiters = Waiter(), self._waiting.setdefault(agent, set())
        waiters.add(waiter)
        if self._is_shutting_down:
            waiter.end("shutdown")
        try:
            yield waiter
        finally:
            waiters.discard(waiter)
            if not waiters and self._waiting.get(agent) is waiters:
                del self._waiting[agent]

    def notify(self, agent: int) -> None:
        """End the waits for the mail of the agent with that id, because mail was queued."""
        if agent in self._waiting:
            self._in_loop(self._notify, agent)

    def _notify(self, agent: int) -> None:
        for waiter in self._waiting.get(agent, ()):
            waiter.end("mail")

    def release(self, session: str, *modes: Mode) -> None:
        """End the waits of a session in these modes with `over`, including those whose token is not claimed yet."""
        with self._lock:
            for issued in self._issued.values():
                if issued.event.session_id == session and issued.mode in modes:
                    self._issued[issued.token] = msgspec.structs.replace(issued, is_over=True)
        self._in_loop(self._release, session, modes)

    def _release(self, session: str, modes: tuple[Mode, ...]) -> None:
        for mode in modes:
            waiter = self._by_session.get((session, mode))
            if waiter is not None:
                waiter.end("over")

    def _in_loop(self, call: Callable[..., object], *args: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)
