"""The screen as a picture, compared exactly. `FAIRLEAD_PICTURES=write` draws them anew: then look at the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tui.screens import picture_of, until, watching
from tui.team import session

from fairlead.sessions import AttentionNeeded, Working
from fairlead.tui._source import Link

PICTURES = Path(__file__).parent / "pictures"
SIZES = [(80, 24), (120, 40), (200, 50), (20, 5)]


def compare(name: str, drawn: str) -> None:
    file = PICTURES / f"{name}.txt"
    if os.environ.get("FAIRLEAD_PICTURES") == "write":
        file.write_text(drawn, "utf-8")
    assert drawn == file.read_text("utf-8")


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_the_team(size: tuple[int, int], theme: str) -> None:
    async with watching(size=size, theme=theme) as (app, _):
        compare(f"team-{size[0]}x{size[1]}-{theme}", picture_of(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_no_daemon(size: tuple[int, int]) -> None:
    async with watching([], size) as (app, pilot):
        app.deliver(Link(is_live=False, words="no daemon is running; begin one: fairlead daemon start; looking for it"))
        await until(lambda: "offline" in app.bars["summary"].text or size[0] < 30)
        await until(lambda: not app._is_due)
        await pilot.pause()
        compare(f"no-daemon-{size[0]}x{size[1]}", picture_of(app))


async def test_a_terminal_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every style is bold, faint or reversed; the same is said by signs and words."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with watching(theme="plain") as (app, _):
        drawn = picture_of(app)
        assert "#" not in drawn
        compare("team-80x24-plain", drawn)


async def test_nobody_there_yet() -> None:
    async with watching([]) as (app, _):
        compare("nobody-80x24", picture_of(app))


async def test_hostile_texts() -> None:
    texts = ["\x1b[31mred\x1b[0m[bold]x[/]", "\u202eback\u200b", "日本語のとても長い題名です、とても", "a\nb\tc"]
    sessions = [
        session(f"s{n}", title=text, state=AttentionNeeded(text) if n % 2 else Working(text))
        for n, text in enumerate(texts)
    ]
    async with watching(sessions) as (app, _):
        compare("hostile-80x24", picture_of(app))


async def test_help() -> None:
    async with watching() as (app, pilot):
        await pilot.press("?")
        await pilot.pause()
        compare("help-80x24", picture_of(app))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_panel_stands_beside_the_list_or_below_it(size: tuple[int, int]) -> None:
    async with watching(size=size) as (app, pilot):
        await pilot.press("j", "p")
        await until(lambda: "does not run in tmux" in " ".join(app.panel.text.split()))
        await pilot.pause()
        compare(f"panel-{size[0]}x{size[1]}", picture_of(app))
