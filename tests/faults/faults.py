"""The faults of the matrix: each makes a home in which something is broken, and says how the hook is started there."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import until
from launcher.fakes import answer_200, answer_202

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from daemon.daemon_home import DaemonHome

    Break = Callable[[DaemonHome], "AbstractContextManager[Start]"]

FUTURE = 4_000_000_000
"""The year 2096."""


@dataclass
class Start:
    """How the hook is started."""

    words: tuple[str, ...] = ()
    before: Callable[[], None] | None = None
    """Called in the new process."""
    within: tuple[str, ...] = ()
    """A command that runs the hook."""
    stdin: str = "whole"
    stdout: str = "pipe"
    env: dict[str, str] = field(default_factory=dict)


FAULTS: dict[str, Break] = {}


def fault(name: str) -> Callable[[Callable[[DaemonHome], Iterator[Start]]], Break]:
    """Register a fault under the name that the matrix has for it."""

    def add(function: Callable[[DaemonHome], Iterator[Start]]) -> Break:
        made = FAULTS[name] = contextmanager(function)
        return made

    return add


def with_daemon(name: str, **start: object) -> None:
    """Register a fault of the hook's process alone, with a sound daemon."""

    def broken(home: DaemonHome) -> Iterator[Start]:
        with home.daemon():
            yield Start(**start)  # type: ignore[arg-type]

    FAULTS[name] = contextmanager(broken)


def without_daemon(name: str, **start: object) -> None:
    """Register a fault of the hook's process alone, without a daemon."""

    def broken(_: DaemonHome) -> Iterator[Start]:
        yield Start(**start)  # type: ignore[arg-type]

    FAULTS[name] = contextmanager(broken)


def limited(what: int, limit: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (limit, limit))


def no_process() -> None:
    """Let the hook start no process. The limit does not apply to root, so that it runs as a user that nobody has."""
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
    if os.getuid() == 0:
        os.setresuid(*[1_000_000 + os.getpid()] * 3)


def ignore_sigchld() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


with_daemon("nothing")
without_daemon("no daemon")
with_daemon("sigchld ignored", before=ignore_sigchld)
without_daemon("sigchld ignored, no daemon", before=ignore_sigchld)
with_daemon("python gone, daemon", words=("--python", "/no/python"))
without_daemon("python gone", words=("--python", "/no/python"))
without_daemon("no file may grow, no daemon", before=limited(resource.RLIMIT_FSIZE, 0))
without_daemon("few files", before=limited(resource.RLIMIT_NOFILE, 4))
without_daemon("little memory", before=limited(resource.RLIMIT_AS, 20 << 20))
with_daemon("few files, daemon", before=limited(resource.RLIMIT_NOFILE, 24))
with_daemon("no file may grow", before=limited(resource.RLIMIT_FSIZE, 0))
with_daemon("little memory, daemon", before=limited(resource.RLIMIT_AS, 20 << 20))
without_daemon("few processes", before=no_process)
with_daemon("stdin closed", stdin="closed")
with_daemon("stdin huge", stdin="huge")
with_daemon("stdin late", stdin="late")
with_daemon("stdin never closed", stdin="open")
with_daemon("stdout closed", stdout="closed")
with_daemon("stdout full", stdout="full")
with_daemon("stdout gone", stdout="gone")


def program(home: DaemonHome, name: str, text: str) -> Start:
    file = home.folder / name
    file.write_text(text)
    file.chmod(0o755)
    return Start(words=("--python", str(file)))


@fault("python garbage")
def _(home: DaemonHome) -> Iterator[Start]:
    yield program(home, "garbage", "\x7f\x7f\x7f")


def crashes(home: DaemonHome) -> Start:
    return program(home, "crashes", "#!/bin/sh\nkill -SEGV $$\n")


def stripped(home: DaemonHome) -> Start:
    site = home.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys\nsys.modules['fairlead.clients'] = None\n")
    return program(home, "stripped", f'#!/bin/sh\nshift\nPYTHONPATH={site} exec {sys.executable} "$@"\n')


def broken_python(name: str, make: Callable[[DaemonHome], Start]) -> None:
    """Register a fault of Python, without a daemon and with one."""

    def cold(home: DaemonHome) -> Iterator[Start]:
        yield make(home)

    def warm(home: DaemonHome) -> Iterator[Start]:
        with home.daemon():
            yield make(home)

    FAULTS[name], FAULTS[f"{name}, daemon"] = contextmanager(cold), contextmanager(warm)


broken_python("python crashes", crashes)
broken_python("modules removed", stripped)


@fault("little time")
def _(home: DaemonHome) -> Iterator[Start]:
    yield program(home, "endless", f"#!/bin/sh\nulimit -t 1\nexec {sys.executable} -ISc 'while True: pass'\n")


@fault("daemon killed")
def _(home: DaemonHome) -> Iterator[Start]:
    daemon = home.start()
    daemon.kill()
    daemon.wait()
    yield Start()


@fault("daemon stopped")
def _(home: DaemonHome) -> Iterator[Start]:
    with home.daemon() as daemon:
        daemon.send_signal(signal.SIGSTOP)
        yield Start()


# -- disk ----------------------------------------------------------------------------------------------


def mounted(home: DaemonHome, options: str, fill: str = "") -> Start:
    """Run the hook where the state folder is another file system, which nobody else sees."""
    script = f'mount -t tmpfs -o {options} none {home.state} && {fill or ":"}; exec "$@"'
    within = ("unshare", "-Urm", "sh", "-c", script, "sh")
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no user namespaces")
    return Start(within=within)


@fault("disk full, no daemon")
def _(home: DaemonHome) -> Iterator[Start]:
    yield mounted(home, "size=16k", f"cat /dev/zero > {home.state}/zeros 2>/dev/null")


@fault("disk read-only, no daemon")
def _(home: DaemonHome) -> Iterator[Start]:
    yield mounted(home, "ro")


@fault("disk full")
def _(home: DaemonHome) -> Iterator[Start]:
    """The daemon may not write another byte."""
    with home.daemon() as daemon:
        resource.prlimit(daemon.pid, resource.RLIMIT_FSIZE, (0, 0))
        yield Start()


# -- clocks --------------------------------------------------------------------------------------------


@fault("files from the future")
def _(home: DaemonHome) -> Iterator[Start]:
    with home.daemon():
        home.hook("SessionEnd", home.payload(hook_event_name="SessionEnd"))
    for file in home.folder.rglob("*"):
        with suppress(FileNotFoundError):
            os.utime(file, (FUTURE, FUTURE))
    with home.daemon():
        yield Start()


@fault("another monotonic clock")
def _(home: DaemonHome) -> Iterator[Start]:
    within = ("unshare", "-UrT", "--monotonic", "100000000", "--boottime", "100000000")
    if subprocess.run([*within, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine has no time namespaces")
    with home.daemon():
        yield Start(within=within)


# -- what is kept --------------------------------------------------------------------------------------


def kept(name: str, spoil: Callable[[DaemonHome], object]) -> None:
    """Register a fault of the files that a daemon finds when it starts."""

    def broken(home: DaemonHome) -> Iterator[Start]:
        with home.daemon():
            home.hook("SessionEnd", home.payload(hook_event_name="SessionEnd"))
            until(lambda: list(home.state.rglob("*.db")), "there is a database")
        spoil(home)
        with home.daemon():
            yield Start()

    FAULTS[name] = contextmanager(broken)


def journal_edit(edit: Callable[[bytes], bytes]) -> Callable[[DaemonHome], None]:
    def spoil(home: DaemonHome) -> None:
        for file in (home.state / "journal").glob("*.jsonl"):
            file.write_bytes(edit(file.read_bytes()))

    return spoil


def spool_garbage(home: DaemonHome) -> None:
    (home.state / "spool").mkdir(exist_ok=True)
    for number, content in enumerate((b"", b"{", b"\0" * 5000, b'{"kind":"new"}', b"[" * 9000)):
        (home.state / f"spool/{number:016x}-1.json").write_bytes(content)


def database_garbage(home: DaemonHome) -> None:
    for file in home.state.rglob("*.db"):
        file.write_bytes(b"\x55" * 8192)


kept("journal torn", journal_edit(lambda data: data[:-20]))
kept("journal flipped", journal_edit(lambda data: bytes(byte ^ (at % 37 == 0) for at, byte in enumerate(data))))
kept("journal from the future", journal_edit(lambda data: data + b'{"kind":"hologram","version":99,"id":"x"}\n' * 3))
kept("spool garbage", spool_garbage)
kept("database garbage", database_garbage)


# -- the socket ----------------------------------------------------------------------------------------


@fault("many daemons")
def _(home: DaemonHome) -> Iterator[Start]:
    command = [sys.executable, "-m", "fairlead.daemon"]
    others = [
        subprocess.Popen(command, env=home.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(5)
    ]
    try:
        until(lambda: sum(one.poll() is None for one in others) == 1 and home.status(), "one of them has won")
        yield Start()
    finally:
        for one in others:
            one.kill()
            one.wait()


@fault("socket is a file")
def _(home: DaemonHome) -> Iterator[Start]:
    home.socket.parent.mkdir(mode=0o700)
    home.socket.write_bytes(b"HTTP/1.1 200 OK\r\n\r\n")
    yield Start()


@fault("socket is a folder")
def _(home: DaemonHome) -> Iterator[Start]:
    home.socket.mkdir(parents=True, mode=0o700)
    yield Start()


@contextmanager
def answered(home: DaemonHome, answer: bytes) -> Iterator[None]:
    """Let this process answer everything on the socket in one way."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(home.socket))
        listener.listen()
        thread = Thread(target=_answer_all, args=(listener, answer))
        thread.start()
        yield
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()
    shutil.rmtree(home.socket.parent)


def _answer_all(listener: socket.socket, answer: bytes) -> None:
    with suppress(OSError):
        while True:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(1 << 16)
                connection.sendall(answer)


@fault("socket of an impostor")
def _(home: DaemonHome) -> Iterator[Start]:
    """The daemon is dead, and another process of the same user says yes to everything."""
    daemon = home.start()
    daemon.kill()
    daemon.wait()
    home.socket.unlink()
    with answered(home, answer_200(b"", b"", 0)):
        yield Start()


def confused_daemon(name: str, answer: bytes) -> None:
    """Register a fault of the daemon itself, which holds the lock."""

    def broken(home: DaemonHome) -> Iterator[Start]:
        home.socket.parent.mkdir(mode=0o700)
        home.socket.with_suffix(".lock").write_text(f"{os.getpid()}\n")
        with answered(home, answer):
            yield Start()

    FAULTS[name] = contextmanager(broken)


confused_daemon("an answer of garbage", b"HTTP/1.1 200 OK\r\nfairlead-exit: 7\r\ncontent-length: 0\r\n\r\n")
confused_daemon("a plan of garbage", answer_202(b'{"plan":{"steps":"x"}}'))
