"""Bounds the turns that mail causes without a person: two agents that answer each other must not go on all night.

A turn is automatic if mail keeps an agent going at the end of a turn, or wakes it. After too many of them, in one
thread or within an hour, the mail waits for the person: for a prompt in the session, or a message from them.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from fairlead.mail import USER
from fairlead.paths import make_private, state_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.decide import IdleSettings
    from fairlead.mail import Message

_HOUR = 3600.0
_MAX_AGENTS = 1000
_MAX_TURNS = 1000
_MAX_THREADS = 200


class AgentTurns(msgspec.Struct):
    """The automatic turns of an agent since the person last wrote to it."""

    times: list[float] = []
    threads: dict[int, int] = {}
    """How many turns mail of each thread has caused."""
    held: str = ""
    """Why mail waits for the person; empty if it does not."""
    is_stopped: bool = False
    """There were too many turns within an hour: all mail waits, whatever thread it is in."""
    thread_limit: int = 0
    """The turns that one thread may cause, when this was last checked."""


class TurnLimiter:
    """Counts automatic turns. A file keeps the counts, so that a daemon that is started again goes on with them."""

    def __init__(self, file: str = "") -> None:
        """Keep the counts in a file; by default in the user's state folder."""
        self._file = file or f"{state_folder()}/mail-turns.json"
        self._lock = Lock()
        self._agents: dict[int, AgentTurns] | None = None

    def check(self, agent: int, queued: Sequence[Message], limits: IdleSettings, now: float) -> tuple[str, bool]:
        """Return why the queued mail of an agent may cause no turn, "" if it may, and whether that is new."""
        if any(message.sender == USER.name for message in queued):
            self.release(agent)
            return "", False
        with self._lock:
            turns = self._read().get(agent)
            if turns is None:
                return "", False
            turns.thread_limit = limits.turns_per_thread
            before, turns.held = turns.held, _reason(turns, queued, limits, now)
            if turns.held != before:
                self._write()
            return turns.held, bool(turns.held) and not before

    def add(self, agent: int, threads: Iterable[int], now: float) -> None:
        """Count a turn that mail of these threads has caused."""
        with self._lock:
            agents = self._read()
            if agent not in agents and len(agents) >= _MAX_AGENTS:
                del agents[next(iter(agents))]
            turns = agents.setdefault(agent, AgentTurns())
            turns.times = [at for at in turns.times[-_MAX_TURNS:] if now - at < _HOUR] + [now]
            for thread in set(threads):
                turns.threads[thread] = turns.threads.pop(thread, 0) + 1
            while len(turns.threads) > _MAX_THREADS:
                del turns.threads[next(iter(turns.threads))]
            self._write()

    def release(self, agent: int) -> None:
        """Begin to count anew, because the person has written to an agent."""
        with self._lock:
            if self._read().pop(agent, None) is not None:
                self._write()

    def held(self, agent: int, message: Message | None = None) -> str:
        """Return why the mail of an agent, or a message to it, waits for the person; empty if it does not."""
        with self._lock:
            turns = self._read().get(agent)
            if turns is None or (message is not None and _is_exempt(turns, message)):
                return ""
            return turns.held

    def _read(self) -> dict[int, AgentTurns]:
        if self._agents is None:
            try:
                with open(self._file, "rb") as file:
                    self._agents = msgspec.json.decode(file.read(), type=dict[int, AgentTurns])
            except (OSError, ValueError):  # none yet, or damaged: the counts begin anew
                self._agents = {}
        return self._agents

    def _write(self) -> None:
        """Replace the file. What cannot be written is counted in memory alone."""
        beside = f"{self._file}.{os.getpid()}"
        try:
            make_private(os.path.dirname(self._file))
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(beside, flags, 0o600), "wb") as file:
                file.write(msgspec.json.encode(self._agents))
            os.replace(beside, self._file)
        except OSError:
            return


def _is_exempt(turns: AgentTurns, message: Message) -> bool:
    """Return whether a message does not wait although other mail does: the person's, and that of another thread."""
    is_other = not turns.is_stopped and turns.threads.get(message.thread, 0) < turns.thread_limit
    return message.sender == USER.name or is_other


def _reason(turns: AgentTurns, queued: Sequence[Message], limits: IdleSettings, now: float) -> str:
    in_hour = sum(now - at < _HOUR for at in turns.times)
    if turns.is_stopped or (limits.turns_per_hour and in_hour >= limits.turns_per_hour):
        turns.is_stopped = True
        return turns.held or f"{in_hour} automatic turns within an hour"
    limit = limits.turns_per_thread
    if limit and queued and all(turns.threads.get(message.thread, 0) >= limit for message in queued):
        return f"{limit} automatic turns in one thread"
    return ""
