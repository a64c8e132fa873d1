"""Runs one command to its end, with limits for time and output, and kills its process group if it must be stopped."""

from __future__ import annotations

import os
import selectors
import signal
from contextlib import ExitStack, suppress
from subprocess import PIPE, Popen
from threading import RLock
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING

from fairlead.errors import CommandFailed, HookCancelled
from fairlead.process._cancellation import CancellationToken
from fairlead.process._output import MAX_STDOUT, Capture, FirstAndLastLines, TruncatedOutput, WholeOutput
from fairlead.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHUNK_SIZE = 64 * 1024
_MAX_READ = 1024 * 1024  # bytes read of one stream before the other one gets its turn
_MAX_WAIT = 0.5  # seconds; a signal that arrives just before a wait does not interrupt it, so waits are short
CANCELLED = "the caller no longer waits"
_GRACE_PERIOD = 0.25  # seconds between SIGTERM and SIGKILL
_POLL_INTERVAL = 0.02  # seconds; only where the system does not report that a child has ended


class ProcessResult(Struct, frozen=True):
    """The exit code and the output of a command."""

    exit_code: int | None
    """Negative, with the number of the signal, if a signal ended it; `None` if it was killed at the deadline."""
    stdout: bytes = b""
    stderr: bytes = b""


def run_process(
    argv: Sequence[str],
    stdin: bytes = b"",
    *,
    deadline: float,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    cancellation: CancellationToken | None = None,
    max_lines: int | None = None,
    max_stdout: int = MAX_STDOUT,
) -> ProcessResult:
    """Run a command until it ends; kill it and its process group when `deadline` (`time.monotonic()`) passes.

    With `max_lines`, at most that many lines of stdout and of stderr are kept: one half from the start, one half from
    the end. Without it, stdout is kept completely, and of stderr the first 64 KiB.

    Raises `CommandFailed` if the command cannot be started, or prints more than `max_stdout` bytes without `max_lines`.
    Raises `HookCancelled` at cancellation. In both cases, the command and its process group have been killed.
    """
    stdout: Capture = FirstAndLastLines(max_lines) if max_lines else WholeOutput(max_stdout)
    stderr: Capture = FirstAndLastLines(max_lines) if max_lines else TruncatedOutput()
    exit_code: int | None = None
    cancellation = cancellation or CancellationToken()
    child = _start(argv, cwd, env)
    try:
        child_io = _ChildIO(child, stdin, stdout, stderr)
        with child_io.stack:
            child_io.stack.callback(cancellation.on_cancel(child_io.wake))
            while not child_io.done:
                if cancellation.cancelled:
                    raise HookCancelled(CANCELLED)
                if (remaining := deadline - monotonic()) <= 0:
                    break
                child_io.step(min(remaining, _MAX_WAIT))
        if child_io.done:
            exit_code = child.wait()
    finally:
        _end(child)
    return ProcessResult(exit_code, stdout.getvalue(), stderr.getvalue())


def _start(argv: Sequence[str], cwd: str | None, env: Mapping[str, str] | None) -> Popen[bytes]:
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        raise CommandFailed(f"cannot run {argv[0]!r}: this process ignores SIGCHLD, so its exit code would be lost")
    try:
        return Popen(  # noqa: S603 - running the user's own command is the purpose
            argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env, start_new_session=True
        )
    except (OSError, ValueError) as error:
        raise CommandFailed(start_error(argv[0], cwd, error)) from None


def start_error(program: str, cwd: str | None, error: OSError | ValueError) -> str:
    """Return the error message for a program that could not be started. It names `cwd` if that is not a folder."""
    where = f" in {cwd}" if cwd and not os.path.isdir(cwd) else ""
    return f"cannot start {program!r}{where}: {error}"


def _end(child: Popen[bytes]) -> None:
    """End the process group if the command still runs, by SIGTERM and then SIGKILL, and close the pipes."""
    if child.returncode is None:
        _signal_group(child, signal.SIGTERM)
        _await_exit(child)
        _signal_group(child, signal.SIGKILL)  # the group outlives its leader while a child of it runs
        child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        with suppress(OSError):
            _pipe(pipe).close()


def _await_exit(child: Popen[bytes]) -> None:
    """Wait until the child has exited, at most the grace period. It is not reaped, so its pid is not reused."""
    give_up = monotonic() + _GRACE_PERIOD
    while monotonic() < give_up:
        if hasattr(os, "waitid") and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        sleep(_POLL_INTERVAL / 4)


def _signal_group(child: Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # `_start` requests all three
    return pipe


class _ChildIO:
    """Writes the stdin of a child and reads its output until it ends. `wake` interrupts a wait."""

    def __init__(self, child: Popen[bytes], stdin: bytes, stdout: Capture, stderr: Capture) -> None:
        self.child = child
        self.done = False
        self._stdout, self._stderr = stdout, stderr
        self.stack = ExitStack()
        self._unsent = memoryview(stdin)
        self._selector = self.stack.enter_context(selectors.DefaultSelector())
        self._exit_fd: int | None = None
        self._wake_writer: int | None = None
        self._lock = RLock()  # a signal handler may wake us while its own thread holds the lock
        self._register_all()

    def _register_all(self) -> None:
        stdin, stdout, stderr = (_pipe(p) for p in (self.child.stdin, self.child.stdout, self.child.stderr))
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(stdin, selectors.EVENT_WRITE, self._send)
        self._selector.register(stdout, selectors.EVENT_READ, self._receive_stdout)
        self._selector.register(stderr, selectors.EVENT_READ, self._receive_stderr)
        wake_reader, self._wake_writer = os.pipe()
        self.stack.callback(os.close, wake_reader)
        self.stack.callback(self._close_wake_writer)
        self._selector.register(wake_reader, selectors.EVENT_READ, lambda: None)
        if hasattr(os, "pidfd_open"):
            self._exit_fd = os.pidfd_open(self.child.pid)
            self.stack.callback(os.close, self._exit_fd)
            self._selector.register(self._exit_fd, selectors.EVENT_READ, lambda: None)

    def wake(self) -> None:
        """Make `step` return at once. May be called from any thread and from a signal handler."""
        with self._lock, suppress(OSError):
            if self._wake_writer is not None:
                os.write(self._wake_writer, b"!")

    def _close_wake_writer(self) -> None:
        """Close the pipe under the lock. Otherwise a late `wake` could write to a file that reuses the descriptor."""
        with self._lock:
            if self._wake_writer is not None:
                os.close(self._wake_writer)
            self._wake_writer = None

    def step(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for I/O, a wake-up or the exit of the child, and handle it."""
        wait = timeout if self._exit_fd is not None else min(timeout, _POLL_INTERVAL)
        for key, _ in self._selector.select(wait):
            key.data()
        if self.child.poll() is not None:
            # Everything it wrote is in the pipes by now. A background child may hold them open; we do not wait for it.
            self._receive_stdout()
            self._receive_stderr()
            self.done = True

    def _send(self) -> None:
        pipe = _pipe(self.child.stdin)
        try:
            sent = os.write(pipe.fileno(), self._unsent[:_CHUNK_SIZE]) if self._unsent else 0
            self._unsent = self._unsent[sent:]
        except BlockingIOError:
            return
        except OSError:  # a command need not read its input
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._selector.unregister(pipe)
            with suppress(OSError):
                pipe.close()

    def _receive_stdout(self) -> None:
        self._stdout.add(self._read(_pipe(self.child.stdout)))

    def _receive_stderr(self) -> None:
        self._stderr.add(self._read(_pipe(self.child.stderr)))

    def _read(self, pipe: IO[bytes]) -> bytes:
        """Return what can be read now, up to a limit; close the pipe at the end of the stream."""
        data = b""
        while not pipe.closed and len(data) < _MAX_READ:
            try:
                chunk = os.read(pipe.fileno(), _CHUNK_SIZE)
            except BlockingIOError:
                break
            if not chunk:
                self._selector.unregister(pipe)
                pipe.close()
            data += chunk
        return data
