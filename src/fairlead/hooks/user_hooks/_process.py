"""The owner's side of a worker: starts the process, sends requests to it, and ends it.

The owner is the daemon, or without one the process that handles a single event.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.errors import FairleadError
from fairlead.hooks.user_hooks._messages import EventReply, LoadReply, LoadRequest, receive, send

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.hooks.user_hooks._messages import EventRequest

_ANY_CLIENT = (
    *("FAIRLEAD_HOME", "HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
    *("TMUX", "TMUX_PANE", "FAIRLEAD_STAY"),
)
_KEPT = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"})
_KEPT_PREFIXES = ("LC_", "XDG_")
"""The environment variables that the worker process inherits: `_KEPT`, and all whose names begin with such a prefix."""

_LOAD_LIMIT = 20.0
"""Seconds within which the interpreter must have started and loaded the files."""
_GRACE = 0.5
"""Seconds that the owner waits beyond the hooks' limit. The worker enforces the limit, unless its interpreter hangs."""
_SCAN_LIMIT = 30.0
_REPLY: msgspec.msgpack.Decoder[EventReply | float] = msgspec.msgpack.Decoder(EventReply | float)
_SOCKET = 3


def caller_variables(client: str) -> tuple[str, ...]:
    """Return the names of the caller's environment variables that a hook gets in `ctx.env`.

    `client` is the name of the client. The launcher sends these variables to the daemon.
    """
    own = client_or_default(client).variables
    return (*_ANY_CLIENT, *filter(None, (own.config_dir, own.project_dir, own.env_file, *own.while_waiting)))


class HookWorkerError(FairleadError):
    """A worker cannot be started, cannot load its files, does not answer in time, or has ended."""

    def __init__(self, message: str, *, file: str = "", is_suspect: bool = False) -> None:
        super().__init__(message)
        self.file = file
        """The hook file that is the cause; "" if it is not known."""
        self.is_suspect = is_suspect
        """Whether another event may be the cause, because the worker handled several at the same time."""


class WorkerProcess:
    """A worker process that has loaded hook files. Thread-safe.

    `loaded` is its `LoadReply`, `calls` the number of its events, `memory` the largest number of bytes that it has
    reported, and `is_stuck` whether a hook has not returned within its limit.
    """

    def __init__(self, interpreter: str, folder: str, request: LoadRequest, output: int) -> None:
        """Start the process in the working directory `folder`, and wait until it has loaded the files of `request`.

        `interpreter` is the path of a Python; "" for that of this process. `output` is the file descriptor for the
        stdout and stderr of the hooks. Raise `HookWorkerError` if the process cannot be started, or cannot load the
        files.
        """
        self.request = request
        self.calls = 0
        self.memory = 0
        self.is_stuck = False
        self._lock = Lock()
        self._idle_connections: list[socket.socket] = []
        self._in_flight = 0
        self._end = ""
        """A description of how the process ended; "" until that is noticed."""
        self._alone_at_end = False
        self._control, self.pid = _spawn(interpreter, folder, output)
        try:
            self.loaded = self._load(request)
        except BaseException:
            self.end("")
            raise

    def _load(self, request: LoadRequest) -> LoadReply:
        self._control.settimeout(_LOAD_LIMIT)
        try:
            send(self._control, msgspec.msgpack.encode(request))
            loaded = msgspec.json.decode(receive(self._control), type=LoadReply)
        except TimeoutError:
            raise HookWorkerError(f"they were not loaded within {_LOAD_LIMIT:g} s") from None
        except (EOFError, OSError):
            raise HookWorkerError(f"their process {self.end('has ended')} while it loaded them") from None
        if loaded.problem:
            raise HookWorkerError(loaded.problem, file=loaded.file)
        self._control.settimeout(None)
        return loaded

    @property
    def is_running(self) -> bool:
        """Whether no end of the process was noticed yet. That of an idle process is noticed at the next request."""
        return not self._end

    @property
    def in_flight(self) -> int:
        """The number of events that the process is handling now."""
        return self._in_flight

    def ask(self, data: bytes, limit: float) -> EventReply:
        """Return the reply to `data`, an `EventRequest` in msgpack.

        Wait for `limit` seconds, unless the worker changes that. Raise `HookWorkerError` if no reply arrives in time,
        or the process has ended. The process is then killed.
        """
        with self._lock:
            connection = self._idle_connections.pop() if self._idle_connections else None
            self._in_flight += 1
            self.calls += 1
        try:
            connection = connection or self._open_connection()
            connection.settimeout(limit + _GRACE)
            send(connection, data)
            while isinstance(answer := _REPLY.decode(receive(connection)), float):
                limit = answer
                connection.settimeout(limit + _GRACE)
        except TimeoutError:
            _close(connection)
            self.end(f"was ended, because its hooks had not answered within {limit:.3g} s")
            text = f"they have not answered within {limit:.3g} s"
            raise HookWorkerError(text, is_suspect=not self._alone_at_end) from None
        except (EOFError, OSError, msgspec.DecodeError):
            _close(connection)
            how = self.end("has ended")
            raise HookWorkerError(f"their process {how}", is_suspect=not self._alone_at_end) from None
        finally:
            with self._lock:
                self._in_flight -= 1
        self.memory = max(self.memory, answer.memory)
        self.is_stuck = self.is_stuck or answer.is_stuck
        with self._lock:
            self._idle_connections.append(connection)
        return answer

    def _open_connection(self) -> socket.socket:
        own, other = socket.socketpair()
        with other:
            socket.send_fds(self._control, [b"+"], [other.fileno()])
        return own

    def end(self, why: str) -> str:
        """Kill the process and its process group, and return a description of how it ended.

        That is `why`, or if it had ended already, how it did so. Later calls return the same description.
        """
        with self._lock:
            if self._end:
                return self._end
            self._alone_at_end = self._in_flight <= 1
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)  # a process that has ended already keeps its exit status
            self._end = _describe_end(self.pid, why)
            for connection in self._idle_connections:
                connection.close()
            self._idle_connections.clear()
            self._control.close()
            return self._end


def ask_once(
    interpreter: str,
    folder: str,
    request: LoadRequest,
    ask: EventRequest,
    *,
    output: int,
    loaded: LoadReply | None = None,
) -> EventReply:
    """Start a worker for one event, end it, and return its reply. If it has no hooks for the event, the reply is empty.

    `loaded` is the `LoadReply` of an earlier worker with the same files; if that had no hooks for the event, none is
    started. The other arguments are those of `WorkerProcess`. Raise `HookWorkerError` as `WorkerProcess` does.
    """
    if loaded is not None and loaded.limit_of(ask.event, observe_only=ask.observe_only) is None:
        return EventReply()
    worker = WorkerProcess(interpreter, folder, request, output)
    try:
        limit = worker.loaded.limit_of(ask.event, observe_only=ask.observe_only)
        return EventReply() if limit is None else worker.ask(msgspec.msgpack.encode(ask), limit)
    finally:
        worker.end("was ended")


def find_imports(interpreter: str, file: str) -> dict[str, str]:
    """Return the digests, by path, of a hook file and the project's modules that it imports, without running them.

    Raise `HookWorkerError` if the interpreter cannot be run, or cannot read the file.
    """
    return msgspec.json.decode(_run_script("_imports.py", interpreter, file), type=dict[str, str])


def find_problem(interpreter: str, file: str) -> str:
    """Return why a file cannot be a hook file, as far as that can be seen without running it; "" if it may be one.

    Raise `HookWorkerError` if the interpreter cannot be run, or cannot read the file.
    """
    return _run_script("_check.py", interpreter, file).decode(errors="replace")


def _run_script(name: str, interpreter: str, file: str) -> bytes:
    """Run a script of this folder with `file` as its argument, and return what it prints.

    Raise `HookWorkerError` if the interpreter cannot be run, or the script fails.
    """
    from subprocess import TimeoutExpired, run

    command = [interpreter or sys.executable, "-E", "-P", f"{_folder()}/{name}", file]
    try:
        done = run(command, capture_output=True, check=False, timeout=_SCAN_LIMIT, env=_environment(interpreter))  # noqa: S603 - no shell
    except OSError as error:
        raise HookWorkerError(f"{command[0]} cannot be run: {error.strerror or error}") from None
    except TimeoutExpired:
        raise HookWorkerError(f"{command[0]} has not read {file} within {_SCAN_LIMIT:g} s") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise HookWorkerError(f"{command[0]} cannot read {file}: {last}")
    return done.stdout


def _spawn(interpreter: str, folder: str, output: int) -> tuple[socket.socket, int]:
    from fairlead import __version__

    own, other = socket.socketpair()
    program = interpreter or sys.executable
    above = os.path.dirname(os.path.dirname(os.path.dirname(_folder())))
    packages = [above, os.path.dirname(os.path.dirname(str(msgspec.__file__)))]
    command = [program, "-E", "-P", f"{_folder()}/_start.py", folder, *packages]
    command += [str(sys.implementation.cache_tag), __version__]
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output, 1),
        (os.POSIX_SPAWN_DUP2, output, 2),
        (os.POSIX_SPAWN_DUP2, other.fileno(), _SOCKET),
    ]
    with other:
        try:
            other.set_inheritable(other.fileno() == _SOCKET)  # `dup2` onto the same number keeps close-on-exec
            pid = os.posix_spawn(program, command, _environment(interpreter), file_actions=files, setsid=True)
        except OSError as error:
            own.close()
            raise HookWorkerError(f"{program} cannot be run: {error.strerror or error}") from None
    return own, pid


def _environment(interpreter: str, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    if not interpreter:
        return kept
    programs = os.path.dirname(interpreter)
    path = os.pathsep.join(filter(None, (programs, kept.get("PATH"))))
    return {**kept, "VIRTUAL_ENV": os.path.dirname(programs), "PATH": path}


def _folder() -> str:
    return os.path.dirname(os.path.abspath(__file__))


def _describe_end(pid: int, why: str) -> str:
    """Wait for a process to end, and return how it ended: `why` if that begins with "was ended", or its exit status."""
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    except ChildProcessError:  # SIGCHLD is ignored, so the system has reaped it
        return why or "has ended"
    if why.startswith("was ended"):
        return why
    if status >= 0:
        return f"has ended with exit code {status}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()
