"""What is fuzzed from outside: a running daemon by its socket, and the launcher by its stdin."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.daemon_home import LAUNCHER
from daemon.talk import connect, request
from fuzz.mutations import PAYLOADS, mutate_bytes, mutate_json
from fuzz.targets import ANSWER_TIME, Finding, TooSlow, run_in_time

from fairlead.ipc import DaemonUnavailable
from fairlead.journal import DaemonRecord

if TYPE_CHECKING:
    from random import Random

    from daemon.daemon_home import DaemonHome, DaemonProcess

_ROUTES = (
    *("/v1/events/PreToolUse", "/v1/events/Stop", "/v1/events/Nothing", "/v1/plans/Stop", "/v1/waits", "/v1/wakes"),
    *(
        "/v1/mail/send",
        "/v1/mail/poll",
        "/v1/mail/inbox?limit=9",
        "/v1/sessions",
        "/v1/status",
        "/metrics",
        "/v1/commands/inbox",
    ),
)


class Sockets:
    """Whatever is sent to the socket, the daemon goes on, and answers the next one at once."""

    name = "sockets"

    def __init__(self, home: DaemonHome) -> None:
        self._home = home
        self._pid = home.ask("GET", "/v1/status")["pid"]
        self._count = 0
        self.replacement: DaemonProcess | None = None
        """The daemon that was started in place of one that was gone."""

    def make(self, random: Random) -> bytes:
        body = mutate_json(random.choice(PAYLOADS), random)
        headers = {
            "fairlead_acks": random.choice("0129"),
            "fairlead_steps": "1",
            "fairlead_id": f"0{random.getrandbits(60):x}-1",
        }
        whole = request(random.choice(("POST", "GET")), random.choice(_ROUTES), body, **headers)
        return mutate_bytes(whole, random) if random.random() < 0.7 else whole

    def run(self, case: bytes) -> None:
        try:
            connected = connect(self._home.socket)
        except OSError as error:
            raise self._gone() from error
        with connected as connection:
            connection.settimeout(0.002)  # most are answered by then; the others are left, as by a killed client
            try:
                connection.sendall(case)
                connection.recv(1 << 16)
            except OSError:
                pass
        self._count += 1
        if self._count % 50 == 0:
            self.check()

    def check(self) -> None:
        """Raise `Finding` if the daemon is gone, or does not answer although it had the time to."""
        before = self._processor_time()
        with suppress(DaemonUnavailable):
            if self._home.ask("GET", "/v1/status", timeout=ANSWER_TIME)["pid"] == self._pid:
                return
        after = self._processor_time()
        if before is None or after is None:
            raise self._gone()
        raise TooSlow(f"the daemon hangs, after {after - before:.1f} s of processor time")

    def _processor_time(self) -> float | None:
        """Return how many seconds the daemon has used; `None` if it has ended."""
        try:
            state, *numbers = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        except FileNotFoundError:
            return None
        return None if state == "Z" else (int(numbers[10]) + int(numbers[11])) / os.sysconf("SC_CLK_TCK")

    def _gone(self) -> Finding:
        """Return the finding, with what the daemon said last, and start another one for the next cases."""
        said = [record.what for record in self._home.journal() if isinstance(record, DaemonRecord)]
        self.replacement = self._home.start()
        self._pid = self.replacement.pid
        return Finding(f"the daemon is gone: {said[-1] if said else 'it has never started'}")


class Launchers:
    """Whatever the client sends, a tool call gets an answer: none, a decision, or a block with a reason."""

    name = "launchers"

    def __init__(self, home: DaemonHome) -> None:
        self._home = home

    def make(self, random: Random) -> bytes:
        return mutate_json(random.choice(PAYLOADS), random)

    def run(self, case: bytes) -> None:
        done = run_in_time([LAUNCHER, "PreToolUse"], case, self._home.project, self._home.environment())
        if done.returncode not in {0, 2} or b"Traceback" in done.stderr:
            raise Finding(f"exit code {done.returncode}: {done.stderr.decode('utf-8', 'replace')[:300]}")
        if done.returncode == 2 and not done.stderr.strip():
            raise Finding("blocked without a reason")
        if done.stdout:
            json.loads(done.stdout)
