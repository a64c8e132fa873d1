"""hcom's relay compared with ours: a message from one of its devices to an agent that listens on another.

Both devices are folders on this machine, and the broker between them is a mosquitto on loopback: nothing leaves it.
"""

from __future__ import annotations

import re
import socket
import subprocess
from contextlib import contextmanager, suppress
from shutil import which
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING

from bench._home import TIMEOUT
from bench._peers import find
from bench.mail import Peer, until_listening

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from bench._home import Home

NAME = "hcom 0.7.31 over mosquitto"
_BROKER = "listener {port} 127.0.0.1\nallow_anonymous true\n"
_TOKEN = re.compile(r"hcom relay connect (\S+)")
_QUESTION = "Are you there?"
_POLL_INTERVAL = 0.02


def time_hcom(home: Home, rounds: int) -> list[float] | str:
    """Return the seconds of each delivery from one device to the other, or why there are none."""
    hcom, mosquitto = find("hcom"), find("mosquitto") or which("mosquitto", path="/usr/sbin:/usr/local/sbin")
    if hcom is None or mosquitto is None:
        return "needs hcom and mosquitto"
    with _broker(mosquitto, home.folder) as port:
        here, there = (_device(hcom, home, name) for name in ("here", "there"))
        try:
            token = _TOKEN.search(here.run("relay", "new", "--broker", f"mqtt://127.0.0.1:{port}"))
            if token is None:
                return "hcom has made no token"
            there.run("relay", "connect", token[1])
            return [_deliver(here, there) for _ in range(rounds)]
        finally:
            for device in (here, there):
                with suppress(RuntimeError):
                    device.run("relay", "daemon", "stop")


def _device(program: str, home: Home, name: str) -> Peer:
    folder = home.folder / f"hcom-{name}"
    folder.mkdir()
    return Peer(program, {**home.environment(), "HOME": str(folder), "HCOM_DIR": str(folder / ".hcom")}, folder)


@contextmanager
def _broker(program: str, folder: Path) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
    settings = folder / "mosquitto.conf"
    settings.write_text(_BROKER.format(port=port))
    with subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL) as broker:
        try:
            _until(lambda: _answers(port), "the broker answers")
            yield port
        finally:
            broker.terminate()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def _deliver(here: Peer, there: Peer) -> float:
    sender, name = here.start_agent(), there.start_agent()
    with there.start("listen", "--name", name, "--timeout", "30") as listener:
        assert listener.stdout is not None
        try:
            until_listening(there, name)
            address = re.compile(rf"\b{name}:\w+")
            _until(lambda: address.search(here.run("list")), "it is known here")
            to = address.findall(here.run("list"))[0]
            start = perf_counter()
            here.run("send", f"@{to}", "--name", sender, "--", _QUESTION)
            while _QUESTION not in (line := listener.stdout.readline()):
                if not line:
                    raise RuntimeError("hcom listen received nothing")
            return perf_counter() - start
        finally:
            listener.terminate()


def _until(condition: Callable[[], object], what: str) -> None:
    deadline = monotonic() + TIMEOUT
    while not condition():
        if monotonic() > deadline:
            raise RuntimeError(f"never came true: {what}")
        sleep(_POLL_INTERVAL)
