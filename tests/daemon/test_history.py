"""The history, with a real daemon: what sessions did and cost, a search in it, one session, what is deleted."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, Done

RECORDED = json.loads(Path(__file__).parents[1].joinpath("sessions/status_lines/2.1.325.json").read_text("utf-8"))
POLICY = "preToolUse: {uneditableFiles: [{pattern: '*.lock'}]}\n"
SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def live(home: DaemonHome) -> Iterator[DaemonHome]:
    home.policy(POLICY)
    with home.daemon():
        yield home


def happens(home: DaemonHome, event: str, session: str, **fields: object) -> Done:
    return home.hook(event, home.payload(session_id=session, hook_event_name=event, **fields))


def costs(home: DaemonHome, session: str, usd: float, seconds: float) -> None:
    """Let the client report what a session has cost, by a process that runs for so many seconds."""
    cost = {**RECORDED["cost"], "total_cost_usd": usd, "total_duration_ms": seconds * 1000}
    payload = {**RECORDED, "session_id": session, "cwd": str(home.project), "cost": cost}
    assert home.hook("StatusLine", json.dumps(payload).encode()).exit_code == 0


def work(home: DaemonHome, session: str, prompt: str = "fix the login") -> None:
    """Let a session begin, work, be blocked, and end."""
    happens(home, "SessionStart", session, source="startup")
    happens(home, "UserPromptSubmit", session, prompt=prompt)
    happens(home, "PreToolUse", session, tool_name="Bash", tool_input={"command": f"pytest -k login --token={SECRET}"})
    happens(home, "PreToolUse", session, tool_name="Edit", tool_input={"file_path": str(home.project / "uv.lock")})
    happens(home, "SubagentStart", session, agent_id="a1", agent_type="Explore")
    happens(home, "SubagentStop", session, agent_id="a1", agent_type="Explore")


def history(home: DaemonHome, *words: str) -> Any:
    done = home.fairlead("history", "--json", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_a_session_that_has_ended_stays_in_the_history(live: DaemonHome) -> None:
    work(live, "s1")
    costs(live, "s1", 1.25, 60)
    happens(live, "SessionEnd", "s1", reason="prompt_input_exit")

    page = history(live)
    (one,) = page["sessions"]
    counted = ("prompts", "tools", "blocked", "subagents", "prompt", "end_reason", "cost_usd", "total_usd")
    assert [one.get(name) for name in counted] == [1, 2, 1, 1, "fix the login", "prompt_input_exit", 1.25, 1.25]
    assert one["ended"] >= one["started"] >= page["since"]
    assert page["usd"] == 1.25
    text = live.fairlead("history").stdout.splitlines()
    assert text[0].endswith(": 1 session, 0 running, $1.25")
    assert text[1].endswith("2 calls  s1        project         1 blocked; 1 subagents; fix the login")


def test_a_cost_that_was_not_reported_is_shown_as_unknown(live: DaemonHome) -> None:
    work(live, "s1")
    page = history(live)
    (one,) = page["sessions"]
    assert ("cost_usd" in one, "total_usd" in one, page["usd"], page["unknown"]) == (False, False, None, 1)
    text = live.fairlead("history").stdout.splitlines()
    assert text[0].endswith(": 1 session, 1 running, cost unknown")
    assert "  unknown     2 calls  s1  " in text[1]
    assert live.fairlead("history", "--session", "s1").stdout.splitlines()[2].endswith(", cost unknown")

    summed = json.loads(live.fairlead("sessions", "--json").stdout)["costs"]
    assert (summed["usd"], summed["unknown"]) == (0, 1)

    work(live, "s2")
    costs(live, "s2", 1.25, 60)
    summed = json.loads(live.fairlead("sessions", "--json").stdout)["costs"]
    assert (summed["usd"], summed["unknown"]) == (1.25, 1)
    page = history(live)
    assert (page["usd"], page["unknown"]) == (1.25, 1)
    assert live.fairlead("history").stdout.splitlines()[0].endswith(": 2 sessions, 2 running, $1.25, cost of 1 unknown")
    assert history(live, "--search", "pytest")["usd"] is None, "a search adds up no costs"


def test_an_absence_that_never_was_is_no_time_in_1970(live: DaemonHome) -> None:
    def heading(*words: str) -> str:
        return live.fairlead("history", *words).stdout.splitlines()[0]

    assert heading("--since", "left") == "no session yet"
    assert heading("--since", "left", "--project", "/no/such") == "no session in /no/such yet"
    assert heading("--since", "2099-01-01") == "no session since 2099-01-01 00:00"
    work(live, "s1")
    assert heading("--since", "left").startswith("you have not left yet, so this is all that is kept: 1 session, ")
    assert heading("--since", "2001-02-03").startswith("since 2001-02-03 00:00: 1 session, ")


def test_a_page_that_does_not_exist_is_told(live: DaemonHome) -> None:
    work(live, "s1")
    for words in (["--before", "zzz"], ["--search", "x", "--before", "1.5"], ["--session", "s1", "--before", "zzz"]):
        done = live.fairlead("history", *words)
        assert (done.exit_code, done.stdout) == (1, "")
        told = "the last line of a page, or its `next`, names the one before it"
        assert done.stderr == f"fairlead: history: there is no page {words[-1]!r}; {told}\n"


def test_a_session_shows_its_events_with_their_verdicts_and_subagents(live: DaemonHome) -> None:
    work(live, "s1")
    one = history(live, "--session", "s")
    rows = [(entry["event"], entry.get("tool", ""), entry.get("verdict", "none")) for entry in one["timeline"]]
    assert ("PreToolUse", "Edit", "blocked") in rows
    assert [(agent["id"], agent["type"], "ended" in agent) for agent in one["subagents"]] == [("a1", "Explore", True)]
    assert "UserPromptSubmit" in live.fairlead("history", "--session", "s1").stdout
    earlier = history(live, "--session", "s1", "--limit", "2")
    assert len(earlier["timeline"]) == 2
    before = history(live, "--session", "s1", "--limit", "2", "--before", earlier["next"])
    assert before["timeline"][-1]["at"] <= earlier["timeline"][0]["at"]

    missing = live.fairlead("history", "--session", "nobody")
    assert (missing.exit_code, missing.stdout) == (1, "")
    assert "no session's id begins with 'nobody'" in missing.stderr


def test_a_search_finds_prompts_commands_and_files_and_no_secrets(live: DaemonHome) -> None:
    work(live, "s1")
    work(live, "s2", prompt="write the notes")

    assert {one["session"] for one in history(live, "--search", "LOGIN")["matches"]} == {"s1", "s2"}
    assert [one["kind"] for one in history(live, "--search", "the notes")["matches"]] == ["prompt"]
    assert [one["kind"] for one in history(live, "--search", "uv.lock")["matches"]] == ["file", "file"]
    (found, *_) = history(live, "--search", "pytest -k")["matches"]
    assert found["text"] == "pytest -k login --token=[redacted]"
    assert history(live, "--search", SECRET)["matches"] == []
    assert live.fairlead("history", "--search", "no such thing").stdout == "nothing found\n"
    first = history(live, "--search", "login", "--limit", "1")
    second = history(live, "--search", "login", "--limit", "1", "--before", first["next"])
    assert first["matches"] != second["matches"]


def test_sessions_are_found_by_time_and_project_in_pages(live: DaemonHome) -> None:
    for number in range(3):
        work(live, f"s{number}")
    assert len(history(live, "--project", ".")["sessions"]) == 3
    assert history(live, "--project", "/elsewhere")["sessions"] == []
    assert history(live, "--project", "/elsewhere")["usd"] == 0
    first = history(live, "--limit", "2")
    rest = history(live, "--limit", "2", "--before", first["next"])
    assert [one["id"] for one in (*first["sessions"], *rest["sessions"])] == ["s2", "s1", "s0"]
    assert rest["next"] == ""
    assert history(live, "--since", "2099-01-01")["sessions"] == []
    wrong = live.fairlead("history", "--since", "soon")
    assert (wrong.exit_code, "got 'soon'" in wrong.stderr) == (1, True)


def test_the_cost_of_today_is_the_same_everywhere_and_adds_up_over_restarts(home: DaemonHome) -> None:
    """The client is killed and continued, another session has ended, the daemon is killed: nothing is counted twice."""
    with home.daemon() as daemon:
        happens(home, "SessionStart", "s1", source="startup")
        costs(home, "s1", 2.00, 100)
        costs(home, "s1", 3.00, 110)
        costs(home, "s1", 0.00, 1)  # the client was killed and continued: it counts from 0
        costs(home, "s1", 0.50, 20)
        happens(home, "SessionStart", "s2", source="startup")
        costs(home, "s2", 1.00, 60)
        happens(home, "SessionEnd", "s2", reason="other")
        daemon.kill()
        daemon.wait()
    with home.daemon():
        costs(home, "s1", 0.75, 30)
        document = home.ask("GET", "/v1/sessions")
        assert round(document["costs"]["usd"], 6) == 4.75
        assert {one["id"]: round(one["usd"], 6) for one in document["costs"]["sessions"]} == {"s1": 3.75, "s2": 1.0}
        assert home.fairlead("sessions", "--line").stdout.strip().endswith("$4.75 today")
        assert "$4.75 today" in home.fairlead("sessions", "--tree").stdout.splitlines()[0]
        assert "$4.75 today" in home.fairlead("watch", "--once").stdout.splitlines()[0]
        assert home.fairlead("history").stdout.splitlines()[0].endswith(", $4.75")
        assert round(json.loads(home.fairlead("sessions", "--json").stdout)["costs"]["usd"], 6) == 4.75


def test_what_is_older_than_the_setting_is_really_deleted(home: DaemonHome) -> None:
    """Rows, texts of the search and segments of the journal go. `tests/store` shows that the file gets smaller."""
    config, journal = home.state / "config.yaml", home.state / "journal"
    old = time.time() - 3 * 24 * 3600
    with home.daemon():
        work(home, "s1", prompt="an old prompt about marmalade")
        until(lambda: history(home, "--search", "marmalade")["matches"], "it is stored")
    lines = "".join(file.read_text() for file in sorted(journal.iterdir()))
    for file in journal.iterdir():
        file.unlink()
    (home.state / "fairlead.db").unlink()
    for name in ("fairlead.db-wal", "fairlead.db-shm"):
        (home.state / name).unlink(missing_ok=True)
    rows = [json.loads(line) for line in lines.splitlines()]
    aged = journal / "00000001.jsonl"
    aged.write_text("".join(json.dumps({**row, "at": old}, separators=(",", ":")) + "\n" for row in rows))
    os.utime(aged, (old, old))
    with home.daemon():
        work(home, "s2")
        assert history(home, "--since", "7d", "--search", "marmalade")["matches"]
        config.write_text("journal: {keepDays: 1}\n")

        def is_deleted() -> bool:
            work(home, "s2")  # the setting is read between two events
            found = history(home, "--since", "7d")["sessions"]
            return [one["id"] for one in found] == ["s2"] and not aged.exists()

        until(is_deleted, "what is old is deleted")
        assert history(home, "--since", "7d", "--search", "marmalade")["matches"] == []
    stored = b"".join(file.read_bytes() for file in home.state.glob("fairlead.db*"))
    assert b"marmalade" not in stored
    with sqlite3.connect(home.state / "fairlead.db") as database:
        assert database.execute("SELECT count(*) FROM history_texts WHERE at < ?", (old + 1,)).fetchone() == (0,)


def test_what_happened_while_the_user_was_away_is_summed_up(home: DaemonHome) -> None:
    """They were last seen an hour ago, and come back to `watch`; a prompt shows as well that they are there."""
    left = time.time() - 3600
    (home.state / "presence.json").write_text(json.dumps({"seen": left}))
    home.policy(POLICY)
    with home.daemon():
        happens(home, "PreToolUse", "s1", tool_name="Edit", tool_input={"file_path": str(home.project / "uv.lock")})
        costs(home, "s1", 0.5, 5)
        happens(home, "PermissionRequest", "s1", tool_name="Bash", tool_input={"command": "make"})
        happens(home, "SessionEnd", "s1", reason="other")
        assert history(home, "--since", "left")["since"] == left

        away = home.ask("GET", "/v1/absence")
        assert (away["since"], away["blocked"], away["asked"], away["usd"], away["active"]) == (left, 1, 1, 0.5, 1)
        assert [one["id"] for one in away["ended"]] == ["s1"]
        assert away["examples"][0]["reason"]
        happens(home, "UserPromptSubmit", "s2", prompt="<task-notification>by the client</task-notification>")
        assert home.ask("POST", "/v1/presence") == {"left": left, "was_away": True}
        assert home.ask("POST", "/v1/presence") == {"left": left, "was_away": False}
    with home.daemon():
        assert home.ask("POST", "/v1/presence") == {"left": left, "was_away": False}


def test_a_prompt_of_a_person_shows_that_they_are_there(home: DaemonHome) -> None:
    left = time.time() - 3600
    (home.state / "presence.json").write_text(json.dumps({"seen": left}))
    with home.daemon():
        happens(home, "UserPromptSubmit", "s1", prompt="go on")
        assert home.ask("POST", "/v1/presence") == {"left": left, "was_away": False}
