"""Hosts as network namespaces: each has one link to the namespace of the relay, which a test can take down.

    with network("alpha", "beta") as net:
        with net.relay.entered():        # what this thread starts now is on the host of the relay
            server.start()
        with net["alpha"].entered():
            daemon.start()               # reaches the relay at `net["alpha"].relay_address`
        net["alpha"].down()              # the link is down: a partition
        net["alpha"].up()

A namespace lives as long as the process that keeps it, and that one until its stdin ends: nothing is left behind.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from team.postgres_server import unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator

    Side = Literal["host", "relay"]

_CLONE_NEWNET = 0x40000000
_PREFIX = "10.213"
"""In namespaces of their own, so that they cannot clash with addresses of the machine."""


@dataclass(frozen=True)
class Namespace:
    """A network of its own, with loopback up."""

    keeper: int
    """The pid of the process that keeps it."""

    @property
    def path(self) -> str:
        """The file that stands for it, for `nsenter`."""
        return f"/proc/{self.keeper}/ns/net"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Be in it with this thread, and with all processes that it starts."""
        with Path("/proc/thread-self/ns/net").open("rb") as before, Path(self.path).open("rb") as target:
            _enter(target.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def ip(self, *words: str) -> None:
        """Run `ip` in it."""
        _run("nsenter", f"--net={self.path}", "ip", *words)


@dataclass(frozen=True)
class HostNetwork(Namespace):
    """The network of a host, whose one link leads to the relay."""

    relay: Namespace
    number: int

    @property
    def address(self) -> str:
        return f"{_PREFIX}.{self.number}.2"

    @property
    def relay_address(self) -> str:
        """Where this host reaches the relay."""
        return f"{_PREFIX}.{self.number}.1"

    def down(self, side: Side = "host") -> None:
        """Take the link down: at the host it has no route any more, at the relay it has no carrier."""
        self._set(side, "down")

    def up(self, side: Side = "host") -> None:
        """Put the link up again."""
        self._set(side, "up")

    def _set(self, side: Side, state: str) -> None:
        if side == "host":
            self.ip("link", "set", "uplink", state)
        else:
            self.relay.ip("link", "set", f"host{self.number}", state)

    def cut(self) -> None:
        """Partition: the host has no route to the relay any more."""
        self.down("host")

    def stall(self) -> None:
        """Partition: the link is up at the host, and nothing passes."""
        self.down("relay")

    def resume(self) -> None:
        """End a partition."""
        self.up("host")
        self.up("relay")

    def connect(self) -> None:
        """Make the link."""
        here = f"host{self.number}"
        self.relay.ip("link", "add", here, "type", "veth", "peer", "name", "uplink", "netns", str(self.keeper))
        self.relay.ip("address", "add", f"{self.relay_address}/24", "dev", here)
        self.ip("address", "add", f"{self.address}/24", "dev", "uplink")
        self.resume()


@dataclass(frozen=True)
class Network:
    """The namespaces of the hosts, by name, and that of the relay."""

    relay: Namespace
    hosts: dict[str, HostNetwork]

    def __getitem__(self, name: str) -> HostNetwork:
        return self.hosts[name]


@contextmanager
def network(*names: str) -> Iterator[Network]:
    """Make the namespaces, or skip the test."""
    if reason := impossible():
        unavailable(f"no network namespaces: {reason}")
    with ExitStack() as stack:
        relay = Namespace(stack.enter_context(_kept()))
        hosts = {
            name: HostNetwork(stack.enter_context(_kept()), relay, number) for number, name in enumerate(names, start=1)
        }
        for host in hosts.values():
            host.connect()
        yield Network(relay, hosts)


@cache
def impossible() -> str:
    """Return why there can be no namespaces with links here; empty if there can."""
    if not Path("/proc/self/ns/net").exists():
        return "this is not Linux"
    if os.geteuid() != 0:
        return "only root can make links between them"
    try:
        with ExitStack() as stack:
            relay, host = (Namespace(stack.enter_context(_kept())) for _ in range(2))
            HostNetwork(host.keeper, relay, 1).connect()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{error} {getattr(error, 'stderr', '')}".strip()
    return ""


@contextmanager
def _kept() -> Iterator[int]:
    """Yield the pid of a process that keeps a namespace."""
    command = ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec cat >/dev/null"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as keeper:
        assert keeper.stdin is not None
        assert keeper.stdout is not None
        assert keeper.stderr is not None
        try:
            if keeper.stdout.readline() != "up\n":
                raise OSError(keeper.stderr.read().strip())
            yield keeper.pid
        finally:
            keeper.stdin.close()


def _enter(descriptor: int) -> None:
    """Move this thread to a network namespace. (`os.setns` is in Python 3.12.)"""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
