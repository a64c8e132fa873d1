"""The line that we show, and what a status line makes of a session."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sessions.fake_client import IDLE, START, FakeClient

from fairlead import sessions
from fairlead.clients import StatusLine, client_named
from fairlead.clients.claude._status_line import status_line_of
from fairlead.clients.claude._status_line import usage_of as read_usage
from fairlead.sessions import Registry, Session, Usage, encode_registry, restore_registry
from fairlead.sessions._registry import MAX_SESSIONS
from fairlead.sessions._status_line import MAX_STATUS_BYTES

RECORDED = Path(__file__).with_name("status_lines")


def recorded(name: str = "2.1.325", **parts: Any) -> dict[str, Any]:
    """What the real client told, with some of it changed."""
    status = json.loads((RECORDED / f"{name}.json").read_text("utf-8"))
    for part, values in parts.items():
        status[part] = {**status.get(part, {}), **values}
    found: dict[str, Any] = status
    return found


def line_of(status: dict[str, Any], known: Usage | None = None, others: int = 0) -> str:
    return sessions.line_of(status_line_of(status), known, others)


def test_the_line_of_a_recorded_session() -> None:
    assert line_of(recorded()) == "Opus 5.5  ░░░░░░░░░░ 0%  $0.00  14s"
    assert line_of(recorded("2.1.325-start")) == "Opus 5.5  $0.00  0s"


def test_the_line_of_a_session_that_has_done_something() -> None:
    cost = {"total_cost_usd": 12.345, "total_duration_ms": 754_000, "total_lines_added": 156, "total_lines_removed": 23}
    status = recorded(cost=cost, context_window={"used_percentage": 42})
    assert line_of(status) == "Opus 5.5  ████░░░░░░ 42%  $12.35  12m  +156 -23"
    assert line_of(status, others=1).endswith("+156 -23  ! 1 other needs you")
    assert line_of(status, others=3).endswith("+156 -23  ! 3 others need you")


@pytest.mark.parametrize(
    ("window", "told"), [(200_000, "█████░░░░░ 50%"), (1_000_000, "█░░░░░░░░░ 10%"), (90_000, "██████████ 100%")]
)
def test_how_full_the_context_is_depends_on_the_window(window: int, told: str) -> None:
    """For clients that give no figure of their own."""
    used = {"input_tokens": 10_000, "cache_creation_input_tokens": 20_000, "cache_read_input_tokens": 70_000}
    context = {"context_window_size": window, "used_percentage": None, "current_usage": used}
    assert told in line_of(recorded(context_window=context))


def test_what_is_known_of_the_session_fills_what_one_line_leaves_out() -> None:
    """After /compact the client tells no figure until the next answer."""
    known = Usage(context_percent=88.0, cost_usd=1.5, lines_added=3)
    assert line_of(recorded("2.1.325-start"), known) == "Opus 5.5  █████████░ 88%  $1.50  0s  +3"


def test_a_name_cannot_give_orders_to_the_terminal() -> None:
    name = "\x1b]0;owned\x07Op\nus\r\u202e \u2028\x00\ud800" + "x" * 100
    assert line_of(recorded(model={"display_name": name})).startswith("␛]0;owned␇Op us � ␀�" + "x" * 19 + "…  ")
    assert line_of({"model": {"id": "claude-x"}}) == "claude-x"
    assert line_of({"model": "opus"}) == ""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
FIGURES = ("used_percentage", "context_window_size", "total_cost_usd", "total_duration_ms", "total_lines_added")
PARTS = st.dictionaries(st.sampled_from(["display_name", "id", "current_usage", "input_tokens", *FIGURES]), JSON)
STATUS = st.dictionaries(
    st.sampled_from(["session_id", "model", "context_window", "cost", "rate_limits", "cwd"]), JSON | PARTS
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STATUS, st.integers(0, 5))
def test_whatever_a_client_tells_is_one_line(status: dict[str, Any], others: int) -> None:
    line = line_of(status, others=others)
    assert line.isprintable()
    assert len(line) < 160
    assert line.encode().decode() == line
    assert status_line_of(status).session_id.encode() is not None
    assert (status_line_of(status).seconds or 0.0) >= 0


@settings(deadline=None)
@given(st.binary())
def test_whatever_is_no_status_is_nothing(payload: bytes) -> None:
    assert sessions.line_of(client_named("claude").read_status_line(payload)).isprintable()


@pytest.mark.parametrize(
    "payload",
    [b"", b"[]", b"null", b'"x"', b"{", b"[" * 100_000, b'{"a": "' + b"x" * MAX_STATUS_BYTES + b'"}', b"\xff"],
)
def test_this_is_no_status(payload: bytes) -> None:
    assert client_named("claude").read_status_line(payload) == StatusLine()
    assert sessions.line_of(StatusLine()) == ""


# -- in the registry -----------------------------------------------------------------------------------


def told(name: str) -> Session:
    return Session(id=name, cwd="/p", started=START, since=START, last_activity=START)


def test_a_session_that_nobody_told_of_becomes_known() -> None:
    registry = Registry()
    (change,) = registry.update_usage("new", read_usage(recorded()), told("new"))
    assert (change.session.state, change.session.evidence, change.session.model) == (IDLE, None, "claude-opus-5-5")
    assert registry.update_usage("new", read_usage(recorded()), told("new")) == [], "and the same again is no news"
    assert registry.update_usage("other", read_usage(recorded())) == []
    assert list(registry.by_id) == ["new"]


def test_what_was_measured_survives_the_daemon() -> None:
    registry = Registry()
    registry.update_usage("new", read_usage(recorded(cost={"total_cost_usd": 3.5})), told("new"))
    usage = restore_registry(encode_registry(registry)).by_id["new"].usage
    assert usage is not None
    assert usage.cost_usd == 3.5


def test_a_session_that_began_by_clear_is_linked_though_its_status_line_came_first() -> None:
    client = FakeClient()
    client("SessionStart")
    client("SessionEnd", reason="clear")
    client.registry.update_usage("second", read_usage(recorded()), told("second"))
    client("SessionStart", source="clear", session="second")
    second = client.registry.by_id["second"]
    assert second.previous == ("abc123",)
    assert client.registry.get("abc123") == second


def test_there_are_never_too_many() -> None:
    registry = Registry()
    for number in range(MAX_SESSIONS + 3):
        registry.update_usage(f"s{number}", Usage(cost_usd=1.0), told(f"s{number}"))
    assert len(registry.by_id) == MAX_SESSIONS
