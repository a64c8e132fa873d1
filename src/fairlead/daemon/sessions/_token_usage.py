"""Updates the token usage of subagents from their transcripts.

A transcript is read when its subagent has ended, and also before while sessions are watched. The files are read in a
thread, and no more than a limited part at a time.
"""

from __future__ import annotations

import asyncio
from time import monotonic, time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions import transcript_of

if TYPE_CHECKING:
    from fairlead.clients import TranscriptReader, Usage
    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.sessions import Session

_TICK = 1.0
_MIN_INTERVAL = 3.0
"""The minimum number of seconds between two reads of the transcripts of running subagents."""
_FLUSH_TIME = 5.0
"""Seconds after a subagent's end after which its transcript counts as complete."""


class SubagentTokenUsage:
    """Reads the transcripts of subagents, and stores their usage in the tracker. For the event loop."""

    def __init__(self, tracker: SessionTracker) -> None:
        self._tracker = tracker
        self._readers: dict[str, TranscriptReader | None] = {}
        """By client: its reader; `None` for a client without readable transcripts."""
        self._complete: set[str] = set()
        """The ids of subagents that have ended and need not be read again."""
        self._next = 0.0
        self._reading = asyncio.Lock()

    async def run_forever(self) -> None:
        """Read the transcripts of ended subagents every second.

        While a stream of changes is open, also read those of running subagents.
        """
        while True:
            await asyncio.sleep(_TICK)
            await (self.refresh() if self._tracker.streams else self._read(also_running=False))

    async def refresh(self) -> None:
        """Read the transcripts of running and ended subagents, unless that was done less than 3 seconds ago."""
        if monotonic() >= self._next:
            self._next = monotonic() + _MIN_INTERVAL
            await self._read(also_running=True)

    async def _read(self, *, also_running: bool) -> None:
        async with self._reading:
            by_client: dict[str, dict[str, Session]] = {}
            for name, session in self._subagents_to_read(also_running=also_running).items():
                by_client.setdefault(session.client, {})[name] = session
            for client, subagents in by_client.items():
                await self._read_of(client, subagents)

    async def _read_of(self, client: str, subagents: dict[str, Session]) -> None:
        """Read the transcripts of subagents of one client, by their session ids, and update their usage."""
        if client not in self._readers:
            self._readers[client] = client_or_default(client).transcripts()
        reader, started = self._readers[client], time()
        if reader is None:
            self._complete.update(name for name, session in subagents.items() if session.ended is not None)
            return
        files = {name: transcript_of(session, self._tracker.root_of(session)) for name, session in subagents.items()}
        usages = await asyncio.get_running_loop().run_in_executor(None, reader.read, files)
        for name, session in subagents.items():
            if name in usages:
                usage = _with_percent(usages[name], self._tracker.root_of(session))
                self._tracker.set_subagent_usage(name, usage)
            is_over = session.ended is not None and started - session.ended > _FLUSH_TIME
            if is_over and name not in reader.unfinished:
                self._complete.add(name)

    def _subagents_to_read(self, *, also_running: bool) -> dict[str, Session]:
        """Return the subagents whose transcripts may have text that was not read yet, by id.

        With `also_running`, these include all that are running.
        """
        subagents = {session.id: session for session in self._tracker.subagents()}
        self._complete.intersection_update(subagents)
        return {
            name: session
            for name, session in subagents.items()
            if (also_running if session.ended is None else name not in self._complete)
        }


def _with_percent(usage: Usage, root: Session) -> Usage:
    """Return a subagent's usage with `context_percent`, how full its context window is.

    Return it unchanged unless the main session has the same model, and the size of that session's window is known.
    """
    main = root.usage
    if main is None or not main.context_window or main.model != usage.model or usage.context_tokens is None:
        return usage
    return replace(usage, context_percent=min(100.0, 100 * usage.context_tokens / main.context_window))
