"""Runs one command to its end: input and output in parallel, bounded in time and memory, killed as a group."""

from __future__ import annotations

import os
import selectors
import signal
from contextlib import ExitStack, suppress
from subprocess import PIPE, Popen
from threading import RLock
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING

import msgspec

from fairlead.errors import CommandFailed, HookCancelled, HookTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlead.process._cancellation import CancellationToken

    Take = Callable[[bytes], object]
    """Is given what a stream brought, piece by piece."""

MAX_STDOUT = 1024 * 1024
MAX_STDERR = 64 * 1024

_CHUNK = 64 * 1024
_LONGEST_WAIT = 0.5  # seconds; a signal that comes just before a wait does not end it, so that no wait may be long
_GRACE = 0.25  # seconds between the polite signal and the other one
_TICK = 0.02  # seconds; only where the system cannot tell when a child has ended


class ProcessResult(msgspec.Struct, frozen=True):
    """How a command ended, and what it said."""

    exit_code: int
    stdout: bytes = b""
    stderr: bytes = b""


def run_process(  # noqa: PLR0913 - what a process needs
    argv: Sequence[str],
    stdin: bytes,
    *,
    cwd: str | None,
    env: Mapping[str, str],
    deadline: float,
    cancellation: CancellationToken,
    take: tuple[Take, Take] | None = None,
) -> ProcessResult:
    """Run until the command ends, the deadline (`time.monotonic()`) passes, or the caller no longer waits.

    `take` is given what comes on stdout and on stderr, as it comes and however much it is. Without it both are kept,
    within bounds, and a command that prints more on stdout fails. Raises `HookTimeout` when the time is up, and
    `HookCancelled` if nobody waits any more; by then the command and all that it started has been killed.
    """
    kept = _Stdout(), _Stderr()
    child = _start(argv, cwd, env)
    try:
        pump = _Pump(child, stdin, take or (kept[0].take, kept[1].take))
        with pump.stack:
            pump.stack.callback(cancellation.on_cancel(pump.wake))
            while not pump.done:
                if cancellation.cancelled:
                    raise HookCancelled("the caller no longer waits")
                if (left := deadline - monotonic()) <= 0:
                    raise HookTimeout("the command did not end in time and was killed")
                pump.step(min(left, _LONGEST_WAIT))
        return ProcessResult(child.wait(), kept[0].data, kept[1].data)
    finally:
        _end(child)


def _start(argv: Sequence[str], cwd: str | None, env: Mapping[str, str]) -> Popen[bytes]:
    try:
        return Popen(  # noqa: S603 - running the user's own command is the purpose
            argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=cwd, env=env, start_new_session=True
        )
    except (OSError, ValueError) as error:
        where = f" in {cwd}" if cwd and not os.path.isdir(cwd) else ""
        raise CommandFailed(f"cannot start {argv[0]!r}{where}: {error}") from None


def _end(child: Popen[bytes]) -> None:
    """Leave no process behind: whatever is left of the group is told to go, then made to."""
    if child.returncode is None:
        _signal_group(child, signal.SIGTERM)
        _await_exit(child)
        _signal_group(child, signal.SIGKILL)  # the group outlives its leader while a child of it runs
        child.wait()
    for pipe in (child.stdin, child.stdout, child.stderr):
        with suppress(OSError):
            _pipe(pipe).close()


def _await_exit(child: Popen[bytes]) -> None:
    """Give it a moment, without reaping it: until then its number cannot pass to a stranger."""
    give_up = monotonic() + _GRACE
    while monotonic() < give_up:
        if hasattr(os, "waitid") and os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            return
        sleep(_TICK / 4)


def _signal_group(child: Popen[bytes], number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, number)


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - all three are asked for at the start
    return pipe


class _Stdout:
    """Keeps all of a stream; too much of it is an error."""

    data = b""

    def take(self, data: bytes) -> None:
        self.data += data
        if len(self.data) > MAX_STDOUT:
            raise CommandFailed(f"the command printed more than {MAX_STDOUT} bytes")


class _Stderr:
    """Keeps the beginning of a stream."""

    data = b""

    def take(self, data: bytes) -> None:
        self.data += data[: MAX_STDERR - len(self.data)]


class _Pump:
    """Moves bytes between us and the child until it has ended, and wakes when we are cancelled."""

    def __init__(self, child: Popen[bytes], stdin: bytes, take: tuple[Take, Take]) -> None:
        self.child = child
        self.done = False
        self._take_stdout, self._take_stderr = take
        self.stack = ExitStack()
        self._unsent = memoryview(stdin)
        self._selector = self.stack.enter_context(selectors.DefaultSelector())
        self._ended_fd: int | None = None
        self._waker: int | None = None
        self._lock = RLock()  # a signal handler may wake while its own thread is in here
        self._register_all()

    def _register_all(self) -> None:
        stdin, stdout, stderr = (_pipe(p) for p in (self.child.stdin, self.child.stdout, self.child.stderr))
        for pipe in (stdin, stdout, stderr):
            os.set_blocking(pipe.fileno(), False)
        self._selector.register(stdin, selectors.EVENT_WRITE, self._send)
        self._selector.register(stdout, selectors.EVENT_READ, self._receive_stdout)
        self._selector.register(stderr, selectors.EVENT_READ, self._receive_stderr)
        woken, self._waker = os.pipe()
        self.stack.callback(os.close, woken)
        self.stack.callback(self._close_waker)
        self._selector.register(woken, selectors.EVENT_READ, lambda: None)
        if hasattr(os, "pidfd_open"):
            self._ended_fd = os.pidfd_open(self.child.pid)
            self.stack.callback(os.close, self._ended_fd)
            self._selector.register(self._ended_fd, selectors.EVENT_READ, lambda: None)

    def wake(self) -> None:
        """Let `step` return; called from any thread, or from a signal handler."""
        with self._lock, suppress(OSError):
            if self._waker is not None:
                os.write(self._waker, b"!")

    def _close_waker(self) -> None:
        """Close it before its number can belong to another file, into which a late `wake` would write."""
        with self._lock:
            if self._waker is not None:
                os.close(self._waker)
            self._waker = None

    def step(self, timeout: float) -> None:
        """Wait for something to happen and deal with it."""
        wait = timeout if self._ended_fd is not None else min(timeout, _TICK)
        for key, _ in self._selector.select(wait):
            key.data()
        if self.child.poll() is not None:
            # What it wrote is in the pipes by now. A background child may hold them open: it is not waited for.
            self._receive_stdout()
            self._receive_stderr()
            self.done = True

    def _send(self) -> None:
        pipe = _pipe(self.child.stdin)
        try:
            sent = os.write(pipe.fileno(), self._unsent[:_CHUNK]) if self._unsent else 0
            self._unsent = self._unsent[sent:]
        except BlockingIOError:
            return
        except OSError:  # a command that does not read its input is fine
            self._unsent = memoryview(b"")
        if not self._unsent:
            self._selector.unregister(pipe)
            with suppress(OSError):
                pipe.close()

    def _receive_stdout(self) -> None:
        self._take_stdout(self._read(_pipe(self.child.stdout)))

    def _receive_stderr(self) -> None:
        self._take_stderr(self._read(_pipe(self.child.stderr)))

    def _read(self, pipe: IO[bytes]) -> bytes:
        """Read what is there now, a pipe's worth at most; close at the end of the stream."""
        data = b""
        while not pipe.closed and len(data) < MAX_STDOUT:
            try:
                chunk = os.read(pipe.fileno(), _CHUNK)
            except BlockingIOError:
                break
            if not chunk:
                self._selector.unregister(pipe)
                pipe.close()
            data += chunk
        return data
