"""The view and a daemon's socket: changes, the timeline, reconnecting, and messages while there is none."""

from __future__ import annotations

import os
from functools import partial
from statistics import median
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from tui.sample_sessions import NOW, session
from tui.screens import lines_of, until, watching

from fairlead.sessions import AttentionNeeded, Working
from fairlead.tui import _source
from fairlead.tui._source import SessionSource, fetch_sessions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui.fake_daemon import FakeDaemon

    from fairlead.tui._app import WatchApp


@pytest.fixture(autouse=True)
def _quickly() -> Iterator[None]:
    """Reconnect more often than once a second."""
    before, _source.RETRY_DELAY = _source.RETRY_DELAY, 0.05
    yield
    _source.RETRY_DELAY = before


def is_shown(app: WatchApp, text: str) -> bool:
    return any(text in line for line in lines_of(app))


def test_sessions_can_be_fetched_once(daemon: FakeDaemon) -> None:
    assert {found.id for found in fetch_sessions(str(daemon.socket_path)).sessions} == set(daemon.sessions)


async def test_a_change_is_on_the_screen_within_a_tenth_of_a_second(daemon: FakeDaemon) -> None:
    """The limit is generous, for machines under load; the measured time is printed."""
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        await until(lambda: app.connection.is_live and app.list.lines[0].kind == "heading")
        times = []
        for number in range(5):
            title = f"news {number}"
            start = monotonic()
            daemon.put(session("deadbeef-4444", cwd="/code/fairlead", title=title, state=AttentionNeeded("Plan")))
            await until(partial(is_shown, app, title))
            times.append(monotonic() - start)
        print(f"from the stream to the screen: {median(times) * 1000:.0f} ms")
        assert median(times) < 1.0  # one of them may meet a pause of the machine


async def test_the_stream_adds_and_removes_sessions(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        await until(lambda: len(app.sessions.sessions) == len(daemon.sessions))
        daemon.put(session("new", title="A new one", state=Working("Read")))
        await until(lambda: any("A new one" in line for line in lines_of(app)))
        daemon.drop("new")
        await until(lambda: not any("A new one" in line for line in lines_of(app)))


async def test_the_timeline_of_the_selected_session(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path)), size=(140, 30)) as (app, pilot):
        await until(lambda: app.list.selected)
        await pilot.press("t")
        await until(lambda: "no rm here" in app.panel.text)
        assert app.panel.text.splitlines() == [
            " 14:13:20  UserPromptSubmit               ",
            " 14:13:23  PreToolUse         Bash         blocked no rm here",
            " 14:13:29  PostToolUse        Read         2s",
        ]
        await pilot.press("G")
        await until(lambda: any("a1/events" in path or "%2Fa1/events" in path for path in daemon.requests))
        await pilot.press("t")
        assert not app.panel.display


async def test_after_a_reconnect_only_changes_are_fetched(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        daemon.put(session("one", title="Before"))
        await until(lambda: any("Before" in line for line in lines_of(app)))
        daemon.stop()
        await until(lambda: "offline" in lines_of(app)[0])
        assert any("Before" in line for line in lines_of(app))
        daemon.put(session("two", title="While away"))
        daemon.start()
        await until(lambda: any("While away" in line for line in lines_of(app)))
        assert lines_of(app)[0].endswith("live")
        assert daemon.requests.count("/v1/sessions") == 1
        assert "/v1/sessions/stream?after=1" in daemon.requests


async def test_a_daemon_that_lost_its_history_sends_a_reset(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        await until(lambda: app.connection.is_live)
        daemon.stop(forget=True)
        daemon.sessions = {"fresh": session("fresh", title="All new")}
        daemon.start()
        await until(lambda: list(app.sessions.sessions) == ["fresh"])


async def test_without_a_daemon_the_view_says_what_to_do_and_waits(daemon: FakeDaemon) -> None:
    daemon.stop()
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        await until(lambda: any("start one: fairlead daemon start" in line for line in lines_of(app)))
        daemon.start()
        await until(lambda: lines_of(app)[0].endswith("live"))


@pytest.mark.parametrize(("status", "message"), [(404, "too old to list sessions"), (500, "answers 500")])
async def test_a_daemon_that_refuses_is_named(daemon: FakeDaemon, status: int, message: str) -> None:
    daemon.status = status
    async with watching(source=SessionSource(str(daemon.socket_path)), size=(120, 20)) as (app, _):
        await until(lambda: any(message in line for line in lines_of(app)))


async def test_unreadable_events_of_the_stream_are_skipped(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, _):
        await until(lambda: app.connection.is_live)
        for kind, data in (("session", '{"id": 7}'), ("session", "{"), ("weather", "{}"), ("session", "")):
            daemon.publish(kind, data)
        daemon.publish("gone", "nonsense")
        daemon.put(session("sane", title="Still here"))
        await until(lambda: any("Still here" in line for line in lines_of(app)))


async def test_a_thousand_sessions_and_a_storm_of_changes(daemon: FakeDaemon) -> None:
    """Every change is applied, drawn at most about ten times a second, and keys are answered in between."""
    daemon.stop()
    for number in range(1000):
        name = f"s{number:04}"
        daemon.sessions[name] = session(name, cwd=f"/p/{number % 40}", title=f"Session {number}")
        for child in range(10):
            daemon.sessions[f"{name}/{child}"] = session(f"{name}/{child}", parent=name, agent_type="coder")
    daemon.start()
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, pilot):
        await until(lambda: len(app.sessions.sessions) > 11_000 and app.connection.is_live)
        drawn, start = app.draws, monotonic()
        for number in range(1000):
            state = AttentionNeeded("Permission") if number % 50 == 0 else Working(f"Edit {number}")
            daemon.put(session(f"s{number:04}", cwd=f"/p/{number % 40}", state=state, since=NOW - number))
        daemon.put(session("last", cwd="/p/0", state=Working()))
        await until(lambda: "last" in app.sessions.sessions)
        assert app.draws - drawn <= (monotonic() - start) * 10 + 3
        await pilot.press("G")
        await until(lambda: app.list.selected == app.list.lines[-1])
        await until(lambda: lines_of(app)[0].startswith(" ! 22 need you"))


def test_fetching_without_a_daemon_is_an_error(tmp_path: object) -> None:
    with pytest.raises(Exception, match="no daemon is running"):
        fetch_sessions(f"/tmp/{os.getpid()}-none.sock")
