"""Processes that call Fairlead: a client with sessions, a person at a terminal, a program without either.

Each is a real process that runs commands as its children. So the daemon sees what it would see in earnest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from daemon.daemon_home import FAIRLEAD, LAUNCHER, Done

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

_PROGRAM = """
import json, os, subprocess, sys
if sys.argv[1]:
    os.close(os.open(sys.argv[1], os.O_RDWR))  # the first terminal that the leader of a session opens is its own
for line in sys.stdin:
    asked = json.loads(line)
    child = subprocess.Popen(asked["run"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, **asked["env"]}, cwd=asked["cwd"], text=True, errors="replace")
    out, err = child.communicate(asked["stdin"])
    print(json.dumps([child.returncode, out, err]), flush=True)
"""


class Process:
    """A process that runs what it is told to. It has a session of the operating system of its own."""

    def __init__(self, home: DaemonHome, *, terminal: str = "", **env: str) -> None:
        self._home = home
        self._child = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, terminal],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=home.environment(**env),
            cwd=home.project,
            start_new_session=True,
            text=True,
        )
        self.pid = self._child.pid

    def run(self, command: list[str], stdin: str = "", **env: str) -> Done:
        """Run a command, and wait for it."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        asked = {"run": command, "stdin": stdin, "env": env, "cwd": str(self._home.project)}
        print(json.dumps(asked), file=self._child.stdin, flush=True)
        return Done(*json.loads(self._child.stdout.readline()))

    def fairlead(self, *words: str, stdin: str = "", **env: str) -> Done:
        """Run a command of Fairlead's."""
        return self.run([str(FAIRLEAD), *words], stdin, **env)

    def mail(self, *words: str, stdin: str = "", **env: str) -> Any:
        """Run a command of the mail that must succeed, and give its JSON."""
        done = self.fairlead(*words, "--json", stdin=stdin, **env)
        assert done.exit_code == 0, done
        return json.loads(done.stdout)

    def event(self, event: str, session: str, **fields: object) -> Done:
        """Let something happen in a session of this process: it is the launcher's parent, as a client is."""
        payload = self._home.payload(session_id=session, hook_event_name=event, **fields)
        done = self.run([str(LAUNCHER), event], payload.decode())
        assert done.exit_code == 0, done
        return done

    def close(self) -> None:
        """End it."""
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(30)
        self._child.stdout.close()


@contextmanager
def client(home: DaemonHome, *sessions: str, **env: str) -> Iterator[Process]:
    """A client in which sessions begin."""
    process = Process(home, **env)
    for session in sessions:
        process.event("SessionStart", session, source="startup")
    try:
        yield process
    finally:
        process.close()


@contextmanager
def person(home: DaemonHome, **env: str) -> Iterator[Process]:
    """A person at a terminal."""
    master, slave = os.openpty()
    process = Process(home, terminal=os.ttyname(slave), **env)
    try:
        yield process
    finally:
        process.close()
        os.close(slave)
        os.close(master)


@contextmanager
def program(home: DaemonHome, **env: str) -> Iterator[Process]:
    """A program that belongs to no session and has no terminal."""
    process = Process(home, **env)
    try:
        yield process
    finally:
        process.close()
