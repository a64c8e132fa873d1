"""A host whose Fairlead was altered: it has a key of its own, and signs with it whatever a test wants."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import count
from time import time
from typing import TYPE_CHECKING, Any

import msgspec
from daemon.daemon_home import until

from fairlead.daemon.team.answers._packets import ANSWER, ANSWER_RESULT, AnswerResultPacket, decode_answer_result
from fairlead.team import (
    Hello,
    HostSnapshot,
    Packet,
    PrivateKey,
    generate_key,
    new_host_id,
    sign_packet,
    sign_snapshot,
)
from fairlead.team.relay import open_relay

if TYPE_CHECKING:
    from collections.abc import Iterator

_nonces = count()


class AlteredHost:
    """Talks to the relay as a daemon does, without its checks."""

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.id = new_host_id()
        self.key = generate_key()
        self.relay = open_relay(url)
        welcome = self.relay.connect(
            Hello(team="", host=self.id, name=name, key=self.key.public, version="1", boot=f"{name}-{self.id}")
        )
        self.team = welcome.team
        self.sent: list[Packet] = []

    def packet(self, target: str, body: bytes, *, seq: int = 0, key: PrivateKey | None = None) -> Packet:
        """Return a signed answer; the next one to its target, unless it is to have another number."""
        following = 1 + sum(1 for one in self.sent if one.target == target)
        unsigned = Packet(origin=self.id, target=target, seq=seq or following, kind=ANSWER, body=body)
        return sign_packet(unsigned, key or self.key, self.team)

    def push(self, packet: Packet) -> None:
        """Put a packet on the relay."""
        self.relay.push([packet])
        self.sent.append(packet)

    def answer(self, target: str, question: dict[str, Any], **changes: Any) -> AnswerResultPacket:
        """Answer a question, and return what its host says became of that."""
        body = answer_body(question, **changes)
        self.push(self.packet(target, body))
        nonce = msgspec.json.decode(body)["nonce"]
        until(lambda: self.results().get(nonce), "the host says what became of the answer")
        return self.results()[nonce]

    def results(self) -> dict[str, AnswerResultPacket]:
        """What other hosts say became of answers, by nonce."""
        found = [decode_answer_result(one.body) for one in self.relay.pull() if one.kind == ANSWER_RESULT]
        return {one.nonce: one for one in found}

    def ask(self, *questions: dict[str, Any]) -> None:
        """Tell all hosts what sessions of this host ask, and that they can answer it."""
        body = msgspec.json.encode({"questions": questions, "answers": True})
        snapshot = HostSnapshot(host=self.id, kind="sessions", version=int(time() * 1000), body=body)
        self.relay.publish(sign_snapshot(snapshot, self.key, self.team))


def answer_body(question: dict[str, Any], **changes: Any) -> bytes:
    """Return the body of an answer that allows a question."""
    fields = {"nonce": f"nonce-{next(_nonces):06}", "at": time(), "decision": "allow"}
    return msgspec.json.encode({**fields, "question": question["id"], "asked": question["asked"], **changes})


@contextmanager
def altered_host(name: str, url: str) -> Iterator[AlteredHost]:
    """Connect an altered host, which nobody has confirmed yet."""
    host = AlteredHost(name, url)
    try:
        yield host
    finally:
        host.relay.close()
