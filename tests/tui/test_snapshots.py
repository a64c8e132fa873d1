"""The screen, compared exactly. `FAIRLEAD_SNAPSHOTS=write` writes the snapshots: then look at the difference."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tui.sample_sessions import NOW, session
from tui.screens import snapshot_of, until, watching

from fairlead.sessions import AttentionNeeded, Evidence, Working
from fairlead.tui._source import ConnectionStatus

SNAPSHOTS = Path(__file__).parent / "snapshots"
NO_DAEMON = "no daemon is running; start one: fairlead daemon start; waiting for it"


def compare(name: str, drawn: str) -> None:
    file = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("FAIRLEAD_SNAPSHOTS") == "write":
        file.write_text(drawn, "utf-8")
    assert drawn == file.read_text("utf-8")


@pytest.mark.parametrize(
    ("size", "theme"),
    [((80, 24), "dark"), ((120, 40), "dark"), ((200, 50), "dark"), ((20, 5), "dark"), ((80, 24), "light")],
    ids=str,
)
async def test_sessions(size: tuple[int, int], theme: str) -> None:
    async with watching(size=size, theme=theme) as (app, _):
        compare(f"sessions-{size[0]}x{size[1]}-{theme}", snapshot_of(app))


@pytest.mark.parametrize("size", [(80, 24), (20, 5)], ids=str)
async def test_no_daemon(size: tuple[int, int]) -> None:
    async with watching([], size) as (app, pilot):
        app.deliver(ConnectionStatus(is_live=False, text=NO_DAEMON))
        await until(lambda: "offline" in app.text_lines["summary"].text or size[0] < 30)
        await until(lambda: not app._is_draw_pending)
        await pilot.pause()
        compare(f"no-daemon-{size[0]}x{size[1]}", snapshot_of(app))


async def test_a_terminal_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every style is bold, faint or reversed; symbols and labels say the same."""
    monkeypatch.setenv("NO_COLOR", "1")
    async with watching(theme="plain") as (app, _):
        drawn = snapshot_of(app)
        assert "#" not in drawn
        compare("sessions-80x24-plain", drawn)


async def test_no_sessions_yet() -> None:
    async with watching([]) as (app, _):
        compare("no-sessions-80x24", snapshot_of(app))


async def test_hostile_texts() -> None:
    texts = ["\x1b[31mred\x1b[0m[bold]x[/]", "\u202eback\u200b", "日本語のとても長い題名です、とても", "a\nb\tc"]
    sessions = [
        session(f"s{n}", title=text, state=AttentionNeeded(text) if n % 2 else Working(text))
        for n, text in enumerate(texts)
    ]
    async with watching(sessions) as (app, _):
        compare("hostile-80x24", snapshot_of(app))


QUESTION = (
    "/code/webshop/src/pay.py\n def pay(invoice):\n-    return None\n+    return send(invoice)\n+\n \x1b[31m# end"
)


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_what_is_asked_is_shown_in_full(size: tuple[int, int]) -> None:
    """A change is shown as a diff below the details, a long command wrapped, a short one in its row alone."""
    evidence = Evidence("PermissionRequest", NOW - 5, "Edit", "/code/webshop/src/pay.py")
    sessions = [
        session("a", title="Pay", state=AttentionNeeded("Permission for Edit", QUESTION), evidence=evidence),
        session("b", title="Build", state=AttentionNeeded("Permission for Bash", f"make {'x' * 100}")),
        session("c", title="Test", state=AttentionNeeded("Permission for Bash", "make test")),
        session("d", title="Talk", state=AttentionNeeded("API error: unknown", "API Error: 400 bad thing")),
    ]
    async with watching(sessions, size) as (app, pilot):
        for number, name in enumerate(("change", "long-command", "short-command")):
            await pilot.press(*["j"] * bool(number))
            await pilot.pause()
            compare(f"asked-{name}-{size[0]}x{size[1]}", snapshot_of(app))


async def test_help() -> None:
    async with watching() as (app, pilot):
        await pilot.press("?")
        await pilot.pause()
        compare("help-80x24", snapshot_of(app))


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (20, 5)], ids=str)
async def test_a_panel_stands_beside_the_list_or_below_it(size: tuple[int, int]) -> None:
    async with watching(size=size) as (app, pilot):
        await pilot.press("j", "p")
        await until(lambda: "does not run in tmux" in " ".join(app.panel.text.split()))
        await pilot.pause()
        compare(f"panel-{size[0]}x{size[1]}", snapshot_of(app))
