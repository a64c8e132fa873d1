"""The daemon's process: startup, serve, shutdown."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
from contextlib import ExitStack
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import uvicorn
import uvloop

from fairlead import __version__
from fairlead.daemon._installed_code import replace_when_changed
from fairlead.daemon._lifecycle import DaemonError, SocketFile, listening, rotate_log, single_instance
from fairlead.daemon._runtime import Daemon
from fairlead.daemon._start import daemon_log_file
from fairlead.daemon.events._listener import UnixListener
from fairlead.daemon.http._app import App
from fairlead.daemon.http._auth import create_token
from fairlead.daemon.sessions._facts import collect_facts
from fairlead.paths import runtime_folder, socket_file

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

DEFAULT_IDLE = 1800.0
"""Seconds without an event after which the daemon stops; the next event starts another."""

_GRACEFUL_SHUTDOWN = 5
"""Seconds that a shutdown waits for requests in progress."""
_LAST_LOOK = 0.02
"""Seconds between removing the socket and the end of accepting. Without them, connections that were made just before
the socket was removed could be reset instead of accepted."""
_LAG_INTERVAL = 0.1
_MINUTE = 60.0
_SPOOL_INTERVAL = 0.25
_SESSIONS_INTERVAL = 1.0
_SNAPSHOT_INTERVAL = 30.0
_SOCKET_INTERVAL = 0.5
_SWITCH_INTERVAL = 0.001
_GARBAGE_THRESHOLD = 20_000
"""The number of new objects after which the youngest are searched for garbage; Python's own value is 700."""


class ServerOptions(msgspec.Struct, frozen=True):
    """How the daemon runs."""

    idle: float = DEFAULT_IDLE
    port: int | None = None
    """The port of an additional loopback socket, for callers with the token; 0 means any free port, `None` none."""
    lock_timeout: float = 0.0
    """Seconds to wait for an older daemon to exit."""


def run(options: ServerOptions, ready: Callable[[str], None]) -> None:
    """Run until shutdown is requested or the daemon is idle for too long.

    `ready` is called once with the addresses, in one text. Raises `DaemonError` if the daemon cannot run.
    """
    if own := os.environ.get("FAIRLEAD_HOME"):
        os.environ["FAIRLEAD_HOME"] = os.path.abspath(own)
    folder = runtime_folder()
    with ExitStack() as stack:
        stack.enter_context(single_instance(folder, options.lock_timeout))
        os.chdir("/")  # keeps no folder in use, and gives no relative path a meaning by chance
        os.umask(0o077)
        sys.setswitchinterval(_SWITCH_INTERVAL)  # a decision in a thread must not keep the loop waiting for 5 ms
        daemon = Daemon(__version__)
        stack.callback(daemon.close)
        daemon.open()
        unix = stack.enter_context(listening(socket_file()))
        sockets: list[socket.socket] = []
        if options.port is not None:
            sockets.append(stack.enter_context(_loopback(options.port)))
            daemon.token = create_token(folder)
        addresses = [unix.path, *(f"http://127.0.0.1:{s.getsockname()[1]}" for s in sockets)]
        daemon.started(addresses)
        uvloop.run(_serve(daemon, unix, sockets, options, lambda: ready(" and ".join(addresses))))


async def _serve(
    daemon: Daemon, unix: SocketFile, sockets: list[socket.socket], options: ServerOptions, ready: Callable[[], None]
) -> None:
    config = uvicorn.Config(
        App(daemon),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_GRACEFUL_SHUTDOWN,
    )
    server = _Server(config)
    server.listener = UnixListener(unix.listener, config, server.server_state, daemon)
    server.ready = ready
    daemon.shutdown.add_callback(unix.remove)  # first: clients that have connected are answered, others do not find it
    daemon.shutdown.add_callback(server.request_exit)
    daemon.tracker.start()
    daemon.store.start()
    daemon.team.open()
    work = (*_background_work(daemon), _watch_idleness(daemon, unix, options.idle))
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    with _signals(daemon):
        await server.serve_here(sockets)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class _Server(uvicorn.Server):
    """uvicorn's server with a listener of our own, and without its signal handling, which raises the signal again."""

    listener: UnixListener
    ready: Callable[[], None]

    async def serve_here(self, sockets: list[socket.socket]) -> None:
        await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listener.open()
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.sleep(_LAST_LOOK)
        self.listener.close()
        await super().shutdown(sockets)

    def request_exit(self) -> None:
        self.should_exit = True


class _signals:  # noqa: N801 - reads as a statement
    """Requests shutdown on SIGTERM, SIGINT and SIGHUP."""

    _NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._NUMBERS:
            loop.add_signal_handler(number, self._daemon.shutdown.request, f"signal {signal.Signals(number).name}")

    def __exit__(self, *_: object) -> None:
        loop = asyncio.get_running_loop()
        for number in self._NUMBERS:
            loop.remove_signal_handler(number)


def _loopback(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise DaemonError(f"port {port}: cannot listen there: {error.strerror}; choose another with --port") from None
    listener.listen()
    return listener


# -- background work -------------------------------------------------------------------------------------


def _background_work(daemon: Daemon) -> Iterator[Coroutine[Any, Any, None]]:
    yield _measure_lag(daemon)
    yield _take_spool(daemon)
    yield _rotate_log()
    yield _check_sessions(daemon)
    yield daemon.journal_settings.run_forever()
    yield daemon.token_usage.run_forever()
    yield daemon.attention.run_forever()
    yield daemon.user_mail.run_forever()
    yield daemon.mail.run_forever()
    yield daemon.leases.run_forever()
    yield daemon.team.run_forever()
    yield replace_when_changed(daemon.code, daemon.shutdown)
    yield _freeze_garbage(daemon)


async def _freeze_garbage(daemon: Daemon) -> None:
    """Exclude everything that is loaded from garbage collection: traversing it blocks the loop for 30 ms.

    Nearly all objects of an event are freed without garbage collection, after some milliseconds. The threshold is so
    high that the collector rarely traverses them earlier.
    """
    gc.set_threshold(_GARBAGE_THRESHOLD, 20, 100)
    await daemon.mail.opened()
    gc.freeze()


async def _rotate_log() -> None:
    while True:
        await _in_thread(lambda: rotate_log(daemon_log_file()))
        await asyncio.sleep(_MINUTE)


async def _measure_lag(daemon: Daemon) -> None:
    """Measure how late the loop is: it must never be blocked."""
    minute = monotonic() + _MINUTE
    while True:
        due = monotonic() + _LAG_INTERVAL
        await asyncio.sleep(_LAG_INTERVAL)
        daemon.metrics.add_lag(max(0.0, monotonic() - due))
        if monotonic() > minute:
            minute, daemon.metrics.lag = monotonic() + _MINUTE, 0.0


async def _check_sessions(daemon: Daemon) -> None:
    """Compare the sessions with the client's own files and the process table, and save a snapshot at intervals."""
    tracker, saved, due = daemon.tracker, 0, monotonic() + _SNAPSHOT_INTERVAL
    await tracker.replay()
    while True:
        tracker.apply_facts(await _in_thread(partial(collect_facts, tracker.processes())))
        if monotonic() > due and tracker.revision != saved:
            saved, due = tracker.revision, monotonic() + _SNAPSHOT_INTERVAL
            tracker.save()
        await asyncio.sleep(_SESSIONS_INTERVAL)


async def _take_spool(daemon: Daemon) -> None:
    while True:
        await asyncio.sleep(_SPOOL_INTERVAL)
        if daemon.recorder.is_spooled():
            await _in_thread(daemon.take_spool)
            daemon.tracker.apply_queued()


async def _watch_idleness(daemon: Daemon, unix: SocketFile, idle: float) -> None:
    """Request shutdown when the daemon is idle, or when its socket is gone.

    No other daemon can start while this one holds the lock, so without its socket no daemon would answer.
    """
    while daemon.idle_seconds() < idle:
        await asyncio.sleep(min(_SOCKET_INTERVAL, idle / 4))
        if not unix.exists():
            return daemon.shutdown.request(f"the socket is gone: {unix.path}")
    return daemon.shutdown.request(f"idle for {idle:g} s")


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)
