"""The history in the view: its screens, compared exactly, and its keys, against a daemon at a real socket."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from msgspec.structs import replace
from tui.sample_sessions import LEAD, NOW, SHOP, TREE
from tui.screens import lines_of, snapshot_of, until, watching
from tui.test_snapshots import compare

from fairlead.sessions import AbsenceSummary, HistoryMatch, HistoryPage, HistorySession, SessionHistory, SubagentHistory
from fairlead.sessions import TimelineEntry as Entry
from fairlead.tui._source import SessionSource
from fairlead.tui.widgets._history import AbsenceScreen, HistoryScreen, SessionHistoryScreen

if TYPE_CHECKING:
    from tui.fake_daemon import FakeDaemon

    from fairlead.tui._app import WatchApp

HOUR = 3600.0
MIDNIGHT = NOW - NOW % 86400


def past(name: str, **fields: Any) -> HistorySession:
    return HistorySession(**{"id": name, "folder": SHOP, "last": NOW - 60, **fields})


SESSIONS = [
    past("c0ffee00-3333", started=NOW - 900, prompt="Pay by invoice", tools=41, cost_usd=1.204, subagents=2),
    past(
        "77aa12bc-2222",
        folder=TREE,
        started=NOW - 3 * HOUR,
        ended=NOW - HOUR,
        end_reason="prompt_input_exit",
        prompt="Fix the flaky test of the store\x1b[31m, and say why it was flaky, in a comment beside it",
        tools=230,
        blocked=3,
        cost_usd=12.5,
        total_usd=14.0,
    ),
    past("5f0c8a4e-1111", folder=LEAD, started=NOW - 26 * HOUR, ended=NOW - 2 * HOUR, tools=2, cost_usd=0.02),
]
PAGE = HistoryPage(since=MIDNIGHT, now=NOW, left=NOW - 2 * HOUR, usd=13.724, sessions=SESSIONS)
FOUND = HistoryPage(
    since=MIDNIGHT,
    now=NOW,
    sessions=SESSIONS[:2],
    matches=[
        HistoryMatch("c0ffee00-3333", SHOP, NOW - 700, "command", "git push origin main"),
        HistoryMatch("77aa12bc-2222", TREE, NOW - 2 * HOUR, "prompt", "push it when the tests are green"),
    ],
)
ONE = SessionHistory(
    session=SESSIONS[1],
    subagents=[SubagentHistory(id="a7fe8112", type="Explore", started=NOW - 2.5 * HOUR, ended=NOW - 2.4 * HOUR)],
    timeline=[
        Entry(at=NOW - 3 * HOUR, event="SessionStart"),
        Entry(at=NOW - 2.9 * HOUR, event="UserPromptSubmit", text="Fix the flaky test"),
        Entry(at=NOW - 2.8 * HOUR, event="PreToolUse", tool="Bash", text="make test"),
        Entry(
            at=NOW - 2 * HOUR,
            event="PreToolUse",
            tool="Edit",
            agent="a7fe8112",
            verdict="blocked",
            reason="Blocked Edit operation: uv.lock is protected",
            text="/code/fairlead-issue-5/uv.lock",
        ),
        Entry(at=NOW - HOUR, event="SessionEnd", text="prompt_input_exit"),
    ],
)
AWAY = AbsenceSummary(
    since=NOW - 2 * HOUR,
    now=NOW,
    ended=SESSIONS[1:],
    waiting=["c0ffee00-3333"],
    asked=4,
    blocked=3,
    examples=[ONE.timeline[3]],
    active=3,
    usd=9.75,
)


@pytest.fixture
def past_daemon(daemon: FakeDaemon) -> FakeDaemon:
    """A daemon with a history."""
    daemon.documents = {
        "/v1/history": msgspec.json.encode(PAGE),
        "/v1/history/77aa12bc-2222": msgspec.json.encode(ONE),
        "/v1/absence": msgspec.json.encode(AWAY),
        "/v1/presence": json.dumps({"left": 0.0, "was_away": False}).encode(),
    }
    return daemon


async def opened(app: WatchApp, pilot: Any) -> HistoryScreen:
    await until(lambda: app.connection.is_live)
    await pilot.press("H")
    await until(lambda: isinstance(app.screen, HistoryScreen))
    screen = app.screen
    assert isinstance(screen, HistoryScreen)
    await until(lambda: "Pay by invoice" in screen.list.text)
    await pilot.pause()
    return screen


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_the_history_of_today(past_daemon: FakeDaemon, size: tuple[int, int]) -> None:
    source = SessionSource(str(past_daemon.socket_path))
    async with watching(size=size, source=source) as (app, pilot):
        await opened(app, pilot)
        compare(f"history-{size[0]}x{size[1]}", snapshot_of(app))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_the_events_of_one_session(past_daemon: FakeDaemon, size: tuple[int, int]) -> None:
    async with watching(size=size, source=SessionSource(str(past_daemon.socket_path))) as (app, pilot):
        await opened(app, pilot)
        await pilot.press("j", "enter")
        await until(lambda: isinstance(app.screen, SessionHistoryScreen) and app.screen.lines.count > 3)
        await pilot.pause()
        compare(f"history-session-{size[0]}x{size[1]}", snapshot_of(app))
        await pilot.press("escape")
        await until(lambda: isinstance(app.screen, HistoryScreen))
        await pilot.press("escape")
        await until(lambda: len(app.screen_stack) == 1)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_who_comes_back_sees_what_happened_meanwhile(past_daemon: FakeDaemon, size: tuple[int, int]) -> None:
    past_daemon.documents["/v1/presence"] = json.dumps({"left": NOW - 2 * HOUR, "was_away": True}).encode()
    async with watching(size=size, source=SessionSource(str(past_daemon.socket_path))) as (app, pilot):
        await until(lambda: isinstance(app.screen, AbsenceScreen) and app.connection.is_live)
        await until(lambda: not app._is_draw_pending)
        await pilot.pause()
        compare(f"absence-{size[0]}x{size[1]}", snapshot_of(app))
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, HistoryScreen))
        await until(lambda: any("since=left" in path for path in past_daemon.requests))


async def test_the_history_by_project_and_in_other_periods(past_daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(past_daemon.socket_path))) as (app, pilot):
        screen = await opened(app, pilot)
        await pilot.press("b")
        await pilot.pause()
        groups = [line for line in screen.list.text.splitlines() if line[1].isalpha()]
        assert groups == [" fairlead   2 sessions   $12.52", " webshop   1 session   $1.20"]
        for key, since in {"2": "left", "3": "0", "1": "today"}.items():
            await pilot.press(key)
            path = f"/v1/history?since={since}&limit=200"
            await until(partial(past_daemon.requests.__contains__, path))


async def test_costs_that_were_not_reported_are_shown_as_unknown(past_daemon: FakeDaemon) -> None:
    silent = replace(SESSIONS[1], cost_usd=None, total_usd=None)
    page = replace(PAGE, sessions=[SESSIONS[0], silent], usd=1.204, unknown=1)
    past_daemon.documents["/v1/history"] = msgspec.json.encode(page)
    past_daemon.documents["/v1/history/77aa12bc-2222"] = msgspec.json.encode(replace(ONE, session=silent))
    past_daemon.documents["/v1/absence"] = msgspec.json.encode(replace(AWAY, ended=[silent], usd=None, unknown=3))
    past_daemon.documents["/v1/presence"] = json.dumps({"left": NOW - 2 * HOUR, "was_away": True}).encode()
    async with watching(size=(100, 30), source=SessionSource(str(past_daemon.socket_path))) as (app, pilot):
        await until(lambda: isinstance(app.screen, AbsenceScreen) and "3 sessions worked" in "".join(lines_of(app)))
        shown = "\n".join(lines_of(app))
        assert "3 sessions worked, cost unknown" in shown
        assert "  unknown  fairlead" in shown
        await pilot.press("enter")
        await until(lambda: isinstance(app.screen, HistoryScreen) and "Pay by invoice" in app.screen.list.text)
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, HistoryScreen)
        assert lines_of(app)[0].endswith("2 sessions   1 running   $1.20, cost of 1 unknown")
        assert "    $1.20     41  " in screen.list.text
        assert "  unknown    230  " in screen.list.text
        await pilot.press("b")
        await pilot.pause()
        groups = [line for line in screen.list.text.splitlines() if line[1].isalpha()]
        assert groups == [" fairlead   1 session   cost unknown", " webshop   1 session   $1.20"]
        await pilot.press("g", "g", "enter")
        await until(lambda: isinstance(app.screen, SessionHistoryScreen) and app.screen.lines.count > 3)
        await pilot.pause()
        assert any(line.endswith("2h00m, cost unknown") for line in lines_of(app))


async def test_a_search_in_the_history(past_daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(past_daemon.socket_path))) as (app, pilot):
        screen = await opened(app, pilot)
        past_daemon.documents["/v1/history"] = msgspec.json.encode(FOUND)
        await pilot.press("/", "p", "u", "s", "h", "enter")
        await until(lambda: "git push origin main" in screen.list.text)
        assert any("search=push" in path for path in past_daemon.requests)
        await pilot.pause()
        assert lines_of(app)[0] == " history, today   2 found: push"
        assert screen.list.selected == "c0ffee00-3333"
        past_daemon.documents["/v1/history"] = msgspec.json.encode(PAGE)
        await pilot.press("escape")
        await until(lambda: "Pay by invoice" in screen.list.text)


async def test_a_daemon_without_a_history_is_reported(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, pilot):
        await until(lambda: app.connection.is_live)
        daemon.status = 503
        await pilot.press("H")
        await until(lambda: isinstance(app.screen, HistoryScreen) and "503" in app.screen.list.text)
        daemon.status = 200


async def test_the_view_notes_that_the_user_is_there_and_when_they_leave(past_daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(past_daemon.socket_path))) as (app, _):
        await until(lambda: app.connection.is_live)
        await until(lambda: past_daemon.requests.count("/v1/presence") == 1)
    await until(lambda: past_daemon.requests.count("/v1/presence") == 2)
