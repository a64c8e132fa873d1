"""A status line on its way: from the client's payload to what a session is known to have used, and back to a line."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import client
from daemon.daemon_home import LAUNCHER, PATIENCE, until
from daemon.talk import talk

from fairlead.ipc import stream_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.callers import Process
    from daemon.daemon_home import DaemonHome

RECORDED = json.loads(Path(__file__).parents[1].joinpath("sessions/status_lines/2.1.325.json").read_text("utf-8"))
NAME = RECORDED["session_id"]
LINE = "Opus 5.5  ████░░░░░░ 42%  $1.23  14s  +7 -2\n"


@pytest.fixture
def live(home: DaemonHome) -> Iterator[DaemonHome]:
    """A home with a daemon."""
    with home.daemon():
        yield home


def status(**changed: object) -> bytes:
    """A status line as the client tells it, of a session that has done something."""
    cost = {**RECORDED["cost"], "total_cost_usd": 1.234, "total_lines_added": 7, "total_lines_removed": 2}
    context = {**RECORDED["context_window"], "used_percentage": 42}
    return json.dumps({**RECORDED, "cost": cost, "context_window": context, **changed}).encode()


def happens(home: DaemonHome, event: str, session: str, **fields: object) -> None:
    """Let something happen in a session."""
    done = home.hook(event, home.payload(session_id=session, hook_event_name=event, **fields))
    assert (done.stderr, done.exit_code) == ("", 0)


def row(home: DaemonHome, name: str = NAME) -> dict[str, Any]:
    found: dict[str, Any] = home.ask("GET", f"/v1/sessions/{name}")
    return found


def test_the_line_is_shown_and_the_session_is_measured(live: DaemonHome) -> None:
    happens(live, "SessionStart", NAME)
    done = live.hook("StatusLine", status())
    assert (done.stdout, done.stderr, done.exit_code) == (LINE, "", 0)
    assert row(live)["usage"] == {
        "model": "claude-opus-5-5",
        "context_percent": 42.0,
        "context_window": 1_000_000,
        "cost_usd": 1.234,
        "lines_added": 7,
        "lines_removed": 2,
    }
    assert row(live)["evidence"]["event"] == "SessionStart", "it was taken in first"
    listed = json.loads(live.fairlead("sessions", "--json").stdout)["sessions"]
    assert [one["usage"]["cost_usd"] for one in listed] == [1.234]


def test_the_persons_own_line_is_shown_unchanged_and_the_session_is_measured(live: DaemonHome) -> None:
    done = live.hook("StatusLine", status(), "--then", "head -c 15; echo; exit 3")
    assert (done.stdout, done.stderr, done.exit_code) == ('{"session_id": \n', "", 3)
    assert row(live)["usage"]["cost_usd"] == 1.234


def test_a_session_that_nobody_told_of_becomes_known(live: DaemonHome) -> None:
    live.hook("StatusLine", status(), TMUX="/t,1,0", TMUX_PANE="%7")
    known = row(live)
    assert (known["cwd"], known["pane"], known["model"]) == ("/home/user/project", "%7", "claude-opus-5-5")
    assert "pid" not in known, "a shell may stand between the client and us"
    assert "evidence" not in known


def test_it_is_no_event(live: DaemonHome) -> None:
    for _ in range(3):
        live.hook("StatusLine", status())
    assert live.happened() == []
    told = live.status()
    assert told is not None
    assert told["events"] == 0
    assert "StatusLine" not in live.fairlead("events", "--json").stdout


def test_those_who_watch_see_the_change(live: DaemonHome) -> None:
    revision = live.ask("GET", "/v1/sessions")["revision"]
    costs: list[float] = []

    def watch() -> None:
        path = f"/v1/sessions/stream?after={revision}"
        for kind, data in stream_events(path, timeout=PATIENCE, at=str(live.socket)):
            if kind == "session":
                costs.append(data["usage"]["cost_usd"])
                if costs[-1] == 2.5:
                    return

    watcher = threading.Thread(target=watch)
    watcher.start()
    live.hook("StatusLine", status())
    until(lambda: costs == [1.234], "the first is seen")
    live.hook("StatusLine", status(cost={"total_cost_usd": 2.5}))
    watcher.join(PATIENCE)
    assert costs == [1.234, 2.5]


def test_what_was_measured_survives_the_daemon(home: DaemonHome) -> None:
    """By the snapshot, which is written at the end, and now and then."""
    with home.daemon():
        home.hook("StatusLine", status())
    with home.daemon():
        assert row(home)["usage"]["cost_usd"] == 1.234


def test_those_who_need_the_person_are_counted(live: DaemonHome) -> None:
    happens(live, "PermissionRequest", "s1", tool_name="Bash", tool_input={})
    happens(live, "PermissionRequest", "s2", tool_name="Bash", tool_input={})
    happens(live, "SubagentStart", "s1", agent_id="a", agent_type="Explore")
    happens(live, "PermissionRequest", "s1", tool_name="Bash", tool_input={}, agent_id="a")
    assert live.hook("StatusLine", status()).stdout == LINE.replace("\n", "  ! 2 others need you\n")
    own = live.hook("StatusLine", status(session_id="s1")).stdout
    assert own == LINE.replace("\n", "  ! 1 other needs you\n"), "who sees the line knows of itself"


ODD = {
    "empty": b"",
    "binary": bytes(range(256)),
    "cut off": status()[:-5],
    "no object": b"[1]",
    "deep": b"[" * 200_000,
    "huge": b'{"session_id": "huge", "x": "' + b"x" * (1 << 20) + b'"}',
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("there", [True, False], ids=["daemon", "no daemon"])
def test_what_is_no_status_makes_an_empty_line(home: DaemonHome, kind: str, *, there: bool) -> None:
    if there:
        with home.daemon():
            done = home.hook("StatusLine", ODD[kind])
            assert home.ask("GET", "/v1/sessions")["sessions"] == []
            assert home.hook("StatusLine", ODD[kind], "--then", "echo mine").stdout == "mine\n"
    else:
        done = home.hook("StatusLine", ODD[kind])
    assert (done.stdout, done.stderr, done.exit_code) == ("\n", "", 0)


@pytest.mark.parametrize("name", [None, 5, "", [], {"a": 1}])
def test_of_no_session_the_line_is_shown_and_nothing_is_known(live: DaemonHome, name: object) -> None:
    assert live.hook("StatusLine", status(session_id=name)).stdout == LINE
    assert live.ask("GET", "/v1/sessions")["sessions"] == []


def test_figures_of_the_wrong_kind_are_left_out(live: DaemonHome) -> None:
    odd = status(model=["x"], cost="much", context_window={"used_percentage": "half"}, cwd=7, transcript_path={})
    done = live.hook("StatusLine", odd)
    assert (done.stdout, done.stderr, done.exit_code) == ("\n", "", 0)
    assert row(live).get("usage", {}) == {}


def test_without_a_daemon_the_payload_alone_makes_the_line(open_home: DaemonHome) -> None:
    """And none is begun, nothing is left behind."""
    done = open_home.hook("StatusLine", status())
    assert (done.stdout, done.stderr, done.exit_code) == (LINE, "", 0)
    assert open_home.cold("StatusLine", status(), "--whatever").stdout == LINE
    assert open_home.hook("StatusLine", status(), "--then", "echo mine").stdout == "mine\n"
    assert (open_home.spooled(), open_home.daemons()) == ([], [])


def test_a_daemon_of_another_home_is_not_told(live: DaemonHome) -> None:
    done = live.hook("StatusLine", status(), XDG_STATE_HOME="/elsewhere")
    assert (done.stdout, done.exit_code) == (LINE, 0)
    assert live.ask("GET", "/v1/sessions")["sessions"] == []


def test_a_daemon_that_is_older_than_its_launcher_goes(home: DaemonHome) -> None:
    with home.daemon() as daemon:
        answer = talk(home.socket, "POST", "/v1/events/StatusLine", status(), fairlead_version="99.0.0")
        assert answer.status == 426
        daemon.wait(PATIENCE)


def test_a_cost_that_a_continued_client_reports_before_its_first_event_counts_from_zero(live: DaemonHome) -> None:
    """Its process began within two seconds of the one that was killed, whose events were the last ones."""
    with client(live) as killed:
        killed.event("SessionStart", NAME)
        costs(killed, 0.4, 1.0)
    with client(live) as continued:
        costs(continued, 0.0, 0.1)
        continued.event("SessionStart", NAME)
        costs(continued, 2.0, 0.2)
    assert row(live)["usage"]["cost_usd"] == pytest.approx(2.4)


def costs(client: Process, usd: float, seconds: float) -> None:
    """Let a client that has run for some seconds report what the session has cost."""
    payload = status(cost={**RECORDED["cost"], "total_cost_usd": usd, "total_duration_ms": seconds * 1000})
    done = client.run([str(LAUNCHER), "StatusLine"], payload.decode())
    assert (done.stderr, done.exit_code) == ("", 0)
