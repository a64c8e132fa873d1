"""The view and a daemon's socket: changes, the timeline, coming back, and what is said while there is none."""

from __future__ import annotations

import os
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from tui.screens import lines_of, until, watching
from tui.team import NOW, session

from fairlead.sessions import AttentionNeeded, Working
from fairlead.tui import _source
from fairlead.tui._source import Source, fetch_once

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tui.speaker import Speaker

    from fairlead.tui._app import WatchApp


@pytest.fixture(autouse=True)
def _quickly() -> Iterator[None]:
    """Look for a daemon more often than once a second."""
    before, _source.AGAIN = _source.AGAIN, 0.05
    yield
    _source.AGAIN = before


def is_shown(app: WatchApp, text: str) -> bool:
    return any(text in line for line in lines_of(app))


def test_what_is_there_can_be_asked_once(speaker: Speaker) -> None:
    assert {found.id for found in fetch_once(str(speaker.place))} == set(speaker.sessions)


async def test_a_change_is_on_the_screen_within_a_tenth_of_a_second(speaker: Speaker) -> None:
    """What is asserted is wide, for machines under load; what was measured is printed."""
    async with watching(source=Source(str(speaker.place))) as (app, _):
        await until(lambda: app.link.is_live and app.list.lines[0].kind == "heading")
        took = []
        for number in range(5):
            title = f"news {number}"
            begun = monotonic()
            speaker.put(session("deadbeef-4444", cwd="/code/fairlead", title=title, state=AttentionNeeded("Plan")))
            await until(partial(is_shown, app, title))
            took.append(monotonic() - begun)
        print(f"from the stream to the screen: {max(took) * 1000:.0f} ms at most")
        assert max(took) < 1.0


async def test_sessions_come_and_go_by_the_stream(speaker: Speaker) -> None:
    async with watching(source=Source(str(speaker.place))) as (app, _):
        await until(lambda: len(app.team.sessions) == len(speaker.sessions))
        speaker.put(session("new", title="A new one", state=Working("Read")))
        await until(lambda: any("A new one" in line for line in lines_of(app)))
        speaker.drop("new")
        await until(lambda: not any("A new one" in line for line in lines_of(app)))


async def test_the_timeline_of_the_chosen_session(speaker: Speaker) -> None:
    async with watching(source=Source(str(speaker.place)), size=(140, 30)) as (app, pilot):
        await until(lambda: app.list.chosen)
        await pilot.press("t")
        await until(lambda: "no rm here" in app.panel.text)
        assert app.panel.text.splitlines() == [
            " 14:13:20  UserPromptSubmit               ",
            " 14:13:23  PreToolUse         Bash         blocked no rm here",
            " 14:13:29  PostToolUse        Read         2s",
        ]
        await pilot.press("G")
        await until(lambda: any("a1/events" in path or "%2Fa1/events" in path for path in speaker.asked))
        await pilot.press("t")
        assert not app.panel.display


async def test_a_daemon_that_comes_back_tells_only_what_is_new(speaker: Speaker) -> None:
    async with watching(source=Source(str(speaker.place))) as (app, _):
        speaker.put(session("one", title="Before"))
        await until(lambda: any("Before" in line for line in lines_of(app)))
        speaker.stop()
        await until(lambda: "offline" in lines_of(app)[0])
        assert any("Before" in line for line in lines_of(app))
        speaker.put(session("two", title="While away"))
        speaker.start()
        await until(lambda: any("While away" in line for line in lines_of(app)))
        assert lines_of(app)[0].endswith("live")
        assert speaker.asked.count("/v1/sessions") == 1
        assert "/v1/sessions/stream?after=1" in speaker.asked


async def test_a_daemon_that_has_forgotten_begins_anew(speaker: Speaker) -> None:
    async with watching(source=Source(str(speaker.place))) as (app, _):
        await until(lambda: app.link.is_live)
        speaker.stop(forget=True)
        speaker.sessions = {"fresh": session("fresh", title="All new")}
        speaker.start()
        await until(lambda: list(app.team.sessions) == ["fresh"])


async def test_no_daemon_is_said_with_what_to_do_and_the_view_waits_for_one(speaker: Speaker) -> None:
    speaker.stop()
    async with watching(source=Source(str(speaker.place))) as (app, _):
        await until(lambda: any("begin one: fairlead daemon start" in line for line in lines_of(app)))
        speaker.start()
        await until(lambda: lines_of(app)[0].endswith("live"))


@pytest.mark.parametrize(("status", "said"), [(404, "knows no sessions: it is older"), (500, "answers 500")])
async def test_a_daemon_that_refuses_is_named(speaker: Speaker, status: int, said: str) -> None:
    speaker.status = status
    async with watching(source=Source(str(speaker.place)), size=(120, 20)) as (app, _):
        await until(lambda: any(said in line for line in lines_of(app)))


async def test_nonsense_on_the_stream_is_left_out(speaker: Speaker) -> None:
    async with watching(source=Source(str(speaker.place))) as (app, _):
        await until(lambda: app.link.is_live)
        for kind, data in (("session", '{"id": 7}'), ("session", "{"), ("weather", "{}"), ("session", "")):
            speaker.say(kind, data)
        speaker.say("gone", "nonsense")
        speaker.put(session("sane", title="Still here"))
        await until(lambda: any("Still here" in line for line in lines_of(app)))


async def test_a_thousand_sessions_and_a_storm_of_changes(speaker: Speaker) -> None:
    """Every change is taken in, but it is drawn at most ten times a second, and a key is answered in between."""
    speaker.stop()
    for number in range(1000):
        name = f"s{number:04}"
        speaker.sessions[name] = session(name, cwd=f"/p/{number % 40}", title=f"Session {number}")
        for child in range(10):
            speaker.sessions[f"{name}/{child}"] = session(f"{name}/{child}", parent=name, agent_type="coder")
    speaker.start()
    async with watching(source=Source(str(speaker.place))) as (app, pilot):
        await until(lambda: len(app.team.sessions) > 11_000 and app.link.is_live)
        drawn, begun = app.draws, monotonic()
        for number in range(1000):
            state = AttentionNeeded("Permission") if number % 50 == 0 else Working(f"Edit {number}")
            speaker.put(session(f"s{number:04}", cwd=f"/p/{number % 40}", state=state, since=NOW - number))
        speaker.put(session("last", cwd="/p/0", state=Working()))
        await until(lambda: "last" in app.team.sessions)
        assert app.draws - drawn <= (monotonic() - begun) * 10 + 3
        await pilot.press("G")
        await until(lambda: app.list.chosen == app.list.lines[-1])
        await until(lambda: lines_of(app)[0].startswith(" ! 22 wait for you"))


def test_a_socket_that_is_none(tmp_path: object) -> None:
    with pytest.raises(Exception, match="no daemon is running"):
        fetch_once(f"/tmp/{os.getpid()}-none.sock")  # noqa: S108 - it is not there
