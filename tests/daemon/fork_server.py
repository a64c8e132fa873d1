"""A program that loads the daemon's modules once, and forks a daemon for each request; or a process for a command.

To load them takes most of the processor time of a daemon that lives for one test, and of a command of a person's. A
forked process is like any other: it has the descriptors, folder, umask, variables and command line that a new
interpreter would have. The process of a daemon's store is forked too, before the daemon has threads: a process with
threads cannot be forked safely.

    PADDING=xxx… python fork_server.py DESCRIPTOR xxx…     see `forked_daemon.py`
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import fairlead

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NOT_LOADED = ("fairlead.tui", "fairlead.testing", "fairlead.hooks.user_hooks._start")
"""Modules that no daemon imports. The last one is a program that runs when it is imported."""
_LAZY_MODULES = ("fairlead.daemon.store.__main__", "sqlalchemy.dialects.sqlite", "uvicorn.loops.auto")

_MAX_MESSAGE = 1 << 20
_FILES = 1024
_UMASK = 0o077
"""Of a daemon."""
_ARGUMENTS, _VARIABLES = 45, 47
"""The start of an area in memory among the fields of `/proc/self/stat` from the state on; its end is the next field."""


def main() -> int:
    """Serve until the other end is closed. A forked process returns its exit code."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that asks is told, and closes its end
    _load()
    run = _serve(socket.socket(fileno=int(sys.argv[1])))
    try:
        return run()
    except Exception:  # noqa: BLE001 - any; an interpreter prints it and ends with 1
        traceback.print_exc()
        return 1


def _end(exit_code: int) -> NoReturn:
    """End as an interpreter does, but leave the memory to the operating system, as `multiprocessing` does after a fork.

    To free each object would copy all the memory that is still shared: that takes longer than the rest of a test.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def _load() -> None:
    """Load every module that a daemon or its store may load."""
    for module in pkgutil.walk_packages(fairlead.__path__, "fairlead."):
        if not module.name.startswith(_NOT_LOADED) and not module.name.endswith("__main__"):
            import_module(module.name)
    for name in _LAZY_MODULES:
        import_module(name)
    if threading.active_count() > 1:
        raise RuntimeError("a module starts a thread when it is imported: this process cannot be forked safely")
    gc.collect()
    gc.freeze()


def _serve(connection: socket.socket) -> Callable[[], int]:
    """Answer requests. Returns in a forked process, with what that has to run."""
    while True:
        message, files, _, _ = socket.recv_fds(connection, _MAX_MESSAGE, 3)
        if not message:
            os._exit(0)
        request = json.loads(message)
        if "pid" in request:
            ended, status = os.waitpid(request["pid"], os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if ended else None
        else:
            answer = os.fork()
            if answer == 0:
                connection.detach()  # it is closed with all others
                return _become_command(request, *files) if "words" in request else _become_daemon(request, *files)
            for file in files:
                os.close(file)
        connection.sendall(json.dumps(answer).encode())


def _become_daemon(request: Mapping[str, Any], stdin: int, output: int) -> Callable[[], int]:
    from fairlead.daemon.command import main as run_daemon
    from fairlead.daemon.store import _process

    _become(request, stdin, output, output)
    ours, theirs = socket.socketpair()
    store = os.fork()
    if store == 0:
        ours.close()
        return _become_store(theirs)
    theirs.close()
    _set_command_line(request)
    starter = _StoreStarter(store, ours)
    vars(_process)["subprocess"] = SimpleNamespace(Popen=starter.start, DEVNULL=subprocess.DEVNULL)
    return lambda: run_daemon(request["command"][3:])


def _become_command(request: Mapping[str, Any], *streams: int) -> Callable[[], int]:
    from fairlead.cli.main import main as run_command

    _become(request, *streams)
    _set_command_line(request)
    return lambda: run_command(request["words"])


def _become_store(connection: socket.socket) -> Callable[[], int]:
    """Wait until the daemon starts the process of its store, and become that one; end with the daemon."""
    from fairlead.daemon.store.__main__ import main as run_store

    message, files, _, _ = socket.recv_fds(connection, _MAX_MESSAGE, 1)
    if not message:
        os._exit(0)
    request = json.loads(message)
    _become(request, files[0], os.open(os.devnull, os.O_WRONLY), 2)
    _set_command_line(request)
    return run_store


def _become(request: Mapping[str, Any], *streams: int) -> None:
    """Take the descriptors, the folder, the umask and the variables that the process was to be started with."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    os.umask(request["umask"])
    for number, stream in enumerate(streams):
        if stream != number:
            os.dup2(stream, number)
    os.closerange(3, _FILES)


def _set_command_line(request: Mapping[str, Any]) -> None:
    """Write the command line and the variables where the process table shows them."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    words = request["command"]
    variables = [f"{name}={value}" for name, value in request["env"].items()]
    for start, lines in ((_ARGUMENTS, words), (_VARIABLES, variables)):
        area, end = int(fields[start]), int(fields[start + 1])
        text = b"".join(os.fsencode(line) + b"\0" for line in lines)
        if len(text) > end - area:
            raise ValueError(f"{len(text)} bytes do not fit into {end - area}: start the server with more padding")
        ctypes.memset(area, 0, end - area)
        ctypes.memmove(area, text, len(text))


class _StoreStarter:
    """Starts the process of the store: first the one that is forked already, later a new interpreter."""

    def __init__(self, pid: int, connection: socket.socket) -> None:
        self._forked = _Forked(pid)
        self._connection = connection

    def start(self, command: Sequence[str], *, stdin: int, stdout: int) -> _Forked | subprocess.Popen[bytes]:
        """Start a process, as `subprocess.Popen` does."""
        if self._connection.fileno() < 0:
            return subprocess.Popen(command, stdin=stdin, stdout=stdout)
        request = {"command": command, "env": dict(os.environ), "cwd": str(Path.cwd()), "umask": _UMASK}
        with self._connection as connection:
            socket.send_fds(connection, [json.dumps(request).encode()], [stdin])
        return self._forked


class _Forked:
    """A child process, with what the daemon uses of `subprocess.Popen`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._exit_code: int | None = None

    def kill(self) -> None:
        """Kill it."""
        if self._exit_code is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it has ended, and return its exit code; negative for a signal."""
        if self._exit_code is None:
            self._exit_code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._exit_code


if __name__ == "__main__":
    _end(main())
