"""Answers the requests of launchers: events, status lines, waits. Runs in the event loop.

It declines what this daemon must not decide, and chooses whether an event is handled in the loop or in a thread.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from secrets import token_urlsafe
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.daemon.events._extension import NeedsLongWait
from fairlead.daemon.events._messages import (
    NOT_THIS_DAEMON,
    UNAVAILABLE,
    UPGRADE_REQUIRED,
    WAIT,
    HookReply,
    error_reply,
    home_of,
    is_newer,
    is_same_home,
)
from fairlead.daemon.events._status_line import answer_status_line
from fairlead.errors import FairleadError, NeedsCaller
from fairlead.sessions import STATUS_LINE

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._metrics import Metrics
    from fairlead.daemon._shutdown import Shutdown
    from fairlead.daemon.events._handler import EventHandler
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._plans import PlanSettler
    from fairlead.daemon.sessions._tracker import SessionTracker

T = TypeVar("T")

_THREADS = 4
_LONG_THREADS = 32
"""The number of threads for events that wait for the user's own code: long waits must not delay other events."""
_TOKEN_LIFETIME = 10.0
"""Seconds within which a launcher has to ask for the reply that it was told to wait for."""
_MAX_WAIT = 120_000
"""Milliseconds that a launcher waits for a reply by its token.
This is longer than the hooks of several policies take to load and to answer.
"""


class HookEndpoint:
    """Answers launchers."""

    def __init__(  # noqa: PLR0917 - the services it connects
        self,
        version: str,
        handler: EventHandler,
        settler: PlanSettler,
        tracker: SessionTracker,
        metrics: Metrics,
        errors: ErrorLog,
        shutdown: Shutdown,
    ) -> None:
        self._version = version
        self._handler = handler
        self._settler = settler
        self._tracker = tracker
        self._metrics = metrics
        self._errors = errors
        self._shutdown = shutdown
        self._home = home_of(os.environ, "/")
        self._own_home = (*self._home.values(),)
        self._threads = ThreadPoolExecutor(_THREADS, "events")
        self._long_threads = ThreadPoolExecutor(_LONG_THREADS, "long-events")
        self._promised: dict[str, tuple[asyncio.Task[HookReply], Callable[[str], None]]] = {}
        """Token → the reply that a launcher waits for, and the function that undoes what the reply has marked."""
        self._last_active = monotonic()
        self.in_progress = 0

    def reply_in_loop(self, request: HookRequest, payload: bytes) -> HookReply | None:
        """Return the reply if the request can be handled in the event loop; `None` means to use `reply_in_thread`."""
        if request.home != self._own_home or request.caller.version != self._version:
            declined = self._decline(request)
            if declined is not None:
                return declined
        try:
            if request.event == STATUS_LINE:
                reply: HookReply | None = answer_status_line(self._tracker, request, payload)
            elif request.is_report:
                reply = self._settler.settle_in_loop(request, payload)
            else:
                reply = self._handler.handle_in_loop(request, payload)
        except NeedsCaller as error:
            return self._leave_to_caller(error)
        except (FairleadError, OSError):
            return None  # `reply_in_thread` fails in the same way, and reports it
        if reply is not None:
            self._last_active = monotonic()
        return reply

    async def reply_in_thread(self, request: HookRequest, payload: bytes) -> HookReply:
        """Handle an event or a report in a thread, and return the reply; if that fails, an error reply."""
        try:
            if request.is_report:
                return await self._in_thread(self._settler.settle, request, payload)
            return await self._handle_in_thread(request, payload)
        except NeedsCaller as error:
            return self._leave_to_caller(error)
        except (FairleadError, OSError) as error:
            self._errors.report(f"an event could not be decided: {error}")
            return error_reply(UNAVAILABLE, str(error))

    async def _handle_in_thread(self, request: HookRequest, payload: bytes) -> HookReply:
        policy = None
        if not self._handler.waits_long(request):
            try:
                return await self._in_thread(self._handler.handle, request, payload)
            except NeedsLongWait as wait:
                policy = wait.policy
        handle = partial(self._handler.handle, may_wait_long=True, policy=policy)
        return await self._in_thread(handle, request, payload, self._long_threads)

    async def reply_as_json(self, request: HookRequest, payload: bytes) -> dict[str, Any]:
        """Return the JSON answer for a client that calls over HTTP itself."""
        return await self._in_thread(self._handler.handle_as_json, request, payload, self._long_threads)

    def may_tell_to_wait(self, request: HookRequest) -> bool:
        """Return whether a launcher may be told to wait, because the reply depends on another process."""
        return not request.is_report and self._handler.waits_long(request)

    def tell_to_wait(self, reply: asyncio.Task[HookReply], undo: Callable[[str], None]) -> HookReply:
        """Return a 303 that makes the launcher wait for `reply`, which takes longer than launchers wait by themselves.

        `undo` is called with the `undo_id` of the reply if it is not delivered.
        """
        token = token_urlsafe(16)
        self._promised[token] = reply, undo

        def expire() -> None:
            if self._promised.pop(token, None) is not None:
                _undo_later(reply, undo)

        asyncio.get_running_loop().call_later(_TOKEN_LIFETIME, expire)
        return HookReply(WAIT, token=token, milliseconds=_MAX_WAIT)

    def issued(self, token: str) -> bool:
        """Return whether `tell_to_wait` has issued a token that no launcher has used yet."""
        return token in self._promised

    async def wait(self, token: str, _is_gone: Callable[[], bool]) -> HookReply:
        """Return the reply that belongs to a token, once it is there. Each token can be used once."""
        reply, undo = self._promised.pop(token)
        try:
            return await asyncio.shield(reply)
        except asyncio.CancelledError:  # the launcher has gone; the event is recorded nonetheless
            _undo_later(reply, undo)
            raise

    def idle_seconds(self) -> float:
        """Return for how many seconds no event was handled; 0 while one is handled in a thread."""
        return 0.0 if self.in_progress else monotonic() - self._last_active

    def close(self) -> None:
        """Wait for the events in progress. Events for the user's hooks that have no thread yet are cancelled."""
        self._threads.shutdown()
        self._long_threads.shutdown(cancel_futures=True)

    async def _in_thread(
        self,
        handle: Callable[[HookRequest, bytes], T],
        request: HookRequest,
        payload: bytes,
        threads: ThreadPoolExecutor | None = None,
    ) -> T:
        self.in_progress += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads or self._threads, handle, request, payload)
        finally:
            self.in_progress -= 1
            self._last_active = monotonic()

    def _leave_to_caller(self, error: NeedsCaller) -> HookReply:
        self._metrics.declined += 1
        return error_reply(NOT_THIS_DAEMON, str(error))

    def _decline(self, request: HookRequest) -> HookReply | None:
        if is_newer(request.caller.version, self._version):
            self._shutdown.request(f"a launcher of version {request.caller.version} called")
            return error_reply(UPGRADE_REQUIRED, f"this daemon is {self._version}, and shuts down")
        if request.launched and not is_same_home(request, self._home):
            self._metrics.declined += 1
            return error_reply(NOT_THIS_DAEMON, "this daemon serves another home")
        return None


def _undo_later(reply: asyncio.Task[HookReply], undo: Callable[[str], None]) -> None:
    """Call `undo` once an event is handled, because its reply cannot be delivered."""

    def on_done(done: asyncio.Task[HookReply]) -> None:
        if not done.cancelled() and done.exception() is None and done.result().undo_id:
            undo(done.result().undo_id)

    reply.add_done_callback(on_done)
