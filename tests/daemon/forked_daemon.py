"""Starts daemons and commands by a fork of a process that has loaded their modules, see `fork_server.py`."""

from __future__ import annotations

import atexit
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PROGRAM = Path(__file__).with_name("fork_server.py")
_PADDING = "x" * (1 << 14)
"""Room for the command line and for the variables of a daemon, where the process table shows them."""
_ANSWER = 64
_INTERPRETER_VARIABLES = ("PYTHON", "LD_", "MALLOC_", "GLIBC_", "LC_")
"""Beginnings of the names of variables that are read before a program of Python begins."""
_WAIT_INTERVALS = (0.001, 0.01)


class ForkedDaemon:
    """A process that was forked, with what the tests use of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self._server = server
        self.pid = pid
        self.returncode: int | None = None
        self._lock = Lock()

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; `None` while the process runs."""
        with self._lock:  # the process can be waited for only once
            if self.returncode is None:
                self.returncode = self._server.ask({"pid": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended, and return the exit code. Raises `subprocess.TimeoutExpired`."""
        begun = monotonic()
        while (code := self.poll()) is None:
            waited = monotonic() - begun
            if timeout is not None and waited > timeout:
                raise subprocess.TimeoutExpired("fairlead.daemon", timeout)
            sleep(_WAIT_INTERVALS[waited > 0.1])
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that has loaded the modules. It ends with this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(_PROGRAM), str(theirs.fileno()), _PADDING],
                env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PADDING": _PADDING},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self._close)

    def ask(self, request: Mapping[str, Any], files: Sequence[int] = ()) -> Any:
        """Return the answer to a request."""
        with self._lock:
            socket.send_fds(self._connection, [json.dumps(request).encode()], files)
            answer = self._connection.recv(_ANSWER)
        if not answer:
            raise RuntimeError(f"the server that forks daemons has ended: exit {self._process.wait()}")
        return json.loads(answer)

    def start(self, command: Sequence[str], env: Mapping[str, str], output: int) -> ForkedDaemon:
        """Start a daemon without input."""
        request = {"command": command, "env": env, "cwd": str(Path.cwd()), "umask": _umask()}
        with Path(os.devnull).open("rb") as nothing:
            return ForkedDaemon(self, self.ask(request, [nothing.fileno(), output]))

    def run(self, command: Sequence[str], env: Mapping[str, str], cwd: Path) -> tuple[int, bytes, bytes]:
        """Run a command of a person's without input. Returns its exit code, stdout and stderr.

        `command` is how an interpreter would be started: with the program, and its words.
        """
        request = {"command": command, "words": command[2:], "env": env, "cwd": str(cwd), "umask": _umask()}
        with Path(os.devnull).open("rb") as nothing, TemporaryFile() as out, TemporaryFile() as err:
            pid = self.ask(request, [nothing.fileno(), out.fileno(), err.fileno()])
            code = ForkedDaemon(self, pid).wait()
            out.seek(0)
            err.seek(0)
            return code, out.read(), err.read()

    def _close(self) -> None:
        self._connection.close()
        self._process.wait()


@cache
def fork_server() -> ForkServer:
    """Return the server of this process; start it at the first call."""
    return ForkServer()


def can_fork(env: Mapping[str, str]) -> bool:
    """Return whether a forked process would be the same as one that this thread starts.

    It would not be in another namespace or with another limit than those that this process began with, nor with a
    variable that the interpreter itself or a library reads when it is loaded.
    """
    return (
        sys.platform == "linux"
        and _inherited() == _INHERITED
        and env.get("LANG") == "C.UTF-8"
        and not any(name.startswith(_INTERPRETER_VARIABLES) for name in env)
    )


def _umask() -> int:
    """Return the umask without changing it: other threads create files."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1], 8) for line in lines if line.startswith("Umask:"))


def _inherited() -> list[object]:
    """Return what a process inherits, beyond what a request has."""
    limits = (getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_"))
    namespaces = Path("/proc/thread-self/ns")
    return [
        *(resource.getrlimit(limit) for limit in limits),
        *(file.readlink() for file in sorted(namespaces.iterdir())),
        os.getresuid(),
        os.getresgid(),
    ]


_INHERITED = _inherited() if sys.platform == "linux" else []
