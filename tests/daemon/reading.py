"""Kills the daemon over and over while agents send mail and others are shown it, and tells what became of it."""

from __future__ import annotations

import re
import signal
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from threading import Event, Lock, Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, NamedTuple

from daemon.daemon_home import LAUNCHER, PATIENCE, until
from daemon.killing import forget_last_start, kill_daemon

from fairlead.ipc import DaemonUnavailable, RequestRefused

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

EVENTS = ("UserPromptSubmit", "Stop", "SessionStart", "PostToolUse")
POLICY = "mail: {stay: always, wait: 2s, maxTurnsPerThread: 0, maxTurnsPerHour: 0}\n"
REPEAT = "may be a repeat"
KILLED_HOOKS = 0.15
"""The share of hooks that are killed themselves."""
HOOK_LIFE = 0.4
"""Seconds after which a hook is killed at the latest, if it is."""
DAEMON_LIFE = 1.0
_MESSAGE = re.compile(r"<([a-z0-9]+:\d+)>")


class Showing(NamedTuple):
    """One time that a message was printed."""

    was_killed: bool
    """The hook that printed it was killed, perhaps before it could say so."""
    says_repeat: bool


@dataclass
class Mail:
    """What became of the messages."""

    sent: set[str] = field(default_factory=set)
    shown: dict[str, list[Showing]] = field(default_factory=dict)
    kills: int = 0
    clients: dict[str, int] = field(default_factory=dict)
    """The process of each session. Not ours: what it asks for would be asked by an agent."""
    lock: Lock = field(default_factory=Lock)

    @property
    def lost(self) -> set[str]:
        return self.sent - self.shown.keys()

    @property
    def doubled(self) -> list[str]:
        """Messages that were shown again, but for the one case that nobody can decide.

        The hook was killed after it had printed the message; then the next showing says that it may be a repeat.
        """
        return [name for name, showings in self.shown.items() if not all(map(_is_undecidable, pairwise(showings)))]

    def hear(self, text: str, *, was_killed: bool) -> None:
        with self.lock:
            for name in set(_MESSAGE.findall(text)):
                self.shown.setdefault(name, []).append(Showing(was_killed, REPEAT in text))


def _is_undecidable(showings: tuple[Showing, Showing]) -> bool:
    return showings[0].was_killed and showings[1].says_repeat


def kill_while_reading(home: DaemonHome, kills: int, *, seed: int = 0) -> Mail:
    """Let two agents send and two others read; kill the daemon so many times, and some of the hooks, too."""
    home.policy(POLICY)
    mail = Mail()
    readers = ("r1", "r2")
    with ExitStack() as stack:
        for reader in readers:
            client = stack.enter_context(subprocess.Popen(["/bin/sleep", "infinity"]))
            stack.callback(client.kill)
            mail.clients[reader] = client.pid
            _hook(home, mail, reader, "SessionStart", PATIENCE)
        _kill_daemons(home, readers, mail, kills, seed)
    return mail


def _kill_daemons(home: DaemonHome, readers: tuple[str, ...], mail: Mail, kills: int, seed: int) -> None:
    no_more_mail, no_more_hooks = Event(), Event()
    until(home.has_mail, "the mail is open")
    # On a busy machine the hook that starts a session may have decided alone: then it comes by the spool.
    until(lambda: len(_names(home, readers)) == len(readers), "both readers are known")
    sending = [Thread(target=_send, args=(home, f"s{number}", readers, mail, no_more_mail)) for number in range(2)]
    reading = [Thread(target=_read, args=(home, reader, mail, no_more_hooks, seed)) for reader in readers]
    for thread in (*sending, *reading):
        thread.start()
    random = Random(seed)
    try:
        for _ in range(kills):
            until(home.has_mail, "a daemon answers")
            sleep(random.uniform(0, DAEMON_LIFE))
            kill_daemon(home)
            mail.kills += 1
    finally:
        no_more_mail.set()
        _join(sending)  # the hooks go on: they start the daemon that takes the last messages
        no_more_hooks.set()
        _join(reading)
    _read_the_rest(home, readers, mail)


def _join(threads: list[Thread]) -> None:
    for thread in threads:
        thread.join()


def _send(home: DaemonHome, prefix: str, readers: tuple[str, ...], mail: Mail, over: Event) -> None:
    """Send until it is over; a message is tried again with its key until the daemon has taken it."""
    names, number = _names(home, readers), 0
    while not over.is_set():
        name, number = f"{prefix}:{number}", number + 1
        message = {"to": [names[readers[number % 2]]], "subject": f"<{name}>", "priority": "urgent", "key": name}
        deadline = monotonic() + PATIENCE
        while name not in mail.sent:
            try:
                home.ask("POST", "/v1/mail/send", body=message, timeout=5.0)
                mail.sent.add(name)
            except (DaemonUnavailable, RequestRefused) as error:
                if monotonic() > deadline:
                    raise AssertionError(f"{name} was never taken: {error}") from None
        sleep(0.1)


def _names(home: DaemonHome, sessions: tuple[str, ...]) -> dict[str, str]:
    agents = home.ask("GET", "/v1/mail/agents?all=true")["agents"]
    return {agent["session"]: agent["name"] for agent in agents if agent["session"] in sessions}


def _read(home: DaemonHome, session: str, mail: Mail, over: Event, seed: int) -> None:
    random = Random(f"{session}{seed}")
    while not over.is_set():
        life = random.uniform(0, HOOK_LIFE) if random.random() < KILLED_HOOKS else PATIENCE
        _hook(home, mail, session, random.choice(EVENTS), life)


def _hook(home: DaemonHome, mail: Mail, session: str, event: str, life: float) -> None:
    """Run a hook as the client does, kill it after a time, and note what it has printed."""
    payload = home.payload(session_id=session, hook_event_name=event, prompt="go on", tool_name="Read", source="resume")
    env = home.environment(CLAUDE_PID=str(mail.clients[session]))
    with subprocess.Popen(
        [LAUNCHER, event],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=home.project,
        env=env,
    ) as hook:
        try:
            out, _ = hook.communicate(payload, life)
        except subprocess.TimeoutExpired:
            hook.kill()
            out, _ = hook.communicate()
    mail.hear(out.decode(), was_killed=hook.returncode == -signal.SIGKILL)


def _read_the_rest(home: DaemonHome, readers: tuple[str, ...], mail: Mail) -> None:
    """Read until nothing is left, and all that is written down was taken in."""
    deadline, is_over = monotonic() + PATIENCE, False
    while not is_over and monotonic() < deadline:
        is_over = not mail.lost and home.has_mail()  # the last kill may have left no daemon
        forget_last_start(home)
        for reader in readers:
            _hook(home, mail, reader, "UserPromptSubmit", PATIENCE)
    receipts = home.state / "run/receipts"
    until(lambda: not home.spooled() and not any(receipts.glob("*")), "no receipt is awaited")
    for reader in readers:
        _hook(home, mail, reader, "UserPromptSubmit", PATIENCE)
