"""Hosts that a test connects to a relay by name, each with its id, its key and the nonces that it has used."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING

from fairlead.team import Hello, Packet, TeamError
from fairlead.team.relay import open_relay

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from fairlead.team import Welcome
    from fairlead.team.relay import Relay


def host_id(name: str) -> str:
    return hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()


def packet(origin: str, target: str, seq: int, body: bytes = b"{}", kind: str = "message") -> Packet:
    return Packet(origin=host_id(origin), target=host_id(target), seq=seq, kind=kind, body=body, signature=b"s" * 64)


def packets(origin: str, target: str, first: int, last: int) -> list[Packet]:
    return [packet(origin, target, seq, b"%d" % seq) for seq in range(first, last + 1)]


class Relays:
    """Opens relays, and closes those that are left at the end."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.boots: dict[str, list[str]] = {}
        self.welcome: dict[str, Welcome] = {}
        self._opened: list[Relay] = []

    def open(self, name: str, *, url: str = "", timeout: float = 5.0, team: str = "") -> Relay:
        """Return a connected relay of a host."""
        relay = self.reach(url=url, timeout=timeout)
        self.connect(relay, name, team=team)
        return relay

    def reach(self, *, url: str = "", timeout: float = 5.0) -> Relay:
        """Return a relay to which no host has introduced itself yet."""
        relay = open_relay(url or self.url, timeout=timeout)
        self._opened.append(relay)
        return relay

    def connect(self, relay: Relay, name: str, *, team: str = "") -> None:
        hello = self.hello(name, team=team)
        self.boots[name].append(hello.boot)
        self.welcome[name] = relay.connect(hello)

    def hello(self, name: str, *, team: str = "") -> Hello:
        known = self.boots.setdefault(name, [])
        key = hashlib.sha256(name.encode()).digest()
        boot = f"{name}-{len(known)}-{id(self)}"
        return Hello(
            team=team, host=host_id(name), name=name, key=key, version="1", known_boots=tuple(known), boot=boot
        )

    def copy(self) -> Relays:
        """Return the same hosts as copies of their machines have them."""
        copied = Relays(self.url)
        copied.boots = {name: list(boots) for name, boots in self.boots.items()}
        return copied

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for relay in self._opened:
            with suppress(TeamError):
                relay.close()


def using(url: str) -> Iterator[Relays]:
    """Yield relays of one URL; for fixtures."""
    with Relays(url) as relays:
        yield relays
