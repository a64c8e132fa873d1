"""Limits the turns that mail causes without the user, so that two agents do not answer each other without end.

A turn is automatic if mail keeps an agent from stopping, or wakes it. After too many automatic turns, in one thread or
within an hour, mail is withheld until the user writes a prompt in the session, or a message to the agent. The user and
the senders get a notice.
"""

from __future__ import annotations

import os
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from fairlead.durations import HOUR
from fairlead.files import write_private
from fairlead.mail import FAIRLEAD, USER, Draft, MailError
from fairlead.paths import make_private, state_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.decide import IdleSettings
    from fairlead.mail import Agent, Message, MessageService


_MAX_AGENTS = 1000
_MAX_TURNS = 1000
_MAX_THREADS = 200
_WITHOUT_NOTICE = frozenset({USER.name, FAIRLEAD.name})
_MAX_SENDERS = 10


class AgentTurns(msgspec.Struct):
    """The automatic turns of an agent since the user last wrote to it."""

    times: list[float] = []
    """The Unix times of the turns within the last hour."""
    threads: dict[int, int] = {}
    """The number of turns by thread id. The thread that caused the latest turn is the last one."""
    withheld: str = ""
    """The reason why mail is withheld; empty if it is not."""
    is_stopped: bool = False
    """Whether mail of all threads is withheld, because there were too many turns within an hour."""
    thread_limit: int = 0
    """The limit of turns in one thread at the last check."""


class TurnLimiter:
    """Counts automatic turns of agents, given by their ids. Stores the counts for the next daemon. Thread-safe."""

    def __init__(self, file: str = "") -> None:
        """Store the counts in a file, by default in the user's state folder."""
        self._file = file or f"{state_folder()}/mail-turns.json"
        self._lock = Lock()
        self._agents: dict[int, AgentTurns] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether no turn of any agent is counted."""
        with self._lock:
            return not self._read()

    def check(self, agent: int, queued: Sequence[Message], limits: IdleSettings, now: float) -> tuple[str, bool]:
        """Return the reason why the queued mail of an agent is withheld, "" if it is not, and whether that is new.

        A message from the user releases the mail. `now` is a Unix time.
        """
        if any(message.sender == USER.name for message in queued):
            self.release(agent)
            return "", False
        with self._lock:
            turns = self._read().get(agent)
            if turns is None:
                return "", False
            turns.thread_limit = limits.turns_per_thread
            before, turns.withheld = turns.withheld, _reason(turns, queued, limits, now)
            if turns.withheld != before:
                self._write()
            return turns.withheld, bool(turns.withheld) and not before

    def add(self, agent: int, threads: Iterable[int], now: float) -> None:
        """Count a turn of an agent that mail of these threads has caused."""
        with self._lock:
            agents = self._read()
            if agent not in agents and len(agents) >= _MAX_AGENTS:
                del agents[next(iter(agents))]
            turns = agents.setdefault(agent, AgentTurns())
            turns.times = [at for at in turns.times[-_MAX_TURNS:] if now - at < HOUR] + [now]
            for thread in set(threads):
                turns.threads[thread] = turns.threads.pop(thread, 0) + 1
            while len(turns.threads) > _MAX_THREADS:
                del turns.threads[next(iter(turns.threads))]
            self._write()

    def release(self, agent: int) -> None:
        """Reset the counts of an agent, because the user has written to it."""
        with self._lock:
            if self._read().pop(agent, None) is not None:
                self._write()

    def withheld(self, agent: int, message: Message | None = None) -> str:
        """Return the reason why the mail of an agent, or one message to it, is withheld; "" if it is not.

        It is the reason at the last `check`.
        """
        with self._lock:
            turns = self._read().get(agent)
            if turns is None or (message is not None and _is_exempt(turns, message)):
                return ""
            return turns.withheld

    def _read(self) -> dict[int, AgentTurns]:
        if self._agents is None:
            try:
                with open(self._file, "rb") as file:
                    self._agents = msgspec.json.decode(file.read(), type=dict[int, AgentTurns])
            except (OSError, ValueError):  # missing or damaged: start with empty counts
                self._agents = {}
        return self._agents

    def _write(self) -> None:
        """Replace the file. If that fails, the counts are kept in memory only."""
        with suppress(OSError):
            make_private(os.path.dirname(self._file))
            write_private(self._file, msgspec.json.encode(self._agents))


def _is_exempt(turns: AgentTurns, message: Message) -> bool:
    """Return whether a message is not withheld, although other mail is.

    That is so if it is from the user, or in a thread whose limit is not reached.
    """
    is_other = not turns.is_stopped and turns.threads.get(message.thread, 0) < turns.thread_limit
    return message.sender == USER.name or is_other


def _reason(turns: AgentTurns, queued: Sequence[Message], limits: IdleSettings, now: float) -> str:
    in_hour = sum(now - at < HOUR for at in turns.times)
    if turns.is_stopped or (limits.turns_per_hour and in_hour >= limits.turns_per_hour):
        turns.is_stopped = True
        return turns.withheld or f"{in_hour} automatic turns within an hour"
    limit = limits.turns_per_thread
    if limit and queued and all(turns.threads.get(message.thread, 0) >= limit for message in queued):
        return f"{limit} automatic turns in one thread"
    return ""


def send_withheld_notices(service: MessageService, agent: Agent, queued: Sequence[Message], reason: str) -> None:
    """Notify the user and the senders of the queued messages that these messages are held, and why.

    Errors are ignored, because `fairlead status` shows the reason, too.
    """
    senders = list(dict.fromkeys(message.sender for message in queued if message.sender not in _WITHOUT_NOTICE))
    count = f"{len(queued)} message{'' if len(queued) == 1 else 's'}"
    to_user = Draft(
        to=(USER.name,),
        subject=f"Mail for {agent.name} waits for you: {reason}",
        body=(
            f"{count} from {', '.join(senders) or FAIRLEAD.name} to {agent.name} wait, because mail has kept it going "
            f"for {reason} without you.\nTo let it go on, write a prompt in its session, or send it a message: "
            f'fairlead send {agent.name} "…". The limits are mail.maxTurnsPerThread and mail.maxTurnsPerHour.'
        ),
    )
    to_senders = [
        Draft(
            to=(name,),
            subject=f"Your mail to {agent.name} waits for a person: {reason}",
            body=f"It is shown to {agent.name} after the user's next message to the agent. Do not send it again.",
            priority="low",
        )
        for name in senders[:_MAX_SENDERS]
        if name != agent.name
    ]
    for draft in (to_user, *to_senders):
        try:
            service.send(FAIRLEAD, draft)
        except MailError:
            continue
