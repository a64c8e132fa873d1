"""The other hosts of the team in the view: their sessions, the age of their updates, and what can be done with them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tui.sample_sessions import NOW, sample_sessions, session
from tui.screens import lines_of, snapshot_of, until, watching
from tui.test_snapshots import compare

from fairlead.cli.sessions.listing import hosts_to_line, to_line
from fairlead.sessions import AttentionNeeded, Evidence, HostSessions, Idle, Working
from fairlead.tui import plain_view
from fairlead.tui._source import SessionSource
from fairlead.tui._team_source import HostChanged, LastContacts
from fairlead.tui.model._answering import AnswerForm, OpenQuestion
from fairlead.tui.model._view import View

if TYPE_CHECKING:
    from textual.pilot import Pilot
    from tui.fake_daemon import FakeDaemon

    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp

ASKED = Evidence("PermissionRequest", NOW - 9, "Bash")


def remote(name: str, folder: str, **fields: Any) -> Session:
    return msgspec.structs.replace(session(name, **fields), cwd=folder, project=folder, pid=0, pane="", tmux="")


def on_server() -> tuple[Session, ...]:
    asks = AttentionNeeded("Permission for Bash", "make deploy")
    return (
        remote("r1", "/srv/shop", title="Deploy the shop", state=asks, evidence=ASKED, since=NOW - 9),
        remote("r2", "/srv/shop", title="Run the tests", state=Working("Bash"), since=NOW - 40),
        remote("r3", "/srv/logs", title="Sort the logs", state=Idle(), since=NOW - 600),
    )


def on_laptop() -> tuple[Session, ...]:
    asks = AttentionNeeded("Permission for Edit", "/home/ana/web/a.py")
    return (
        remote("l1", "/home/ana/web", title="Write a page", state=asks, since=NOW - 7000),
        remote("l2", "/home/ana/web", title="Paint it", state=Working("Edit"), since=NOW - 7000),
    )


SERVER = HostChanged("server", NOW - 4, on_server())
LAPTOP = HostChanged("laptop", NOW - 7200, on_laptop(), left_out=2)


async def show_team(app: WatchApp, pilot: Pilot[None]) -> None:
    app.deliver(SERVER)
    app.deliver(LAPTOP)
    await until(lambda: "r1@server" in app.sessions.sessions and not app._is_draw_pending)
    await pilot.pause()


async def select(app: WatchApp, pilot: Pilot[None], name: str) -> None:
    index = next(n for n, line in enumerate(app.list.lines) if line.id == name and line.kind == "session")
    app.list.select(index)
    await pilot.pause()


@pytest.mark.parametrize("size", [(80, 24), (200, 50)], ids=str)
async def test_the_team(size: tuple[int, int]) -> None:
    """What server asks is among what needs the person; laptop is not heard of, so it asks nothing."""
    async with watching(sample_sessions()[:3], size) as (app, pilot):
        await show_team(app, pilot)
        compare(f"team-{size[0]}x{size[1]}", snapshot_of(app))
        app.deliver(LastContacts({"server": NOW - 1}))
        await until(lambda: "l1@laptop" not in app.sessions.sessions and not app._is_draw_pending)
        await pilot.pause()
        assert not any("laptop" in line for line in lines_of(app))


async def test_a_host_that_is_heard_of_again_asks_again() -> None:
    async with watching([]) as (app, pilot):
        await show_team(app, pilot)
        assert app.sessions.totals.waiting == 1
        app.deliver(LastContacts({"server": NOW, "laptop": NOW}))
        await until(lambda: app.sessions.totals.waiting == 2)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("enter", "it runs on server: its pane is there; from here you can answer it (a) and write to it (m)"),
        ("I", "it runs on server: it can be interrupted only there"),
        ("X", "it runs on server: it can be ended only there"),
        ("o", "it runs on server: its transcript is there"),
        ("p", "it runs on server: its pane is there"),
        ("t", "it runs on server: its events are there"),
    ],
)
async def test_what_is_not_possible_on_another_host_says_so(
    key: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CLAUDECODE", "CLAUDE_CODE_SESSION_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("fairlead.tui._session_control.client_above", lambda *_: None)
    async with watching([], (120, 30)) as (app, pilot):
        await show_team(app, pilot)
        await select(app, pilot, "r2@server")
        await pilot.press(key)
        await until(lambda: message in " ".join(line.strip() for line in lines_of(app)))


async def test_mail_and_answers_reach_the_host(daemon: FakeDaemon) -> None:
    agent = {"name": "amber-fox@server", "session": "r2"}
    daemon.documents["/v1/mail/agents"] = json.dumps(
        {"agents": [], "hosts": [{"host": "server", "agents": [agent]}]}
    ).encode()
    daemon.documents["/v1/mail/send"] = b'{"id": 7}'
    daemon.questions = [{"id": "k7qd3", "session": "r1", "host": "server", "tool": "Bash", "text": "make deploy"}]
    async with watching(source=SessionSource(str(daemon.socket_path))) as (app, pilot):
        await until(lambda: app.connection.is_live)
        await show_team(app, pilot)
        await select(app, pilot, "r2@server")
        await pilot.press("m", *"hello", "enter")
        await until(lambda: any("sent to amber-fox@server: message 7" in line for line in lines_of(app)))
        await select(app, pilot, "r1@server")
        await pilot.press("a")
        await until(lambda: any("y allow once" in line for line in lines_of(app)))
        await pilot.press("y")
        await until(lambda: any("allowed once on server: Bash" in line for line in lines_of(app)))
        assert "/v1/answers/k7qd3@server" in daemon.requests
        await select(app, pilot, "r3@server")
        await pilot.press("a")
        await until(lambda: any("server takes no answers from this host" in line for line in lines_of(app)))


async def test_the_stream_of_the_team_is_followed_unless_only_this_host_is_wanted(daemon: FakeDaemon) -> None:
    async with watching(source=SessionSource(str(daemon.socket_path))):
        await until(lambda: "/v1/team/stream" in daemon.requests)


def test_what_is_not_shown_as_a_whole_can_only_be_denied() -> None:
    form = AnswerForm(OpenQuestion(id="a", session="s", text="x", host="server", only_deny="it is too long"))
    assert form.press("y", "y") == ""
    assert form.lines(60)[0] == [("It can only be denied from here: it is too long.", "needs")]
    assert form.press("d", "d") == ""
    assert form.mode == "reason"


def test_the_first_line_and_the_status_bar_count_the_same() -> None:
    here, hosts = (
        sample_sessions(),
        [
            HostSessions("laptop", 7200.0, on_laptop(), 2),
            HostSessions("server", 4.0, on_server()),
        ],
    )
    lines = [to_line(here, NOW), *hosts_to_line(hosts, NOW)]
    assert lines[1:] == ["laptop: 2 stale", "server: ! shop: Bash: make deploy | 1 working | 1 idle"]
    counted = {
        word: sum(
            int(part.split()[0])
            for line in lines
            for part in line.removeprefix("laptop: ").split(" | ")
            if part.endswith(word)
        )
        for word in ("working", "idle", "stale")
    }
    view = plain_view(here, View(), NOW, 200, hosts=hosts)
    for word, count in counted.items():
        assert f" {count} {word}" in view[0]
    alone = plain_view(here, View(), NOW, 200)
    assert not any("server" in line for line in alone)
