"""The port of this machine: only for who knows the token, and for no page of a browser."""

from __future__ import annotations

import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import scratch_home
from daemon.talk import Answer, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

POLICY = """\
preToolUse: {uneditableFiles: [kept.txt]}
userPromptSubmit: {commands: [{run: "true"}]}
postToolUse: {commands: {"*": [{run: "true"}]}}
subagentStart: {context: {"*": "Be brief."}}
"""


@dataclass(frozen=True)
class Port:
    """A daemon that listens on a port too."""

    home: DaemonHome
    number: int
    token: str

    def ask(self, method: str, path: str, body: bytes = b"", **headers: str) -> Answer:
        return talk(self.number, method, path, body, **{"authorization": f"Bearer {self.token}", **headers})

    def hook(self, event: str, payload: bytes) -> dict[str, Any]:
        answer = self.ask("POST", f"/v1/http/{event}", payload)
        assert answer.status == 200
        document: dict[str, Any] = answer.json
        return document


@pytest.fixture(scope="module")
def port() -> Iterator[Port]:
    """A daemon with a port."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home:
        home.policy(POLICY)
        with home.daemon("--port", "0"):
            status = home.status()
            assert status is not None
            number = int(status["listens"][1].rpartition(":")[2])
            yield Port(home, number, (home.state / "run/token").read_text().strip())


# -- who may ask ---------------------------------------------------------------------------------------


def test_who_knows_the_token_is_answered(port: Port) -> None:
    assert port.ask("GET", "/v1/status").json["version"] == "0.1.0"
    assert port.ask("GET", "/v1/status", authorization=f"bearer {port.token}").status == 200
    assert port.ask("GET", "/v1/status", host=f"127.0.0.1:{port.number}").status == 200
    assert port.ask("GET", "/v1/status", host=f"localhost:{port.number}").status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer "},
        {"authorization": "Bearer wrong"},
        {"authorization": "Basic {token}"},
        {"authorization": "{token}"},
        {"origin": "http://localhost"},
        {"origin": "null"},
        {"host": "evil.example"},
        {"host": "evil.example:80"},
        {"host": ""},
        {"authorization": "", "x_forwarded_for": "", "x_forwarded_proto": "http"},
    ],
)
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/v1/status"), ("GET", "/metrics"), ("POST", "/v1/stop"), ("POST", "/v1/events/Stop")]
)
def test_who_does_not_is_refused(port: Port, method: str, path: str, headers: dict[str, str]) -> None:
    told = {name: value.format(token=port.token) for name, value in headers.items()}

    answer = port.ask(method, path, b"", **told)

    assert (answer.status, answer.text) == (401, "the token is missing: authorization: Bearer TOKEN")
    assert port.home.status() is not None


def test_the_token_is_for_the_user_alone_and_another_each_time(port: Port) -> None:
    file = port.home.state / "run/token"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(port.token) > 40
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as home, home.daemon("--port=0"):
        assert (home.state / "run/token").read_text().strip() != port.token


def test_the_unix_socket_needs_no_token(port: Port) -> None:
    assert talk(port.home.socket, "GET", "/v1/status").status == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/events/Stop", 404),
        ("GET", "/v1/stop", 405),
        ("GET", "/v1/http/PreToolUse", 405),
        ("POST", "/metrics", 405),
    ],
)
def test_there_is_nothing_else(port: Port, method: str, path: str, status: int) -> None:
    assert port.ask(method, path).status == status


# -- hooks of the client's type http -------------------------------------------------------------------


def test_a_denial_is_json(port: Port) -> None:
    answer = port.hook("PreToolUse", port.home.edit("kept.txt"))

    verdict = answer["hookSpecificOutput"]
    assert verdict["permissionDecision"] == "deny"
    assert "uneditableFiles" in verdict["permissionDecisionReason"]
    record = port.home.happened()[-1]
    assert (record.event, record.verdict, record.session) == ("PreToolUse", "blocked", "s1")


def test_nothing_to_say_is_an_empty_object(port: Port) -> None:
    assert port.hook("PreToolUse", port.home.edit("src/a.txt")) == {}


def test_context_is_given(port: Port) -> None:
    start = port.home.payload(hook_event_name="SubagentStart", agent_id="a1", agent_type="coder")

    assert port.hook("SubagentStart", start)["hookSpecificOutput"]["additionalContext"] == "Be brief."


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b'{"session_id": "s"}', b"\xff", b"[" * 100_000])
def test_a_payload_that_cannot_be_read_is_denied(port: Port, payload: bytes) -> None:
    verdict = port.hook("PreToolUse", payload)["hookSpecificOutput"]

    assert verdict["permissionDecision"] == "deny"
    assert verdict["permissionDecisionReason"].startswith("fairlead cannot decide: ")
    assert port.home.happened()[-1].verdict == "blocked"


def test_where_nothing_can_be_denied_the_person_is_told(port: Port) -> None:
    assert port.hook("SessionEnd", b"{")["systemMessage"].startswith("fairlead cannot decide: payload: ")


def test_a_gate_with_commands_stays_shut(port: Port) -> None:
    """There is no process to run them in."""
    answer = port.hook("UserPromptSubmit", port.home.payload(hook_event_name="UserPromptSubmit", prompt="Go."))

    assert answer["decision"] == "block"
    assert answer["reason"] == "this policy has commands, which an http hook cannot run: fairlead hooks install"


def test_a_folder_that_is_relative_is_denied(port: Port) -> None:
    answer = port.hook("PreToolUse", port.home.payload(cwd="here", tool_name="Edit", tool_input={"file_path": "a"}))

    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_body_that_is_larger_than_any_payload_is_denied(port: Port) -> None:
    huge = b'{"session_id": "' + b"x" * (64 * 1024 * 1024) + b'"}'
    verdict = port.hook("PreToolUse", huge)["hookSpecificOutput"]

    assert verdict["permissionDecision"] == "deny"
    assert "that are read" in verdict["permissionDecisionReason"]


def test_two_at_the_same_moment_are_two(port: Port) -> None:
    before = len(port.home.happened())
    for _ in range(50):
        port.hook("PreToolUse", port.home.edit("src/a.txt"))

    records = port.home.happened()[before:]
    assert len({record.id for record in records}) == 50
