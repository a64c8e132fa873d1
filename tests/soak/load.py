"""A daemon under load for a while: sessions that send events, agents that send and read mail, somebody who watches."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from time import monotonic, time_ns
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import scratch_home, until
from daemon.talk import connect, request
from soak.pour import Sizes, sizes

from fairlead.ipc import DaemonUnavailable, stream_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

POLICY = "preToolUse: {uneditableFiles: [kept.txt]}\n"
MAX_MEMORY = 160 << 20
"""Of the daemon and of the store's process."""
MAX_GROWTH = 1.2
"""By how much the memory of the last third of the time may exceed that of the second."""
MAX_LAG = 1.0
_WARM = 60
"""Samples from which on memory should have stopped growing."""
_LAST_PROMPTS = 20
"""Prompts of each session at the end, of which each shows some messages."""
_MESSAGE = re.compile(r"<(\d+:\d+)>")
_TEXT = "some words of a file that an agent has changed " * 12


@dataclass
class Sample:
    """The daemon at one moment."""

    memory: int
    descriptors: int
    lag: float
    sizes: Sizes


@contextmanager
def new_daemon() -> Iterator[DaemonHome]:
    """Run a daemon that has loaded nothing before: its memory is looked at."""
    with scratch_home() as home:
        home.is_forked = False
        with home.daemon():
            yield home


@dataclass
class Soak:
    """What was sent, what came of it, and how the daemon was meanwhile."""

    home: DaemonHome
    samples: list[Sample] = field(default_factory=list)
    answered: int = 0
    wrong: list[str] = field(default_factory=list)
    sent: set[str] = field(default_factory=set)
    shown: Counter[str] = field(default_factory=Counter)
    watched: int = 0
    slowest: float = 0.0
    lock: Lock = field(default_factory=Lock)

    def run(self, seconds: float, *, sessions: int = 8, rate: float = 25.0) -> None:
        """Let each session send so many events a second."""
        self.home.policy(POLICY)
        over = Event()
        for number in range(sessions):
            self._event(f"s{number}", "SessionStart", source="startup")
        until(self.home.has_mail, "the mail is open")
        threads = [Thread(target=self._session, args=(n, sessions, rate, over)) for n in range(sessions)]
        threads.append(Thread(target=self._watch, args=(over,), daemon=True))
        for thread in threads:
            thread.start()
        end = monotonic() + seconds
        while monotonic() < end and not self.wrong:
            self.samples.append(self._sample())
            over.wait(min(1.0, seconds / 6))
        over.set()
        for thread in threads[:-1]:
            thread.join()
        for number in [*range(sessions)] * _LAST_PROMPTS:
            if self.sent - self.shown.keys():
                self._prompt(number)

    # -- load --------------------------------------------------------------------------------------------

    def _session(self, number: int, sessions: int, rate: float, over: Event) -> None:
        random, count, names = Random(number), 0, self._names()
        due = monotonic()
        while not over.is_set():
            count += 1
            due = max(due + 1 / rate, monotonic() - 1.0)
            over.wait(max(0.0, due - monotonic()))
            try:
                self._act(random, number, count, names[f"s{(number + 1) % sessions}"])
            except (OSError, DaemonUnavailable, ValueError) as error:
                self.wrong.append(f"{type(error).__name__}: {error}")
                return

    def _act(self, random: Random, number: int, count: int, friend: str) -> None:
        session, kind = f"s{number}", random.random()
        if count % 20 == 0:
            self._send(number, count, friend)
        elif count % 20 == 10:
            self._prompt(number)
        elif kind < 0.5:
            name = "kept.txt" if kind < 0.1 else "src/a.txt"
            edit = {"file_path": f"{self.home.project}/{name}", "old_string": "a", "new_string": _TEXT}
            head, _ = self._event(session, "PreToolUse", tool_name="Edit", tool_input=edit)
            if (b"fairlead-exit: 2" in head) != (name == "kept.txt"):
                self.wrong.append(f"another answer than the policy's: {head!r}")
        else:
            self._event(session, "PostToolUse", tool_name="Read", tool_input={"file_path": "a"}, tool_response=_TEXT)

    def _send(self, number: int, count: int, friend: str) -> None:
        name = f"{number}:{count}"
        with self.lock:
            self.sent.add(name)
        self.home.ask("POST", "/v1/mail/send", body={"to": [friend], "subject": f"<{name}>", "session": f"s{number}"})

    def _prompt(self, number: int) -> None:
        _, body = self._event(f"s{number}", "UserPromptSubmit", prompt="go on")
        with self.lock:
            self.shown.update(set(_MESSAGE.findall(body.decode())))

    def _event(self, session: str, event: str, **fields: Any) -> tuple[bytes, bytes]:
        """Ask as a launcher does. Without a process each: the daemon is under test, and not the machine."""
        payload = self.home.payload(session_id=session, hook_event_name=event, **fields)
        headers = {"fairlead_id": f"{time_ns():016x}-{session[1:]}", "fairlead_pid": str(os.getpid())}
        started = monotonic()
        with closing(connect(self.home.socket)) as connection:
            connection.sendall(request("POST", f"/v1/events/{event}", payload, **headers))
            data = b""
            while block := connection.recv(1 << 16):
                data += block
        head, _, body = data.partition(b"\r\n\r\n")
        with self.lock:
            self.answered += 1
            self.slowest = max(self.slowest, monotonic() - started)
            if not head.startswith(b"HTTP/1.1 200"):
                self.wrong.append(f"{event}: {head[:200]!r}")
        return head, body

    def _watch(self, over: Event) -> None:
        with suppress(DaemonUnavailable):
            for kind, _ in stream_events("/v1/sessions/stream", timeout=60.0, at=str(self.home.socket)):
                self.watched += bool(kind)
                if over.is_set():
                    return

    def _names(self) -> dict[str, str]:
        agents = self.home.ask("GET", "/v1/mail/agents?all=true")["agents"]
        return {agent["session"]: agent["name"] for agent in agents}

    # -- results -----------------------------------------------------------------------------------------

    def _sample(self) -> Sample:
        status = self.home.status() or {}
        return Sample(
            memory=status["memory"],
            descriptors=len(list(Path(f"/proc/{status['pid']}/fd").glob("*"))),
            lag=status["loop_lag"],
            sizes=sizes(self.home),
        )

    def problems(self) -> list[str]:
        """Return which promises were broken."""
        third = max(1, len(self.samples) // 3)
        middle, last = self.samples[third : 2 * third] or self.samples, self.samples[-third:]
        memory = max(one.memory for one in middle), max(one.memory for one in last)
        descriptors = max(one.descriptors for one in middle), min(one.descriptors for one in last)
        until(lambda: (self.home.status() or {})["events"] >= self.answered, "all events are counted")
        total = (self.home.status() or {})["events"]
        doubled = [name for name, count in self.shown.items() if count > 1]
        is_warm = len(self.samples) >= _WARM
        found = {
            f"memory grew from {memory[0]:,} to {memory[1]:,} bytes": is_warm and memory[1] > memory[0] * MAX_GROWTH,
            f"{memory[1]:,} bytes of memory": memory[1] > MAX_MEMORY,
            f"{descriptors[1]} descriptors after {descriptors[0]}": descriptors[1] > descriptors[0] + 20,
            f"the loop was late by {max(one.lag for one in last):.3f} s": min(one.lag for one in last) > MAX_LAG,
            f"{self.answered} events answered, {total} counted": total != self.answered,
            f"messages lost: {sorted(self.sent - self.shown.keys())[:5]}": bool(self.sent - self.shown.keys()),
            f"messages doubled: {doubled[:5]}": bool(doubled),
            "nothing was seen by who watches": not self.watched,
        }
        largest = Sizes(*(max(column) for column in zip(*(one.sizes for one in self.samples), strict=True)))
        return [*self.wrong[:5], *largest.problems(), *(text for text, is_broken in found.items() if is_broken)]

    def report(self) -> str:
        """Return the figures as text."""
        last = self.samples[-1]
        return json.dumps(
            {
                "events": self.answered,
                "messages": len(self.sent),
                "changes watched": self.watched,
                "slowest answer, s": round(self.slowest, 3),
                "memory, MB": [round(one.memory / 2**20) for one in (self.samples[0], last)],
                "descriptors": [self.samples[0].descriptors, last.descriptors],
                "journal, MB": round(last.sizes.journal / 2**20, 1),
                "databases, MB": round(last.sizes.store / 2**20, 1),
            },
            indent=2,
        )
