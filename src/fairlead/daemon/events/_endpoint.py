"""Where the requests of launchers arrive: events, status lines, waits. In the event loop.

It declines what this daemon must not decide, and chooses whether an event is handled in the loop or in a thread.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import TYPE_CHECKING, Any

from fairlead.daemon.events._extension import NotThisDaemon
from fairlead.daemon.events._messages import (
    NOT_THIS_DAEMON,
    UNAVAILABLE,
    UPGRADE_REQUIRED,
    HookReply,
    error_reply,
    home_of,
    is_newer,
    is_same_home,
)
from fairlead.daemon.events._status_line import answer_status_line
from fairlead.errors import FairleadError
from fairlead.sessions import STATUS_LINE

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._metrics import Metrics
    from fairlead.daemon._shutdown import Shutdown
    from fairlead.daemon.events._handler import EventHandler
    from fairlead.daemon.events._messages import HookRequest
    from fairlead.daemon.events._plans import PlanSettler
    from fairlead.daemon.sessions._tracker import SessionTracker

_THREADS = 4


class HookEndpoint:
    """Answers launchers."""

    def __init__(  # noqa: PLR0913, PLR0917 - the services it connects
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
        self._threads = ThreadPoolExecutor(_THREADS, "events")
        self._last_active = monotonic()
        self.in_progress = 0

    def reply_now(self, request: HookRequest, payload: bytes) -> HookReply | None:
        """Return the reply if it is known to be quick; `None` means to `await reply(...)`."""
        declined = self._decline(request)
        if declined is not None:
            return declined
        try:
            if request.event == STATUS_LINE:
                reply: HookReply | None = answer_status_line(self._tracker, request, payload)
            elif request.is_report:
                reply = self._settler.settle_inline(request, payload)
            else:
                reply = self._handler.handle_inline(request, payload)
        except (FairleadError, OSError):
            return None  # `reply` runs into it again, and reports it
        if reply is not None:
            self._last_active = monotonic()
        return reply

    async def reply(self, request: HookRequest, payload: bytes) -> HookReply:
        """Return the reply of an event that is handled in a thread."""
        try:
            handle = self._settler.settle if request.is_report else self._handler.handle
            reply: HookReply = await self._in_thread(handle, request, payload)
        except NotThisDaemon as error:
            self._metrics.elsewhere += 1
            return error_reply(NOT_THIS_DAEMON, str(error))
        except (FairleadError, OSError) as error:
            self._errors.report(f"an event could not be decided: {error}")
            return error_reply(UNAVAILABLE, str(error))
        return reply

    async def reply_as_json(self, request: HookRequest, payload: bytes) -> dict[str, Any]:
        """Return the JSON answer for a client that calls over HTTP itself."""
        document: dict[str, Any] = await self._in_thread(self._handler.handle_as_json, request, payload)
        return document

    def idle_seconds(self) -> float:
        """Return for how long no event was handled."""
        return 0.0 if self.in_progress else monotonic() - self._last_active

    def close(self) -> None:
        """Wait for the events in progress."""
        self._threads.shutdown()

    async def _in_thread(self, handle: Any, request: HookRequest, payload: bytes) -> Any:
        self.in_progress += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, handle, request, payload)
        finally:
            self.in_progress -= 1
            self._last_active = monotonic()

    def _decline(self, request: HookRequest) -> HookReply | None:
        if is_newer(request.caller.version, self._version):
            self._shutdown.request(f"a launcher of version {request.caller.version} called")
            return error_reply(UPGRADE_REQUIRED, f"this daemon is {self._version}, and shuts down")
        if request.launched and not is_same_home(request, self._home):
            self._metrics.elsewhere += 1
            return error_reply(NOT_THIS_DAEMON, "this daemon serves another home")
        return None
