"""Each key, pressed in the real application."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.events import MouseScrollDown, MouseScrollUp, Paste
from tui.sample_sessions import NOW, sample_sessions, session
from tui.screens import lines_of, until, watching

from fairlead.sessions import AttentionNeeded, Idle, Working
from fairlead.tui._app import WatchApp
from fairlead.tui._source import ConnectionStatus, SessionChanged, SessionRemoved
from fairlead.tui.model._keys import GROUPS, KeyReader, hints
from fairlead.tui.model._view import View
from fairlead.tui.widgets._help import HelpScreen, help_lines

if TYPE_CHECKING:
    from fairlead.tui.model._layout import StyledText


def selected(app: WatchApp) -> str:
    line = app.list.selected
    return line.id if line else ""


FIRST, SECOND = "5f0c8a4e-1111", "c0ffee00-3333"
MOVES = {
    "": ("attention", FIRST),
    "j": ("attention", SECOND),
    "down": ("attention", SECOND),
    "j j": ("project", "/code/fairlead"),
    "j j k": ("attention", SECOND),
    "k": ("attention", FIRST),
    "up": ("attention", FIRST),
    "G": ("session", "77aa12bc-2222/a1"),
    "end": ("session", "77aa12bc-2222/a1"),
    "G g g": ("attention", FIRST),
    "G home": ("attention", FIRST),
    "g j": ("attention", SECOND),
    "ctrl+d": ("session", "c0ffee00-3333/b1"),
    "ctrl+d ctrl+u": ("attention", FIRST),
    "pagedown": ("session", "c0ffee00-3333/b1"),
    "n": ("attention", SECOND),
    "tab": ("attention", SECOND),
    "n n": ("attention", FIRST),
    "N": ("attention", SECOND),
    "G N": ("attention", SECOND),
    "G h": ("session", "77aa12bc-2222"),
    "G left left left": ("project", "/code/webshop"),
    "j j l": ("worktree", "/code/fairlead"),
    "j j right right": ("session", "deadbeef-4444"),
    "x": ("attention", FIRST),
}
"""Keys → the line that is selected afterwards, from the first line on and with everything open."""


async def test_moving() -> None:
    ends = {}
    async with watching() as (app, pilot):
        for keys in MOVES:
            await pilot.press("z", "R", "home", *keys.split())
            await pilot.pause()
            assert app.list.selected is not None
            ends[keys] = app.list.selected.key
    assert ends == MOVES


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


async def test_filtering_while_typing_and_clearing_the_filter() -> None:
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
        assert app.filter_input.value == "q?se"
        assert app.is_running


async def test_the_filter_can_be_edited() -> None:
    async with watching() as (app, pilot):
        whole = app.list.lines
        await pilot.press("/", *"slow", "space", *"quarry", "ctrl+w", *"x日", "backspace", "backspace")
        assert app.filter_input.value == "slow"
        app.filter_input.post_message(Paste(" query\nof\x1b[31m"))
        await until(lambda: app.filter_input.value == "slowquery of␛[31m")
        assert "slowquery of" in lines_of(app)[-1]
        await pilot.press("ctrl+u")
        await until(lambda: app.list.lines == whole)
        await pilot.press(*"slow", "ctrl+c")
        await until(lambda: app.focused is app.list and app.list.lines == whole)
        assert app.is_running


async def test_sorting_goes_round_and_names_the_order() -> None:
    async with watching() as (app, pilot):
        orders = []
        for _ in range(5):
            await pilot.press("s")
            orders.append(app.text_lines["hints"].text.split()[-1])
        assert orders == ["state", "activity", "cost", "context", "start"]


async def test_showing_ended_sessions() -> None:
    async with watching() as (app, pilot):
        await pilot.press("e")
        assert "e0de0000-6666" in [line.id for line in app.list.lines]
        await pilot.press("e")
        assert "e0de0000-6666" not in [line.id for line in app.list.lines]


async def test_help_opens_scrolls_and_closes() -> None:
    async with watching() as (app, pilot):
        await pilot.press("?")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("j", "k", "pagedown")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("q")
        assert not isinstance(app.screen, HelpScreen)
        assert app.is_running


async def test_every_key_is_in_the_help_and_does_something() -> None:
    keys = [key for group in GROUPS.values() for key in group]
    async with watching() as (app, _):
        assert {key.action for key in keys} == set(app.actions.handlers)
    for cells in (30, 80):
        text = "".join(text for line in help_lines(cells) for text, _ in line)
        assert all(key.description in text for key in keys)
    assert hints(80, View()).endswith("q quit  ? help")
    assert len(hints(80, View(sort="activity", is_reversed=True))) <= 80
    assert hints(30, View()) == " n next  q quit  ? help"
    names = [name for key in keys for name in key.names]
    assert len(names) == len(set(names))
    reader = KeyReader()
    assert [reader.read("g", "g"), reader.read("x", "x"), reader.read("j", "j")] == ["", None, "down"]


async def test_copying_the_id() -> None:
    async with watching() as (app, pilot):
        await pilot.press("y")
        assert app.clipboard == FIRST
        assert f"copied: {FIRST}" in lines_of(app)[-1]


@pytest.mark.parametrize(("key", "code"), [("q", 0), ("ctrl+c", 130)])
async def test_quitting(key: str, code: int) -> None:
    async with watching() as (app, pilot):
        await pilot.press(key)
        await until(lambda: not app.is_running)
        assert app.return_code == code


async def test_leaving_before_the_view_is_open() -> None:
    app = WatchApp(None)
    app.leave(143)
    async with app.run_test():
        await until(lambda: not app.is_running)
    assert app.return_code == 143


async def test_a_click_selects_a_line() -> None:
    async with watching() as (app, pilot):
        await pilot.click(type(app.list), offset=(20, 2))
        assert selected(app) == SECOND


async def test_the_wheel_and_the_scroll_bar_leave_the_selection_alone() -> None:
    async with watching([session(f"s{number}") for number in range(100)]) as (app, pilot):
        app.list.post_message(MouseScrollDown(app.list, 5, 5, 0, 1, 0, *(False,) * 3))
        await until(lambda: app.list.top == 3)
        app.list.post_message(MouseScrollUp(app.list, 5, 5, 0, -1, 0, *(False,) * 3))
        await until(lambda: app.list.top == 0)
        high = app.list.size.height
        await pilot.mouse_down(app.list, offset=(79, high - 1))
        assert app.list.top == app.list.last_top == 101 - high
        await pilot.hover(app.list, offset=(79, 0))
        await pilot.mouse_up(app.list, offset=(79, 0))
        assert app.list.top == 0
        await pilot.hover(app.list, offset=(79, 5))
        assert app.list.top == 0
        assert selected(app) == "/code/webshop"


async def test_the_panel_scrolls_by_keys_and_stays_where_the_user_reads() -> None:
    async with watching() as (app, pilot):
        await pilot.press("t")
        lines: list[list[StyledText]] = [[(f"event {number}", "plain")] for number in range(100)]
        app.panel.show("many", lines)
        await pilot.pause()
        assert "event 99" in lines_of(app)[19]
        await pilot.press("K", "K", "J", "shift+up")
        await pilot.pause()
        assert "event 97" in lines_of(app)[19]

        app.panel.show("many", [*lines, [("one more", "plain")]])
        await pilot.pause()
        assert "event 97" in lines_of(app)[19]
        await pilot.press("ctrl+f")
        await pilot.pause()
        assert "one more" in lines_of(app)[19]
        app.panel.show("many", [*lines, [("one more", "plain")], [("and another", "plain")]])
        await pilot.press(*["ctrl+b"] * 30)
        await pilot.pause()
        assert any("event 0" in line for line in lines_of(app))
        assert app.list.selected is not None
        assert app.list.selected.key == ("attention", FIRST)


async def test_the_selected_line_has_a_symbol_and_is_shown_in_full_below() -> None:
    async with watching() as (app, pilot):
        await pilot.press("j")
        await pilot.pause()
        assert [line[:14] for line in lines_of(app) if line.startswith(">")] == [">  ! needs you"]
        assert any(line.startswith("─ build the live view of the sessions ──") for line in lines_of(app))


async def test_a_session_without_a_pane_says_so() -> None:
    async with watching() as (app, pilot):
        await pilot.press("j", "enter")
        await until(lambda: "does not run in tmux" in lines_of(app)[-1])
        await pilot.press("p")
        await until(lambda: "does not run in tmux" in app.panel.text)
        await pilot.press("escape")
        assert not app.panel.display


async def test_the_selected_line_stays_when_others_come_and_go() -> None:
    async with watching() as (app, pilot):
        await pilot.press("G", "h")
        before = selected(app)
        for number in range(20):
            app.deliver(SessionChanged(session(f"new{number}", cwd="/code/fairlead", state=Working())))
        app.deliver(SessionRemoved("deadbeef-4444"))
        await until(lambda: len(app.list.lines) > 30)
        assert selected(app) == before
        assert any("Find the slow query" in line for line in lines_of(app))


async def test_a_session_that_needs_the_user_is_listed_first_until_it_is_answered() -> None:
    async with watching() as (app, pilot):
        app.deliver(
            SessionChanged(session("deadbeef-4444", title="Now", state=AttentionNeeded("Plan"), since=NOW - 999))
        )
        await until(lambda: app.list.lines[1].id == "deadbeef-4444")
        await pilot.pause()
        assert "3 need you" in lines_of(app)[0]
        for each in ("deadbeef-4444", FIRST, SECOND):
            app.deliver(SessionChanged(session(each, state=Idle())))
        await until(lambda: app.list.lines[0].kind == "project")
        await pilot.pause()
        assert "nothing needs you" in lines_of(app)[0]


async def test_the_first_session_that_needs_the_user_becomes_visible() -> None:
    async with watching([session(f"s{number}", started=number) for number in range(50)]) as (app, pilot):
        await pilot.press("j", "j")
        app.deliver(SessionChanged(session("s40", started=40, title="Me first", state=AttentionNeeded("Plan"))))
        await until(lambda: app.list.lines[0].kind == "heading")
        await pilot.pause()
        assert "Me first" in lines_of(app)[3]
        assert selected(app) == "s1"
        await pilot.press("G")
        await until(lambda: selected(app) == "s49")
        top = app.list.top
        app.deliver(SessionChanged(session("s41", started=41, title="Me too", state=AttentionNeeded("Plan"))))
        await until(lambda: app.list.lines[2].id == "s41")
        assert (app.list.top, selected(app)) == (top + 1, "s49")


async def test_keys_work_when_all_sessions_are_gone() -> None:
    async with watching() as (app, pilot):
        for each in sample_sessions():
            app.deliver(SessionRemoved(each.id))
        await until(lambda: not app.sessions.sessions and not app._is_draw_pending)
        await pilot.press("j", "k", "G", "g", "g", "enter", "y", "p", "t", "n", "h", "l", "space")
        await pilot.pause()
        assert "no sessions yet" in "\n".join(lines_of(app))


async def test_any_size_works_with_everything_open() -> None:
    async with watching() as (app, pilot):
        for size in ((1, 1), (3, 2), (20, 5), (43, 9), (80, 24), (250, 80), (120, 40), (1, 1)):
            await pilot.resize_terminal(*size)
            await pilot.press("j", "t", "p", "G", "?", "q", "/", "a", "escape", "e", "z", "M")
            app.deliver(ConnectionStatus(is_live=False, text="no daemon is running"))
            await pilot.press("j", "z", "R", "p")
        await pilot.pause()
        assert app.is_running
