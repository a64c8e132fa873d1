"""Who waits for mail: one asyncio wait each, woken by the commit of a message. Nothing is polled.

A wait begins with a token, issued by the thread that answers the event, and is held when the launcher asks for it. A
session has one wait of each mode: a later one takes over, and the earlier one ends with nothing to report.
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
"""stop: a hook that the client waits for. wake: one that it does not wait for, and whose end wakes the session."""

End = Literal["mail", "time", "over", "shutdown"]
"""mail: there may be some. time: the time is up. over: there is nothing to report. shutdown: the daemon shuts down."""

_TOKEN_LIFETIME = 30.0
"""Seconds after which a token is dropped that nobody has claimed."""


class WaitToken(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that a launcher may ask for."""

    token: str
    mode: Mode
    event: Event
    request: HookRequest
    seconds: float
    issued_at: float
    stdout: bytes = b""
    """What the hook has to print whatever comes."""
    is_over: bool = False
    """The session ended before the token was claimed."""

    def seconds_left(self) -> float:
        """Return the seconds until its end."""
        return self.issued_at + self.seconds - monotonic()


class Waiter:
    """One wait. Belongs to the event loop."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._final: End | None = None

    def end(self, how: End) -> None:
        """End the current wait. After mail it may wait again, after anything else it may not."""
        if how != "mail" and self._final is None:
            self._final = how
        self._news.set()

    async def wait(self, seconds: float) -> End:
        """Wait for at most so many seconds, and return what ended it."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._news.wait()
        except TimeoutError:
            return self._final or "time"
        self._news.clear()
        return self._final or "mail"


class WaiterRegistry:
    """All waits. Belongs to the event loop; `issue`, `notify` and `release` may be called from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._issued: dict[str, WaitToken] = {}
        self._lock = Lock()
        self._waiting: dict[int, set[Waiter]] = {}
        """By the agent's id."""
        self._held: dict[tuple[str, Mode], Waiter] = {}
        """By the session, for those with a token."""
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
            monotonic() - one.issued_at < _TOKEN_LIFETIME for one in list(self._issued.values())
        )

    def waiting_agents(self) -> frozenset[int]:
        """Return the agents that wait for mail now."""
        return frozenset(tuple(self._waiting))  # a tuple first: another thread may add one meanwhile

    # -- tokens ----------------------------------------------------------------------------------------

    def issue(self, mode: Mode, event: Event, request: HookRequest, seconds: float, stdout: bytes = b"") -> WaitToken:
        """Return a token for a new wait."""
        name, now = token_urlsafe(16), monotonic()
        token = WaitToken(
            token=name, mode=mode, event=event, request=request, seconds=seconds, issued_at=now, stdout=stdout
        )
        with self._lock:
            for late in [one.token for one in self._issued.values() if now - one.issued_at > _TOKEN_LIFETIME]:
                del self._issued[late]
            self._issued[name] = token
        return token

    def claim(self, token: str) -> WaitToken | None:
        """Return the wait of a token, once."""
        with self._lock:
            return self._issued.pop(token, None)

    @contextmanager
    def held(self, token: WaitToken, agent: int) -> Iterator[Waiter]:
        """Wait for the mail of an agent by a token; ends an earlier wait of the same session and mode."""
        key = token.event.session_id, token.mode
        with self.waiting(agent) as waiter:
            earlier, self._held[key] = self._held.get(key), waiter
            if earlier is not None:
                earlier.end("over")
            try:
                yield waiter
            finally:
                if self._held.get(key) is waiter:
                    del self._held[key]

    # -- waits -----------------------------------------------------------------------------------------

    @contextmanager
    def waiting(self, agent: int) -> Iterator[Waiter]:
        """Wait for the mail of an agent. Whether there is some already must be looked up after this was entered."""
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
        """Wake those who wait for the mail of an agent."""
        if agent in self._waiting:
            self._in_loop(self._notify, agent)

    def _notify(self, agent: int) -> None:
        for waiter in self._waiting.get(agent, ()):
            waiter.end("mail")

    def release(self, session: str, *modes: Mode) -> None:
        """End the waits of a session with nothing to report."""
        with self._lock:
            for one in self._issued.values():
                if one.event.session_id == session and one.mode in modes:
                    self._issued[one.token] = msgspec.structs.replace(one, is_over=True)
        self._in_loop(self._release, session, modes)

    def _release(self, session: str, modes: tuple[Mode, ...]) -> None:
        for mode in modes:
            waiter = self._held.get((session, mode))
            if waiter is not None:
                waiter.end("over")

    def _in_loop(self, call: Callable[..., object], *args: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)
