"""The view with a screen that is not there: started, looked at, and drawn as text."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

from tui.team import NOW, PLACES, team

from fairlead.tui._app import WatchApp
from fairlead.tui._source import Reset
from fairlead.tui.model._projects import Place

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from textual.pilot import Pilot

    from fairlead.sessions import Session
    from fairlead.tui._source import Source

PATIENCE = 30.0


def look(folder: str) -> Place:
    return PLACES.get(folder) or Place(folder, folder)


@asynccontextmanager
async def watching(
    sessions: Sequence[Session] | None = None,
    size: tuple[int, int] = (80, 24),
    *,
    theme: str = "dark",
    source: Source | None = None,
) -> AsyncIterator[tuple[WatchApp, Pilot[None]]]:
    """Start the view at a fixed time, with the team or with what a source tells."""
    app = WatchApp(source, theme=theme, clock=lambda: NOW, look=look, blinks=False)
    async with app.run_test(size=size) as pilot:
        if source is None:
            shown = team() if sessions is None else list(sessions)
            for each in shown:
                app.team.set_place(each.cwd, look(each.cwd))
            app.deliver(Reset(shown))
            await until(lambda: len(app.team.sessions) == len(shown) and not app._is_due)
        await pilot.pause()
        yield app, pilot


async def until(holds: Callable[[], object]) -> float:
    """Wait until something holds, and give the seconds that took."""
    begun = monotonic()
    while not holds():
        assert monotonic() - begun < PATIENCE, "it never came to hold"
        await asyncio.sleep(0.005)
    return monotonic() - begun


def lines_of(app: WatchApp) -> list[str]:
    """What is on the screen, line by line."""
    return [strip.text.rstrip() for strip in _strips(app)]


def _strips(app: WatchApp) -> list:  # type: ignore[type-arg]  # Textual's strips
    compositor = app.screen._compositor
    return list(compositor.render_strips())


def picture_of(app: WatchApp) -> str:
    """Draw the screen as text, and below it which styles each line has, from where to where."""
    told: list[str] = []
    shown: list[str] = []
    for number, strip in enumerate(_strips(app)):
        shown.append(f"{number:2} |{strip.text.rstrip()}")
        at, runs = 0, []
        for segment in strip.simplify():
            style = str(segment.style) if segment.style else ""
            if segment.text.strip() or "on " in style:
                runs.append(f"{at}-{at + segment.cell_length} {style}")
            at += segment.cell_length
        told.append(f"{number:2} |{'; '.join(runs)}")
    return "\n".join([*shown, "", "styles", *told]) + "\n"
