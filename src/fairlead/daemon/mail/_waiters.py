"""The waits for mail: one asyncio wait for each, woken by the commit of a message. Nothing is polled.

The thread that replies to the event issues a token. The wait starts when the launcher requests the token. A session has
one wait of each mode: a later wait replaces the earlier one, which ends without mail.
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
"""`stop`: a hook for which the client waits. `wake`: a hook that wakes the session when it ends."""

End = Literal["mail", "time", "over", "shutdown"]
"""`mail`: there may be mail. `time`: the time is up. `over`: ended without mail. `shutdown`: the daemon shuts down."""

_TOKEN_LIFETIME = 30.0
"""Seconds after which an unclaimed token is deleted."""


class WaitToken(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that a launcher may start by requesting its token."""

    token: str
    mode: Mode
    event: Event
    request: HookRequest
    seconds: float
    issued_at: float
    stdout: bytes = b""
    """The output that the hook must print in any case."""
    is_over: bool = False
    """Whether the session ended before the token was claimed."""

    def seconds_left(self) -> float:
        """Return the seconds until the wait ends."""
        return self.issued_at + self.seconds - monotonic()


class Waiter:
    """One wait. Belongs to the event loop."""

    def __init__(self) -> None:
        self._wakeup = asyncio.Event()
        self._final: End | None = None

    def end(self, how: End) -> None:
        """End the current wait. Only after `mail` it may wait again."""
        if how != "mail" and self._final is None:
            self._final = how
        self._wakeup.set()

    async def wait(self, seconds: float) -> End:
        """Wait for at most the given seconds, and return what ended the wait."""
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
        """The waits with a token, by session and mode."""
        self._is_shutting_down = False

    def open(self) -> None:
        """Attach to the running event loop."""
        self._loop = asyncio.get_running_loop()

    def shut_down(self) -> None:
        """End all waits, because the daemon shuts down."""
        self._is_shutting_down = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            waiter.end("shutdown")

    @property
    def count(self) -> int:
        """The number of waits."""
        return sum(map(len, self._waiting.values()))

    @property
    def is_needed(self) -> bool:
        """Whether there is a wait, or a token that may be claimed."""
        return bool(self._waiting) or any(
            monotonic() - token.issued_at < _TOKEN_LIFETIME for token in list(self._issued.values())
        )

    def waiting_agents(self) -> frozenset[int]:
        """Return the ids of the agents that wait for mail now."""
        return frozenset(tuple(self._waiting))  # copied to a tuple, because the event loop may add one meanwhile

    # -- tokens ----------------------------------------------------------------------------------------

    def issue(self, mode: Mode, event: Event, request: HookRequest, seconds: float, stdout: bytes = b"") -> WaitToken:
        """Return a token for a new wait."""
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
        """Return the wait of a token and delete the token; `None` if it is unknown."""
        with self._lock:
            return self._issued.pop(token, None)

    @contextmanager
    def waiting_with_token(self, token: WaitToken, agent: int) -> Iterator[Waiter]:
        """Register a wait with a token for an agent's mail. Ends an earlier wait of the same session and mode."""
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
        """Register a wait for the mail of an agent. Inside the block, check first whether mail is already queued."""
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
        """Wake the waits for the mail of an agent."""
        if agent in self._waiting:
            self._in_loop(self._notify, agent)

    def _notify(self, agent: int) -> None:
        for waiter in self._waiting.get(agent, ()):
            waiter.end("mail")

    def release(self, session: str, *modes: Mode) -> None:
        """End the waits of a session without mail."""
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
