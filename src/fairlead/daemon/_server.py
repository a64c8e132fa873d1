"""The daemon's life: startup, serve, shutdown."""

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
from fairlead.daemon._lifecycle import DaemonError, Place, listening, only_one, turn_over
from fairlead.daemon._runtime import Daemon
from fairlead.daemon._start import daemon_log_file
from fairlead.daemon._store_writer import BATCH
from fairlead.daemon.events._listener import UnixListener
from fairlead.daemon.http._app import App
from fairlead.daemon.http._auth import make_token
from fairlead.daemon.sessions._tracker import look_up
from fairlead.paths import runtime_folder, socket_file

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

IDLE = 1800.0
"""Seconds without an event after which the daemon stops: the next event begins another."""

_GRACE = 5
"""Seconds that requests under way are given at the end."""

_TICK = 0.1
_MINUTE = 60.0
_LOOK_AT_SPOOL = 0.25
_LOOK_AT_SESSIONS = 1.0
_NEWS = 0.25
_MANY = 100
"""Events within that time: then the store waits,"""
_MUCH = 32 * 1024 * 1024
"""unless so many bytes of the journal wait for it."""
_FEW = 50
_KEEP_SESSIONS = 30.0
_LOOK_AT_SOCKET = 0.5
_SWITCH = 0.001


class Options(msgspec.Struct, frozen=True):
    """How the daemon is to run."""

    idle: float = IDLE
    port: int | None = None
    """Of a loopback socket as well, for those with the token; 0 is any that is free."""
    patience: float = 0.0
    """Seconds to wait for an older daemon to go."""


def run(options: Options, ready: Callable[[str], None]) -> None:
    """Run until it is told to go, or nobody needs it any more. `ready` hears where it listens."""
    if own := os.environ.get("FAIRLEAD_HOME"):
        os.environ["FAIRLEAD_HOME"] = os.path.abspath(own)
    folder = runtime_folder()
    with ExitStack() as stack:
        stack.enter_context(only_one(folder, options.patience))
        os.chdir("/")  # no folder is kept from being removed, and no relative path has a meaning by chance
        os.umask(0o077)
        sys.setswitchinterval(_SWITCH)  # a decision in a thread must not keep the loop from answering for 5 ms
        house = Daemon(__version__)
        stack.callback(house.close)
        house.open()
        place = stack.enter_context(listening(socket_file()))
        sockets: list[socket.socket] = []
        if options.port is not None:
            sockets.append(stack.enter_context(_loopback(options.port)))
            house.token = make_token(folder)
        where = [place.path, *(f"http://127.0.0.1:{s.getsockname()[1]}" for s in sockets)]
        house.started(where)
        uvloop.run(_serve(house, place, sockets, options, lambda: ready(" and ".join(where))))


async def _serve(
    house: Daemon, place: Place, sockets: list[socket.socket], options: Options, ready: Callable[[], None]
) -> None:
    config = uvicorn.Config(
        App(house),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_GRACE,
    )
    server = _Server(config)
    server.door = UnixListener(place.listener, config, server.server_state)
    house.on_leave(lambda: _leave(place, server))
    server.ready = ready
    tasks = [asyncio.create_task(work) for work in (*_chores(house), _watch_idleness(house, place, options.idle))]
    with _signals(house):
        await server.serve_here(sockets)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _leave(place: Place, server: _Server) -> None:
    """Be found no more first: who has connected by now is answered, who comes later finds nothing."""
    place.take_away()
    server.leave()


class _Server(uvicorn.Server):
    """uvicorn's server, with a door of our own, and without its signals, which would end us by the signal again."""

    door: UnixListener
    ready: Callable[[], None]

    async def serve_here(self, sockets: list[socket.socket]) -> None:
        await self._serve(sockets)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.door.open()
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.door.close()
        await super().shutdown(sockets)

    def leave(self) -> None:
        self.should_exit = True


class _signals:  # noqa: N801 - reads as a statement
    """Leave when told to: SIGTERM, SIGINT, SIGHUP."""

    _NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

    def __init__(self, house: Daemon) -> None:
        self._house = house

    def __enter__(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self._NUMBERS:
            loop.add_signal_handler(number, self._house.leave, f"signal {signal.Signals(number).name}")

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


# -- what goes on beside the answering -------------------------------------------------------------------


def _chores(house: Daemon) -> Iterator[Coroutine[Any, Any, None]]:
    yield _watch_loop(house)
    yield _watch_spool(house)
    yield _feed_store(house)
    yield _watch_log()
    yield _watch_sessions(house)
    yield house.tokens.watch()
    yield house.teller.watch()
    yield house.mail.watch()
    yield _settle(house)


async def _settle(house: Daemon) -> None:
    """Keep the collector from what stays for good: to look through all that is loaded takes 30 ms from the loop."""
    await house.mail.opened()
    gc.freeze()


async def _watch_log() -> None:
    while True:
        await _in_thread(lambda: turn_over(daemon_log_file()))
        await asyncio.sleep(_MINUTE)


async def _watch_loop(house: Daemon) -> None:
    """Measure how late the loop is: it must never be blocked."""
    minute = monotonic() + _MINUTE
    while True:
        due = monotonic() + _TICK
        await asyncio.sleep(_TICK)
        house.metrics.late(max(0.0, monotonic() - due))
        if monotonic() > minute:
            minute, house.metrics.lag = monotonic() + _MINUTE, 0.0


async def _watch_sessions(house: Daemon) -> None:
    """Hold what events told against the client's own files and the process table, and keep it now and then."""
    tracker, kept, due = house.tracker, 0, monotonic() + _KEEP_SESSIONS
    while True:
        tracker.take_facts(await _in_thread(partial(look_up, tracker.processes())))
        if monotonic() > due and tracker.revision != kept:
            kept, due = tracker.revision, monotonic() + _KEEP_SESSIONS
            tracker.save()
        await asyncio.sleep(_LOOK_AT_SESSIONS)


async def _watch_spool(house: Daemon) -> None:
    while True:
        await asyncio.sleep(_LOOK_AT_SPOOL)
        if house.is_spooled():
            await _in_thread(house.take_spool)
            house.tracker.drain()


async def _feed_store(house: Daemon) -> None:
    """Bring what is in the journal into the store, in batches, off the hot road.

    The thread that feeds takes the interpreter from the loop that answers. So while many events come, the store
    waits for a quieter moment: the journal has everything meanwhile.
    """
    while True:
        before = house.metrics.answered
        await asyncio.sleep(_NEWS)  # first: the store takes long to load, and somebody waits for an answer
        size = _FEW
        while _may_feed(house, before) and await _in_thread(partial(house.feed, size)):
            size = min(2 * size, BATCH)


def _may_feed(house: Daemon, before: int) -> bool:
    return house.metrics.answered - before <= _MANY or house.behind() > _MUCH


async def _watch_idleness(house: Daemon, place: Place, idle: float) -> None:
    """Leave when nobody comes any more, or can: as long as we hold the lock, no other daemon takes our place."""
    while house.idle_for() < idle:
        await asyncio.sleep(min(_LOOK_AT_SOCKET, idle / 4))
        if not place.is_there():
            return house.leave(f"the socket is gone: {place.path}")
    return house.leave(f"idle for {idle:g} s")


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, work)
