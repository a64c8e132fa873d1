"""The view on a screen that does not exist: started, read, and drawn as text."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from time import monotonic
from typing import TYPE_CHECKING

from tui.sample_sessions import LOCATIONS, NOW, sample_sessions

from fairlead.tui._app import WatchApp
from fairlead.tui._source import SessionsReset
from fairlead.tui.model._projects import Location

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from textual.pilot import Pilot
    from textual.strip import Strip

    from fairlead.sessions import Session
    from fairlead.tui._source import SessionSource

TIMEOUT = 30.0


def locate(folder: str) -> Location:
    return LOCATIONS.get(folder) or Location(folder, folder)


@asynccontextmanager
async def watching(
    sessions: Sequence[Session] | None = None,
    size: tuple[int, int] = (80, 24),
    *,
    theme: str = "dark",
    source: SessionSource | None = None,
) -> AsyncIterator[tuple[WatchApp, Pilot[None]]]:
    """Start the view at a fixed time, with the sample sessions, with others, or with those of a source."""
    app = WatchApp(source, theme=theme, clock=lambda: NOW, locate=locate, blinks=False)
    async with app.run_test(size=size) as pilot:
        if source is None:
            shown = sample_sessions() if sessions is None else list(sessions)
            for session in shown:
                app.sessions.set_location(session.cwd, locate(session.cwd))
            app.deliver(SessionsReset(shown))
            await until(lambda: len(app.sessions.sessions) == len(shown) and not app._is_draw_pending)
        await pilot.pause()
        yield app, pilot


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    deadline = monotonic() + TIMEOUT
    while not condition():
        assert monotonic() < deadline, "the condition never became true"
        await asyncio.sleep(0.005)


def lines_of(app: WatchApp) -> list[str]:
    """The text on the screen, line by line."""
    return [strip.text.rstrip() for strip in _strips(app)]


def _strips(app: WatchApp) -> list[Strip]:
    return list(app.screen._compositor.render_strips())


def snapshot_of(app: WatchApp) -> str:
    """The screen as text, and below it the styles of each line, from which cell to which."""
    texts: list[str] = []
    styles: list[str] = []
    for number, strip in enumerate(_strips(app)):
        texts.append(f"{number:2} |{strip.text.rstrip()}")
        at, runs = 0, []
        for segment in strip.simplify():
            style = str(segment.style) if segment.style else ""
            if segment.text.strip() or "on " in style:
                runs.append(f"{at}-{at + segment.cell_length} {style}")
            at += segment.cell_length
        styles.append(f"{number:2} |{'; '.join(runs)}")
    return "\n".join([*texts, "", "styles", *styles]) + "\n"
