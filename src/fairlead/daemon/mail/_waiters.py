"""Who waits for mail: one asyncio wait each, woken by whoever commits some. Nothing is polled, and nothing shown here.

A wait is promised first, by the thread that answers the event, and held when the launcher comes for it. Of a session
and a way to wait there is one at a time: who comes later takes over, and the one before ends with nothing to say.
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

    from fairlead.daemon.events._request import HookRequest
    from fairlead.events import Stop

Way = Literal["stop", "wake"]
"""stop: a hook that the client waits for. wake: one that it does not wait for, and whose end wakes the session."""

End = Literal["mail", "time", "over", "leaving"]
"""mail: some may have come. time: none came. over: nobody is to be told anything. leaving: the daemon goes."""

_COME_FOR_IT = 30.0
"""Seconds after which a promise is forgotten that nobody came for."""


class WaitToken(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that somebody may come for."""

    token: str
    way: Way
    event: Stop
    ask: HookRequest
    seconds: float
    made: float
    said: bytes = b""
    """What the hook has to print whatever comes."""
    is_over: bool = False
    """The session ended before anybody came for it."""

    def left(self) -> float:
        """Give the seconds until its end."""
        return self.made + self.seconds - monotonic()


class Waiter:
    """One that waits. Belongs to the loop."""

    def __init__(self) -> None:
        self._news = asyncio.Event()
        self._over: End | None = None

    def end(self, how: End) -> None:
        """Let it go; after mail it may wait again, after anything else it does not."""
        if how != "mail" and self._over is None:
            self._over = how
        self._news.set()

    async def wait(self, seconds: float) -> End:
        """Wait, so many seconds at most, and say what ended it."""
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                await self._news.wait()
        except TimeoutError:
            return self._over or "time"
        self._news.clear()
        return self._over or "mail"


class WaiterRegistry:
    """All that wait. It belongs to the loop; any thread may call `promise`, `ring` and `release`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._promised: dict[str, WaitToken] = {}
        self._lock = Lock()
        self._waiting: dict[int, set[Waiter]] = {}
        """By the agent's id."""
        self._held: dict[tuple[str, Way], Waiter] = {}
        """By the session, for those that were promised."""
        self._is_leaving = False

    def begin(self) -> None:
        """Take up the work, in the loop that runs."""
        self._loop = asyncio.get_running_loop()

    def leave(self) -> None:
        """Send all away, for the daemon goes."""
        self._is_leaving = True
        for waiter in [waiter for waiters in self._waiting.values() for waiter in waiters]:
            waiter.end("leaving")

    @property
    def count(self) -> int:
        """So many wait."""
        return sum(map(len, self._waiting.values()))

    @property
    def is_needed(self) -> bool:
        """Whether anybody waits, or may come to."""
        return bool(self._waiting) or any(
            monotonic() - one.made < _COME_FOR_IT for one in list(self._promised.values())
        )

    def is_waiting(self, agent: int) -> bool:
        """Tell whether anybody waits for an agent's mail."""
        return agent in self._waiting

    # -- promises --------------------------------------------------------------------------------------

    def promise(self, way: Way, event: Stop, ask: HookRequest, seconds: float, said: bytes = b"") -> WaitToken:
        """Promise a wait."""
        token, now = token_urlsafe(16), monotonic()
        made = WaitToken(token=token, way=way, event=event, ask=ask, seconds=seconds, made=now, said=said)
        with self._lock:
            for late in [one.token for one in self._promised.values() if now - one.made > _COME_FOR_IT]:
                del self._promised[late]
            self._promised[token] = made
        return made

    def claim(self, token: str) -> WaitToken | None:
        """Give a promise to the one who comes for it, once."""
        with self._lock:
            return self._promised.pop(token, None)

    @contextmanager
    def held(self, promise: WaitToken, agent: int) -> Iterator[Waiter]:
        """Keep a promise."""
        key = promise.event.session_id, promise.way
        with self.waiting(agent) as waiter:
            earlier, self._held[key] = self._held.get(key), waiter
            if earlier is not None:
                earlier.end("over")
            try:
                yield waiter
            finally:
                if self._held.get(key) is waiter:
                    del self._held[key]

    # -- waiting ---------------------------------------------------------------------------------------

    @contextmanager
    def waiting(self, agent: int) -> Iterator[Waiter]:
        """Wait for the mail of an agent. Whether some is there already is to be looked up after this has begun."""
        waiter, waiters = Waiter(), self._waiting.setdefault(agent, set())
        waiters.add(waiter)
        if self._is_leaving:
            waiter.end("leaving")
        try:
            yield waiter
        finally:
            waiters.discard(waiter)
            if not waiters and self._waiting.get(agent) is waiters:
                del self._waiting[agent]

    def ring(self, agent: int) -> None:
        """Say that mail has come for an agent."""
        if agent in self._waiting:
            self._in_loop(self._ring, agent)

    def _ring(self, agent: int) -> None:
        for waiter in self._waiting.get(agent, ()):
            waiter.end("mail")

    def release(self, session: str, *ways: Way) -> None:
        """Let those of a session go with nothing to say."""
        with self._lock:
            for one in self._promised.values():
                if one.event.session_id == session and one.way in ways:
                    self._promised[one.token] = msgspec.structs.replace(one, is_over=True)
        self._in_loop(self._release, session, ways)

    def _release(self, session: str, ways: tuple[Way, ...]) -> None:
        for way in ways:
            waiter = self._held.get((session, way))
            if waiter is not None:
                waiter.end("over")

    def _in_loop(self, call: Callable[..., object], *args: Any) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)
