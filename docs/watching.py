"""Draws `fairlead watch` with a fixed team of sessions as an SVG, from the real app. A part of generate.py."""

# ruff: noqa: INP001 - no package

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import TYPE_CHECKING, Any

from fairlead.sessions import AttentionNeeded, Evidence, Session, Usage, Working
from fairlead.tui import Location, SessionsReset, WatchApp

if TYPE_CHECKING:
    from docs.drawing import _FAMILY as FAMILY
else:
    from drawing import _FAMILY as FAMILY

NOW = 1_790_000_000.0
SIZE = (132, 24)
_SHOP, _APP, _FIX = "/home/me/webshop", "/home/me/planner", "/home/me/planner-fix"
_LOCATIONS = {
    _SHOP: Location(_SHOP, _SHOP, "main"),
    _APP: Location(_APP, _APP, "main"),
    _FIX: Location(_APP, _FIX, "fix/time-zones"),
}
_OPUS, _SONNET, _HAIKU = "claude-opus-4-8", "claude-sonnet-5", "claude-haiku-5"


def watch_picture() -> str:
    """Give the SVG. The same text in every run: the clock, the folders and the place of the day are fixed."""
    zone = os.environ.get("TZ")
    os.environ["TZ"] = "UTC"
    time.tzset()
    try:
        drawn = asyncio.run(_drawn())
    finally:
        if zone is None:
            del os.environ["TZ"]
        else:
            os.environ["TZ"] = zone
        time.tzset()
    without_fonts = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    return re.sub(r"font-family: (Fira Code[^;]*|arial);", f"font-family: {FAMILY};", without_fonts)


async def _drawn() -> str:
    os.environ.pop("NO_COLOR", None)
    app = WatchApp(None, clock=lambda: NOW, locate=_LOCATIONS.__getitem__, blinks=False)
    async with app.run_test(size=SIZE) as pilot:
        for folder, location in _LOCATIONS.items():
            app.sessions.set_location(folder, location)
        app.deliver(SessionsReset(_team()))
        while not app.list.lines or app.list.lines[0].kind != "heading":
            await pilot.pause()
        await pilot.pause()
        return app.export_screenshot(title="fairlead watch")


def _session(name: str, ago: float, since: float, seen: tuple[str, str, str], **fields: Any) -> Session:
    event, tool, path = seen
    evidence = Evidence(event, NOW - ago, tool, path)
    usual = {"evidence": evidence, "since": NOW - since, "last_activity": NOW - ago, "started": NOW - 4 * since - 60}
    return Session(id=name, **{**usual, **fields})


def _usage(model: str, percent: float, cost: float) -> Usage:
    return Usage(model=model, context_percent=percent, cost_usd=cost)


def _team() -> list[Session]:
    return [
        _session(
            *("5f0c8a4e", 125, 125, ("PermissionRequest", "Bash", "")),
            cwd=_SHOP,
            title="Pay by invoice",
            state=AttentionNeeded("Permission for Bash", "npm run db:migrate"),
            usage=_usage(_OPUS, 41, 1.2),
            pid=48213,
            pane="%3",
        ),
        _session(
            *("77aa12bc", 4, 312, ("PreToolUse", "Edit", f"{_SHOP}/src/orders/query.py")),
            cwd=_SHOP,
            title="Find the slow query",
            state=Working("Edit"),
            usage=_usage(_SONNET, 83, 3.75),
        ),
        _session(
            *("77aa12bc/a1", 2, 95, ("PreToolUse", "Grep", "")),
            parent="77aa12bc",
            agent_type="Explore",
            description="who calls load_orders",
            state=Working("Grep"),
            usage=Usage(model=_HAIKU, context_tokens=31_000),
        ),
        _session(
            *("77aa12bc/a2", 1, 41, ("PostToolUse", "Bash", "")),
            parent="77aa12bc",
            agent_type="tester",
            description="measure before and after",
            state=Working("Thinking"),
            usage=Usage(model=_HAIKU, context_tokens=12_400),
        ),
        _session(
            *("c0ffee00", 31, 31, ("PreToolUse", "AskUserQuestion", "")),
            cwd=_FIX,
            title="Meetings across time zones",
            state=AttentionNeeded("AskUserQuestion"),
            usage=_usage(_OPUS, 12, 0.4),
        ),
        _session(
            *("deadbeef", 900, 900, ("Stop", "", "")), cwd=_APP, title="Release notes", usage=_usage(_OPUS, 64, 2.05)
        ),
        _session(
            *("0badcafe", 9, 70, ("PreToolUse", "Write", f"{_APP}/docs/import.md")),
            cwd=_APP,
            title="Document the importer",
            state=Working("Write"),
            usage=_usage(_SONNET, 27, 0.62),
        ),
    ]
