"""The inbox of the view: the person's mail, read and answered there."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from tui.fake_daemon import FakeDaemon
from tui.sample_sessions import NOW, sample_sessions
from tui.screens import lines_of, snapshot_of, until, watching
from tui.test_snapshots import compare

from fairlead.tui._source import SessionSource
from fairlead.tui.widgets._inbox import InboxScreen

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from textual.pilot import Pilot

    from fairlead.tui._app import WatchApp

LONG = "\n".join(
    f"{number}. A step of the migration, with enough words to be wrapped on a narrow screen." for number in range(12)
)


def message(number: int, sender: str, subject: str, body: str, **fields: Any) -> dict[str, Any]:
    row = {
        "id": number,
        "from": sender,
        "subject": subject,
        "body": body,
        "preview": body[:200],
        "at": NOW - 60 * number,
    }
    more = {"intent": "inform", "stage": "read", "answered": 0.0, "deadline": 0.0, "to": ["User"], "priority": "normal"}
    return {**row, **more, **fields}


MAIL = [
    message(
        4,
        "amber-fox",
        "Which port?",
        "8080 or 8443?\nI go on with 8443.",
        intent="request",
        stage="queued",
        deadline=NOW + 1800,
    ),
    message(3, "jade-owl/explore-1", "", LONG, stage="queued"),
    message(2, "sturdy-acorn", "\x1b[31mred\u202e", "> quoted\n\x1b[2J│ not a bar"),
    message(1, "amber-fox", "Deploy?", "Now?", intent="request", stage="answered", answered=NOW),
]


@asynccontextmanager
async def inbox(
    folder: Path, size: tuple[int, int] = (80, 24)
) -> AsyncIterator[tuple[WatchApp, Pilot[None], FakeDaemon]]:
    """The view with mail, and the inbox open."""
    daemon = FakeDaemon(folder / "d.sock", sample_sessions())
    daemon.mail = {row["id"]: dict(row) for row in MAIL}
    daemon.start()
    try:
        async with watching(size=size, source=SessionSource(str(daemon.socket_path))) as (app, pilot):
            await until(lambda: "✉ 2" in app.text_lines["summary"].text and app.sessions.sessions)
            await pilot.press("M")
            await until(lambda: isinstance(app.screen, InboxScreen) and app.screen.body.lines)
            await pilot.pause()
            yield app, pilot, daemon
    finally:
        daemon.stop()


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_the_mail_is_listed_and_the_selected_message_is_shown(tmp_path: Path, size: tuple[int, int]) -> None:
    async with inbox(tmp_path, size) as (app, pilot, _):
        compare(f"inbox-{size[0]}x{size[1]}", snapshot_of(app))
        await pilot.press("j")
        await until(lambda: any("A step of the migration" in line and "11." in line for line in _body(app)))
        await pilot.pause()
        compare(f"inbox-long-{size[0]}x{size[1]}", snapshot_of(app))


def _body(app: WatchApp) -> list[str]:
    assert isinstance(app.screen, InboxScreen)
    return ["".join(text for text, _ in line) for line in app.screen.body.lines]


async def test_a_message_counts_as_read_when_it_was_shown_and_a_request_is_answered(tmp_path: Path) -> None:
    async with inbox(tmp_path) as (app, pilot, daemon):
        assert [row["stage"] for row in daemon.mail.values()] == ["read", "queued", "read", "answered"]
        await pilot.press("r", *"8443 q", "enter")
        await until(lambda: daemon.replies)
        await until(lambda: any("answered #4: sent as #99" in line for line in lines_of(app)))

        assert daemon.replies == [(4, "8443 q")]
        assert "0 to answer" in lines_of(app)[0]
        await pilot.press("escape")
        await until(lambda: not isinstance(app.screen, InboxScreen))


async def test_an_answer_that_is_dropped_is_not_sent(tmp_path: Path) -> None:
    async with inbox(tmp_path) as (app, pilot, daemon):
        await pilot.press("r", *"no", "escape")
        await pilot.pause()
        await pilot.press("j", "j", "escape")
        await until(lambda: not isinstance(app.screen, InboxScreen))
        assert daemon.replies == []


async def test_the_text_of_a_message_cannot_move_the_cursor(tmp_path: Path) -> None:
    async with inbox(tmp_path) as (app, pilot, _):
        await pilot.press("j", "j")
        await until(lambda: any("not a bar" in line for line in _body(app)))
        shown = "\n".join((*lines_of(app), *_body(app)))
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert any(line.startswith(" │ > quoted") for line in _body(app))
