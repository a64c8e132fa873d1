"""Each key, pressed in the real app."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest
from tui.screens import lines_of, until, watching
from tui.team import NOW, session, team

from fairlead.sessions import AttentionNeeded, Idle, Working
from fairlead.tui._actions import Actions
from fairlead.tui._help import HelpScreen, help_text
from fairlead.tui._keys import GROUPS, KeyReader, hints
from fairlead.tui._source import Changed, Gone, Link

if TYPE_CHECKING:
    from fairlead.tui._app import WatchApp


def chosen(app: WatchApp) -> str:
    line = app.list.chosen
    return line.id if line else ""


FIRST, SECOND = "5f0c8a4e-1111", "c0ffee00-3333"


@pytest.mark.parametrize(
    ("keys", "ends_at"),
    [
        ("", ("need", FIRST)),
        ("j", ("need", SECOND)),
        ("down", ("need", SECOND)),
        ("j j", ("project", "/code/fairlead")),
        ("j j k", ("need", SECOND)),
        ("k", ("need", FIRST)),
        ("up", ("need", FIRST)),
        ("G", ("session", "77aa12bc-2222/a1")),
        ("end", ("session", "77aa12bc-2222/a1")),
        ("G g g", ("need", FIRST)),
        ("G home", ("need", FIRST)),
        ("g j", ("need", SECOND)),
        ("ctrl+d", ("session", "c0ffee00-3333/b1")),
        ("ctrl+d ctrl+u", ("need", FIRST)),
        ("pagedown", ("session", "c0ffee00-3333/b1")),
        ("n", ("need", SECOND)),
        ("tab", ("need", SECOND)),
        ("n n", ("need", FIRST)),
        ("N", ("need", SECOND)),
        ("G N", ("need", SECOND)),
        ("G h", ("session", "77aa12bc-2222")),
        ("G left left left", ("project", "/code/webshop")),
        ("j j l", ("worktree", "/code/fairlead")),
        ("j j right right", ("session", "deadbeef-4444")),
        ("x", ("need", FIRST)),
    ],
)
async def test_moving(keys: str, ends_at: tuple[str, str]) -> None:
    async with watching() as (app, pilot):
        await pilot.press(*keys.split())
        await pilot.pause()
        assert app.list.chosen is not None
        assert app.list.chosen.key == ends_at


async def test_folding() -> None:
    async with watching() as (app, pilot):
        whole = len(app.list.lines)
        await pilot.press("j", "j", "z", "a")
        assert len(app.list.lines) == whole - 7
        await pilot.press("space")
        assert len(app.list.lines) == whole
        await pilot.press("enter")
        assert len(app.list.lines) == whole - 7
        await pilot.press("l")
        assert len(app.list.lines) == whole
        await pilot.press("z", "M")
        assert [line.kind for line in app.list.lines[4:]] == ["project", "project"]
        await pilot.press("z", "R")
        assert len(app.list.lines) == whole


async def test_filtering_while_it_is_typed_and_showing_all_again() -> None:
    async with watching() as (app, pilot):
        whole = app.list.lines
        await pilot.press("/", *"slow")
        await until(lambda: len(app.list.lines) == 3)
        await pilot.press("enter")
        assert app.focused is app.list
        assert "filter: slow" in lines_of(app)[-1]
        await pilot.press("escape")
        await until(lambda: app.list.lines == whole)
        await pilot.press("/", "x", "y", "escape")
        await until(lambda: app.list.lines == whole and app.focused is app.list)


async def test_keys_in_the_filter_are_letters() -> None:
    async with watching() as (app, pilot):
        await pilot.press("/", *"q?se")
        assert app.box.value == "q?se"
        assert app.is_running


async def test_sorting_goes_round_and_says_by_what() -> None:
    async with watching() as (app, pilot):
        said = []
        for _ in range(5):
            await pilot.press("s")
            said.append(app.bars["hints"].text.split()[-1])
        assert said == ["state", "activity", "cost", "context", "name"]


async def test_showing_those_that_have_ended() -> None:
    async with watching() as (app, pilot):
        await pilot.press("e")
        assert "e0de0000-6666" in [line.id for line in app.list.lines]
        await pilot.press("e")
        assert "e0de0000-6666" not in [line.id for line in app.list.lines]


async def test_help_comes_and_goes_by_keys() -> None:
    async with watching() as (app, pilot):
        await pilot.press("?")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("j", "k", "pagedown")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("q")
        assert not isinstance(app.screen, HelpScreen)
        assert app.is_running


def test_every_key_is_in_the_help_and_does_something() -> None:
    made = {name.removeprefix("do_") for name, _ in inspect.getmembers(Actions) if name.startswith("do_")}

    assert {key.does for group in GROUPS.values() for key in group} == made
    assert all(key.words in help_text() for group in GROUPS.values() for key in group)
    assert hints(80, "name").endswith("? help")
    assert len(hints(30, "name")) <= 30
    names = [name for group in GROUPS.values() for key in group for name in key.keys]
    assert len(names) == len(set(names))
    reader = KeyReader()
    assert [reader.read("g", "g"), reader.read("x", "x"), reader.read("j", "j")] == ["", None, "down"]


async def test_copying_the_id() -> None:
    async with watching() as (app, pilot):
        await pilot.press("y")
        assert app.clipboard == FIRST
        assert f"copied: {FIRST}" in lines_of(app)[-1]


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_leaving(key: str) -> None:
    async with watching() as (app, pilot):
        await pilot.press(key)
        await until(lambda: not app.is_running)


async def test_a_click_chooses_a_line() -> None:
    async with watching() as (app, pilot):
        await pilot.click(type(app.list), offset=(20, 2))
        assert chosen(app) == SECOND


async def test_a_session_without_a_pane_says_so() -> None:
    async with watching() as (app, pilot):
        await pilot.press("j", "enter")
        await until(lambda: "does not run in tmux" in lines_of(app)[-1])
        await pilot.press("p")
        await until(lambda: "does not run in tmux" in app.panel.text)
        await pilot.press("escape")
        assert not app.panel.display


async def test_the_chosen_line_stays_when_others_come_and_go() -> None:
    async with watching() as (app, pilot):
        await pilot.press("G", "h")
        before = chosen(app)
        for number in range(20):
            app.deliver(Changed(session(f"new{number}", cwd="/code/fairlead", state=Working())))
        app.deliver(Gone("deadbeef-4444"))
        await until(lambda: len(app.list.lines) > 30)
        assert chosen(app) == before
        assert any("Find the slow query" in line for line in lines_of(app))


async def test_one_who_needs_the_person_is_above_all_at_once_and_gone_when_answered() -> None:
    async with watching() as (app, pilot):
        app.deliver(Changed(session("deadbeef-4444", title="Now", state=AttentionNeeded("Plan"), since=NOW - 999)))
        await until(lambda: app.list.lines[1].id == "deadbeef-4444")
        await pilot.pause()
        assert "3 wait for you" in lines_of(app)[0]
        for each in ("deadbeef-4444", FIRST, SECOND):
            app.deliver(Changed(session(each, state=Idle())))
        await until(lambda: app.list.lines[0].kind == "project")
        await pilot.pause()
        assert "0 wait for you" in lines_of(app)[0]


async def test_a_session_that_is_gone_is_no_reason_to_fall() -> None:
    async with watching() as (app, pilot):
        for each in team():
            app.deliver(Gone(each.id))
        await until(lambda: not app.team.sessions and not app._is_due)
        await pilot.press("j", "k", "G", "g", "g", "enter", "y", "p", "t", "n", "h", "l", "space")
        await pilot.pause()
        assert "no sessions yet" in "\n".join(lines_of(app))


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (20, 5), (43, 9), (80, 24), (250, 80)])
async def test_any_size_works_with_everything_open(size: tuple[int, int]) -> None:
    async with watching(size=size) as (app, pilot):
        await pilot.press("t", "p", "G", "?", "q", "/", "a", "escape", "e", "z", "M")
        app.deliver(Link(is_live=False, words="no daemon is running; begin one: fairlead daemon start"))
        for other in ((20, 5), (120, 40), (1, 1), size):
            await pilot.resize_terminal(*other)
            await pilot.press("j")
        await pilot.pause()
        assert app.is_running
