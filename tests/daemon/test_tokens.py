"""What subagents have used, as the daemon tells it: when they are done, and while somebody looks."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from daemon.daemon_home import PATIENCE, until

from fairlead.daemon._error_log import ErrorLog
from fairlead.daemon._metrics import Metrics
from fairlead.daemon.sessions import _token_usage as _tokens
from fairlead.daemon.sessions._token_usage import SubagentTokenUsage
from fairlead.daemon.sessions._tracker import SessionTracker
from fairlead.ipc import stream_events
from fairlead.journal import EventRecord, Journal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.daemon_home import DaemonHome


@pytest.fixture
def live(home: DaemonHome) -> Iterator[DaemonHome]:
    """A home with a daemon."""
    with home.daemon():
        yield home


def said(name: str, figure: int) -> str:
    usage = {"input_tokens": figure, "output_tokens": 0}
    message = {"id": name, "model": "claude-opus-5-5", "usage": usage}
    return json.dumps({"type": "assistant", "message": message}) + "\n"


def transcript(config: Path) -> Path:
    file = config / "projects/-project/s1/subagents/agent-a1.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def subagent(event: str, config: Path) -> dict[str, Any]:
    main = str(config / "projects/-project/s1.jsonl")
    told = {"hook_event_name": event, "session_id": "s1", "transcript_path": main, "cwd": "/"}
    return {**told, "agent_id": "a1", "agent_type": "Explore"}


def send(home: DaemonHome, event: str) -> None:
    done = home.hook(event, json.dumps(subagent(event, home.folder / ".claude")).encode())
    assert done.exit_code == 0, done


def usage(home: DaemonHome) -> dict[str, Any]:
    rows = json.loads(home.fairlead("sessions", "--all", "--json").stdout)["sessions"]
    found: dict[str, Any] = next((row.get("usage", {}) for row in rows if row["id"] == "s1/a1"), {})
    return found


def test_who_asks_is_told_what_a_subagent_has_used_so_far(live: DaemonHome) -> None:
    file = transcript(live.folder / ".claude")
    file.write_text(said("m1", 100) + said("m1", 100) + said("m2", 130))
    send(live, "SubagentStart")
    until(lambda: usage(live), "the subagent's tokens are told")
    assert usage(live) == {
        "model": "claude-opus-5-5",
        "tokens": 230,
        "output_tokens": 0,
        "cached_tokens": 0,
        "context_tokens": 130,
    }

    with file.open("a") as opened:
        opened.write(said("m3", 70))
    until(lambda: usage(live)["tokens"] == 300, "what came later is told")


def test_who_follows_is_told_what_comes(live: DaemonHome) -> None:
    file = transcript(live.folder / ".claude")
    send(live, "SubagentStart")
    stream = stream_events("/v1/sessions/stream", timeout=PATIENCE, at=str(live.socket))
    next(stream)

    file.write_text(said("m1", 100))
    figures = (data.get("usage", {}).get("tokens") for kind, data in stream if kind == "session")
    assert next(figure for figure in figures if figure) == 100


def test_a_window_that_the_main_session_tells_of_is_filled(live: DaemonHome) -> None:
    transcript(live.folder / ".claude").write_text(said("m1", 50_000))
    window = {"context_window_size": 200_000, "used_percentage": 10}
    status = {"session_id": "s1", "cwd": "/", "model": {"id": "claude-opus-5-5"}, "context_window": window}
    assert live.hook("StatusLine", json.dumps(status).encode()).exit_code == 0
    send(live, "SubagentStart")

    until(lambda: usage(live).get("context_percent") == 25, "it is a quarter full")


async def test_what_has_ended_is_read_though_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = told(tmp_path, monkeypatch, "SubagentStart", "SubagentStop")
    file = transcript(tmp_path)
    file.write_text(said("m1", 100))

    watching = asyncio.create_task(SubagentTokenUsage(tracker).run_forever())
    await becomes(tracker, 100)
    with file.open("a") as opened:  # the client writes the last of it when the stop has been told
        opened.write(said("m2", 20))
    await becomes(tracker, 120)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_what_works_is_not_read_while_nobody_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_tokens, "_MIN_INTERVAL", 3600.0)
    tracker = told(tmp_path, monkeypatch, "SubagentStart")
    file = transcript(tmp_path)
    file.write_text(said("m1", 100))

    tokens = SubagentTokenUsage(tracker)
    await tokens._read(also_running=False)
    assert known(tracker) == []
    await tokens.refresh()
    assert known(tracker) == [100]

    with file.open("a") as opened:
        opened.write(said("m2", 20))
    await tokens.refresh()  # a moment later: nothing is read
    assert known(tracker) == [100]


def told(folder: Path, monkeypatch: pytest.MonkeyPatch, *events: str) -> SessionTracker:
    """A tracker that has heard of a subagent, in a home of its own."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(folder))
    monkeypatch.setenv("FAIRLEAD_HOME", str(folder / "state"))
    journal = Journal(str(folder / "state/journal"))
    for event in events:
        payload = msgspec.Raw(json.dumps(subagent(event, folder)).encode())
        at = time() + PATIENCE  # so that it has only just ended, however long this takes
        journal.append(EventRecord(id=event, at=at, event=event, payload=payload, session="s1"))
    tracker = SessionTracker(journal, ErrorLog(journal, Metrics(), "0"))
    tracker.open()
    return tracker


def known(tracker: SessionTracker) -> list[int | None]:
    return [session.usage.tokens for session in tracker.subagents() if session.usage]


async def becomes(tracker: SessionTracker, tokens: int) -> None:
    deadline = monotonic() + PATIENCE
    while known(tracker) != [tokens]:
        assert monotonic() < deadline
        await asyncio.sleep(0.05)
