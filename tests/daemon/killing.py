"""Kills the daemon over and over while events come, and tells what became of each event.

`tests/daemon/test_killing.py` does so for some rounds, and `bench/` for a thousand.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread
from time import sleep
from typing import TYPE_CHECKING

from daemon.daemon_home import until

from fairlead.ipc import daemon_pid

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

POLICY = "preToolUse: {uneditableFiles: [kept.txt]}\n"
LONGEST = 0.15
"""Seconds that a daemon may live at most once it answers: long enough for a hundred events."""


@dataclass
class Outcome:
    """What became of the events."""

    answered: dict[str, int] = field(default_factory=dict)
    """The exit code that a launcher gave, by the session's id, which is another for each event."""
    expected: dict[str, int] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    """How often an event stands in the journal."""
    routes: Counter[str] = field(default_factory=Counter)
    spooled: int = 0
    """Events that were left in the spool."""
    kills: int = 0

    @property
    def wrong(self) -> list[str]:
        """Events that got another answer than the policy's: a gate that opened, or one that shut without a reason."""
        return [name for name, code in self.answered.items() if code != self.expected[name]]

    @property
    def lost(self) -> list[str]:
        return [name for name in self.answered if not self.kept[name]]

    @property
    def doubled(self) -> list[str]:
        return [name for name, count in self.kept.items() if count > 1]


def kill_rounds(home: DaemonHome, rounds: int, *, sessions: int = 2, seed: int = 0) -> Outcome:
    """Let several sessions send events without a pause; in each round kill the daemon at a random moment.

    An event starts the next daemon. Of the ten seconds that are waited between two starts, none is waited here: the
    stamp is made old.
    """
    home.policy(POLICY)
    outcome, over, random = Outcome(), Event(), Random(seed)
    senders = [Thread(target=_send, args=(home, f"s{number}", outcome, over)) for number in range(sessions)]
    for sender in senders:
        sender.start()
    try:
        until(lambda: any(record.route == "daemon" for record in home.happened()), "a daemon has answered an event")
        for _ in range(rounds):
            until(lambda: home.status() is not None, "a daemon answers")
            sleep(random.uniform(0, LONGEST))
            kill_daemon(home)
            outcome.kills += 1
    finally:
        over.set()
        for sender in senders:
            sender.join()
    _let_all_be_taken(home)
    outcome.kept.update(record.session for record in home.happened())
    outcome.routes.update(record.route for record in home.happened())
    outcome.spooled = len(home.spooled())
    return outcome


def _send(home: DaemonHome, prefix: str, outcome: Outcome, over: Event) -> None:
    number = 0
    while not over.is_set():
        number += 1
        name, is_kept = f"{prefix}-{number}", number % 2
        edit = {"file_path": str(home.project / ("kept.txt" if is_kept else "src/a.txt"))}
        outcome.expected[name] = 2 if is_kept else 0
        payload = home.payload(session_id=name, tool_name="Edit", tool_input=edit)
        outcome.answered[name] = home.hook("PreToolUse", payload).exit_code


def kill_daemon(home: DaemonHome) -> None:
    """Kill the daemon, and let the next one start at once."""
    pid = daemon_pid(str(home.state / "run"))
    if pid:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    forget_last_start(home)


def forget_last_start(home: DaemonHome) -> None:
    """Make the stamp of the last start old."""
    with suppress(FileNotFoundError):
        os.utime(home.state / "run/starting", (0, 0))


def _let_all_be_taken(home: DaemonHome) -> None:
    forget_last_start(home)
    home.hook("PreToolUse", home.edit("src/a.txt"))
    until(lambda: home.status() is not None and not home.spooled(), "a daemon has taken all in")
