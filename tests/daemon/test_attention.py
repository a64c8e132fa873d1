"""The person hears that a session needs them: a real daemon, real channels, a real desktop's bus, a real tmux."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from threading import Thread
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import pytest
from daemon.daemon_home import until
from notify.receivers import Desktop, Service, session_bus

from fairlead.journal import DOCTOR_SESSION, DaemonRecord
from fairlead.sessions import TmuxClients

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome


@pytest.fixture
def service() -> Iterator[Service]:
    """A channel: a web service on this machine."""
    with Service() as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def channel(service: Service) -> str:
    return f"json://127.0.0.1:{service.server_port}"


def settings(home: DaemonHome, **section: object) -> None:
    """Write the user-wide policy."""
    lines = "".join(f"  {name}: {value}\n" for name, value in section.items())
    (home.state / "config.yaml").write_text(f"attention:\n{lines}")


def send(home: DaemonHome, event: str, session: str = "s1", **fields: Any) -> None:
    """Let something happen in a session; capitals are variables of its process."""
    env = {name: fields.pop(name) for name in [*fields] if name.isupper()}
    done = home.hook(event, home.payload(session_id=session, hook_event_name=event, **fields), **env)
    assert done.exit_code == 0, done


def asks(home: DaemonHome, session: str = "s1", tool: str = "Bash", **fields: Any) -> None:
    call = {"tool_name": tool, "tool_input": {"command": "make"}, **fields}
    send(home, "PreToolUse", session, tool_use_id=f"t{monotonic()}", **call)
    send(home, "PermissionRequest", session, **call)


def attention(home: DaemonHome) -> dict[str, Any]:
    found: dict[str, Any] = home.ask("GET", "/v1/status")["attention"]
    return found


def next_note(service: Service) -> tuple[str, str]:
    _, said = service.received.get(timeout=60)
    return said["title"], said["message"]


def none_left(service: Service, home: DaemonHome) -> None:
    """Nothing more is on its way: a session that asks last is told, and nothing before it."""
    asks(home, "the-last", "Last")
    assert next_note(service) == ("Fairlead - project needs you", "Permission for Last: make")
    with pytest.raises(Empty):
        service.received.get_nowait()


def troubles(home: DaemonHome) -> list[str]:
    """What the journal says went wrong."""
    turns = [record.what for record in home.journal() if isinstance(record, DaemonRecord)]
    return [what for what in turns if not what.startswith(("started", "stopped"))]


BASH = ("Fairlead - project needs you", "Permission for Bash: make")


# -- once for each question ----------------------------------------------------------------------------


def test_a_question_is_told_once_and_the_next_one_anew(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        asks(home)
        assert next_note(service) == BASH
        send(home, "Notification", notification_type="permission_prompt", message="Claude needs your permission")
        send(home, "PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
        asks(home, "s2", "WebFetch")
        assert next_note(service) == ("Fairlead - project needs you", "Permission for WebFetch: make")

        send(home, "UserPromptSubmit", prompt="go on")
        asks(home)
        assert next_note(service) == BASH
        none_left(service, home)
        assert attention(home) == {"waiting": 3, "held": 0, "told": 4, "can_tell": True}


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_another_daemon_does_not_tell_it_again(home: DaemonHome, service: Service, end: signal.Signals) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    daemon = home.start()
    asks(home)
    assert next_note(service) == BASH
    daemon.send_signal(end)
    daemon.wait(30)

    send(home, "Notification", notification_type="permission_prompt")  # it meets no daemon
    with home.daemon():
        until(lambda: attention(home)["waiting"] == 1, "the session is known again")
        none_left(service, home)


def test_what_waited_before_the_daemon_came_is_told_in_one_note(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    for number in range(5):
        asks(home, f"s{number}", f"Tool{number}")
    with home.daemon():
        title, body = next_note(service)
        assert title == "Fairlead - 5 sessions need you"
        assert body == (
            "project: Permission for Tool0: make; project: Permission for Tool1: make; "
            "project: Permission for Tool2: make; and 2 more"
        )
        none_left(service, home)


def test_a_subagents_question_is_told_once_with_its_type(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        send(home, "SubagentStart", agent_id="a1", agent_type="Explore")
        edit: dict[str, Any] = {"tool_name": "Edit", "tool_input": {"file_path": "/srv/shop/src/cart.py"}}
        send(home, "PermissionRequest", agent_id="a1", agent_type="Explore", **edit)
        assert next_note(service) == ("Fairlead - project needs you", "Explore: Permission for Edit: cart.py")
        send(home, "Notification", notification_type="permission_prompt")
        none_left(service, home)


def test_a_session_of_the_doctors_is_no_news(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        asks(home, DOCTOR_SESSION)
        none_left(service, home)


def test_texts_of_others_are_one_plain_line(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        asks(home, tool="\x1b[31m<b>$(id)\n\u202eevil" + "x" * 300)
        title, body = next_note(service)
        assert title == BASH[0]
        assert body == "Permission for ␛[31m<b>$(id) �evil" + "x" * 25 + "…: make"


# -- what the person set -------------------------------------------------------------------------------


def test_a_project_has_no_say_in_it(home: DaemonHome, service: Service) -> None:
    with Service() as other:
        home.policy(f"attention:\n  channels: [{channel(other)}]\n  quietHours: 00:00-24:00\n")
        settings(home, channels=f"[{channel(service)}]", grace=0)
        with home.daemon():
            asks(home)
            assert next_note(service) == BASH
    assert other.received.empty()


def test_quiet_hours_hold_it_back_and_keep_the_daemon_until_they_end(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0, quietHours="00:00-24:00")
    asks(home)
    with home.daemon("--idle", "5") as daemon:
        until(lambda: attention(home)["held"] == 1, "it is held back")
        until(lambda: (home.status() or {})["uptime"] > 12, "it would have gone by now")
        assert (daemon.poll(), attention(home)["told"]) == (None, 0)

        settings(home, channels=f"[{channel(service)}]", grace=0)
        assert next_note(service) == BASH
        until(lambda: daemon.poll() is not None, "there is nothing left to wait for")


def test_a_broken_file_is_told_as_its_last_good_version_says(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        asks(home)
        assert next_note(service) == BASH
        settings(home, channels="[")
        none_left(service, home)


def test_nobody_can_be_told_where_there_is_neither_desktop_nor_channel(home: DaemonHome) -> None:
    settings(home, grace=0)
    with home.daemon(XDG_RUNTIME_DIR=str(home.folder)):
        asks(home)
        until(lambda: attention(home) == {"waiting": 1, "held": 1, "told": 0, "can_tell": False}, "it is decided")
        said = home.fairlead("daemon", "status").stdout
        assert "1 session waits for you; you were notified of 0; you cannot be notified: no desktop here" in said
    assert troubles(home) == []
    assert not (home.state / "notify.log").exists()


def test_no_daemon_stays_for_what_can_be_told_to_nobody(home: DaemonHome) -> None:
    asks(home)
    with home.daemon("--idle", "1") as daemon:
        until(lambda: daemon.poll() is not None, "it has gone")


# -- the desktop ---------------------------------------------------------------------------------------


@contextmanager
def desktop() -> Iterator[tuple[str, Desktop]]:
    with session_bus() as address:
        listener = Desktop(address)
        try:
            yield address, listener
        finally:
            listener.close()


def test_it_is_shown_on_the_desktop_without_any_settings(home: DaemonHome) -> None:
    with desktop() as (address, shown), home.daemon(DBUS_SESSION_BUS_ADDRESS=address):
        asks(home)
        note = shown.shown.get(timeout=60)
        assert (note["title"], note["body"], note["urgency"]) == (*BASH, 1)


def test_a_daemon_that_has_no_address_finds_the_bus_in_the_runtime_folder(home: DaemonHome) -> None:
    with desktop() as (address, shown):
        place = Path(address.partition("unix:path=")[2].partition(",")[0])
        (home.folder / "bus").symlink_to(place)
        with home.daemon(XDG_RUNTIME_DIR=str(home.folder)):
            asks(home, XDG_RUNTIME_DIR=str(home.folder))
            assert shown.shown.get(timeout=60)["body"] == "Permission for Bash: make"


def test_the_desktop_can_be_switched_off(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0, desktop="false")
    with desktop() as (address, shown), home.daemon(DBUS_SESSION_BUS_ADDRESS=address):
        asks(home)
        assert next_note(service) == BASH
        none_left(service, home)
        assert shown.shown.empty()


# -- what goes wrong -----------------------------------------------------------------------------------


def test_a_channel_that_fails_is_said_once_and_harms_nothing(home: DaemonHome, service: Service) -> None:
    service.code = 500
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with home.daemon():
        for name in ("s1", "s2"):
            asks(home, name)
            assert next_note(service) == BASH
        log = home.state / "notify.log"
        until(lambda: log.exists() and log.read_text().count(": not sent") == 2, "both have failed")
        until(lambda: troubles(home), "it is said")
        service.code = 200
        none_left(service, home)
        assert attention(home)["told"] == 3
    assert troubles(home) == ["a notification could not be sent; see notify.log in the state folder"]


def test_a_desktop_where_nobody_listens_is_tried_once(home: DaemonHome, service: Service) -> None:
    """A server with a bus and nobody at it: channels are told all the same."""
    settings(home, channels=f"[{channel(service)}]", grace=0)
    with session_bus() as address, home.daemon(DBUS_SESSION_BUS_ADDRESS=address, PATH="/nowhere"):
        asks(home)
        assert next_note(service) == BASH
        until(lambda: troubles(home), "it is said")
        none_left(service, home)
    assert (home.state / "notify.log").read_text().count("by desktop-notifier") == 1


def test_a_channel_that_hangs_holds_up_neither_events_nor_the_end(home: DaemonHome) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings(home, channels=f"[json://127.0.0.1:{silent.getsockname()[1]}]", grace=0)
        with home.daemon() as daemon:
            asks(home)
            connection, _ = silent.accept()
            asks(home, "s2")
            until(lambda: attention(home)["told"] == 2, "the next one is told meanwhile")
            begun = monotonic()
            daemon.terminate()
            daemon.wait(30)
            assert monotonic() - begun < 20
            connection.close()


def test_what_was_told_before_may_be_damaged(home: DaemonHome, service: Service) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    (home.state / "attention.json").write_text("{")
    with home.daemon():
        asks(home)
        assert next_note(service) == BASH
    assert [what.partition(":")[0] for what in troubles(home)] == ["earlier notifications cannot be read"]


# -- in front ------------------------------------------------------------------------------------------


class Tmux:
    """A server of our own: the agent's session, and a terminal that shows it."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "tmux.sock"
        self.run("new-session", "-d", "-s", "agent", "-x", "80", "-y", "20", "exec cat")
        self.run("new-window", "-d", "-t", "agent", "exec cat")
        self.pane = self.run("display-message", "-p", "-t", "agent:0", "#{pane_id}")
        self.tmux = f"{self.socket},1,0"

    def run(self, *words: str) -> str:
        env = {key: value for key, value in os.environ.items() if not key.startswith("TMUX")}
        command = ["tmux", "-S", str(self.socket), "-f", os.devnull, *words]
        done = subprocess.run(
            command, env=env | {"TERM": "xterm"}, capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout.strip()

    def attach(self) -> None:
        """Show it in a terminal: a pane of another session of the same server."""
        command = f"exec env -u TMUX TERM=screen tmux -S {self.socket} attach -t agent"
        self.run("new-session", "-d", "-s", "outer", "-x", "80", "-y", "20", command)
        until(lambda: self.run("list-clients", "-F", "#{client_session}") == "agent", "a terminal is attached")

    def is_shown(self, after: float = 0.0) -> bool:
        return TmuxClients(time() + after).show(self.tmux, self.pane)

    def report(self, focus: str) -> None:
        """Let the terminal say that it has the focus (`I`), or has lost it (`O`)."""
        self.run("send-keys", "-t", "outer", "-H", "1b", "5b", f"{ord(focus):x}")


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    if not shutil.which("tmux"):
        assert os.environ.get("CI") != "true", "CI must have tmux"
        pytest.skip("there is no tmux here")
    with tempfile.TemporaryDirectory(prefix="fl") as folder:
        made = Tmux(Path(folder))
        try:
            yield made
        finally:
            made.run("kill-server")


def test_a_pane_is_in_front_if_a_terminal_shows_it_to_somebody(tmux: Tmux) -> None:
    assert not tmux.is_shown()
    tmux.attach()
    assert tmux.is_shown()
    assert not tmux.is_shown(after=120)  # nobody has typed for two minutes, and tmux does not know who looks

    tmux.run("select-window", "-t", "agent:1")
    assert not tmux.is_shown()
    tmux.run("select-window", "-t", "agent:0")
    tmux.run("split-window", "-t", "agent:0", "exec cat")
    assert not tmux.is_shown()
    tmux.run("select-pane", "-t", tmux.pane)
    assert tmux.is_shown()


def test_where_tmux_knows_the_focus_that_decides(tmux: Tmux) -> None:
    tmux.run("set-option", "-g", "focus-events", "on")
    tmux.attach()
    tmux.report("I")
    until(lambda: tmux.is_shown(after=7200), "it has the focus, whenever somebody typed")
    tmux.report("O")
    until(lambda: not tmux.is_shown(), "somebody looks elsewhere")


@pytest.mark.parametrize(
    ("where", "pane"),
    [("", ""), ("/nowhere/sock,1,0", "%1"), ("relative,1,0", "%1"), ("/x,1,0", "-t"), ("/x\0,1,0", "%1")],
)
def test_what_cannot_be_looked_at_is_not_in_front(where: str, pane: str) -> None:
    assert not TmuxClients(time()).show(where, pane)


def test_who_looks_at_the_pane_is_not_told(home: DaemonHome, service: Service, tmux: Tmux) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0)
    tmux.attach()
    here = {"TMUX": tmux.tmux, "TMUX_PANE": tmux.pane}
    with home.daemon():
        asks(home, tool="Bash", **here)
        until(lambda: attention(home)["held"] == 1, "it is held back")
        assert attention(home)["told"] == 0

        send(home, "UserPromptSubmit", prompt="go on", **here)
        tmux.run("select-window", "-t", "agent:1")
        asks(home, tool="WebFetch", **here)
        assert next_note(service) == ("Fairlead - project needs you", "Permission for WebFetch: make")
        none_left(service, home)


def test_unless_they_want_to_be(home: DaemonHome, service: Service, tmux: Tmux) -> None:
    settings(home, channels=f"[{channel(service)}]", grace=0, whenInFront="true")
    tmux.attach()
    with home.daemon():
        asks(home, TMUX=tmux.tmux, TMUX_PANE=tmux.pane)
        assert next_note(service) == BASH
