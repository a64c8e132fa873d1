"""Half a character in a field that is no text: the daemon spun for ever, and so did the cold path."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec
import pytest
from daemon.daemon_home import scratch_home
from daemon.talk import talk

from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

COMPLETE = {"session_id": "s", "tool_name": "Bash", "tool_input": {"command": "true"}, "prompt": "p", "agent_id": "a"}
BESIDE: tuple[dict[str, object], ...] = ({}, {"zz": 1}, {"\ud83d": 1})
"""With a key that nobody knows it took for ever, without one it was an internal error."""


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made, made.daemon():
        yield made


def payloads(name: str) -> Iterator[bytes]:
    fields = [field.encode_name for field in msgspec.structs.fields(HookEvent[name].type)]
    for field in fields:
        for beside in BESIDE:
            yield json.dumps({**COMPLETE, "hook_event_name": name, field: "\ud83d", **beside}).encode()


@pytest.mark.parametrize("name", ["PreToolUse", "PostToolUse", "UserPromptSubmit", "Stop", "SubagentStop"])
def test_the_daemon_answers_whatever_field_it_is_in(home: DaemonHome, name: str) -> None:
    answers = [talk(home.socket, "POST", f"/v1/events/{name}", payload) for payload in payloads(name)]

    assert {answer.status for answer in answers} == {200}
    codes = {answer.headers["fairlead-exit"] for answer in answers}
    assert codes == ({"0", "2"} if name == "PreToolUse" else {"0", "1"}), "some are refused"
    assert (home.status() or {})["troubles"] == 0


@pytest.mark.parametrize("beside", BESIDE, ids=ascii)
@pytest.mark.parametrize("route", ["daemon", "cold"])
def test_a_gate_is_shut_and_says_which_field(home: DaemonHome, beside: dict[str, object], route: str) -> None:
    payload = home.payload(tool_name="Bash", tool_input="\ud83d", **beside)
    done = home.hook("PreToolUse", payload) if route == "daemon" else home.cold("PreToolUse", payload)

    assert done.exit_code == 2
    assert "tool_input: not valid Unicode text" in done.stderr
    assert "internal error" not in done.stderr
