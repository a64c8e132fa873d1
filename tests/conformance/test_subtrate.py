"""The mail's document: a test for each row, flow and format of it, through the real launcher, daemon and commands.

Its commands are named `substrate …`; here they are `fairlead …`, and the launcher stands for its shell scripts.
"""

from __future__ import annotations

import json
import shlex
from contextlib import ExitStack
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from daemon.callers import person
from daemon.clients import client
from daemon.daemon_home import FAIRLEAD, scratch_home, until
from daemon.talk import talk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from daemon.callers import Process
    from daemon.clients import Client
    from daemon.daemon_home import DaemonHome, Done

STAYS = "mail: {stay: always, wait: 1}\n"
"""The document's agent, who waits for a second instead of nine and a half minutes."""
WAITS = "mail: {stay: always}\n"

_sessions = count(1)


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    """A home with a daemon whose agents stay, as the document has it."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        made.policy(STAYS)
        with made.daemon():
            until(lambda: made.fairlead("agents", "--json").exit_code == 0, "there is mail")
            yield made


@pytest.fixture(scope="module")
def user(home: DaemonHome) -> Iterator[Process]:
    """The person, at a terminal."""
    with person(home) as made:
        yield made


@pytest.fixture
def begin(home: DaemonHome) -> Iterator[Callable[[], Client]]:
    """Start clients, each with a session of its own that has begun."""
    with ExitStack() as stack:

        def begin() -> Client:
            made = stack.enter_context(client(home, f"{next(_sessions):08x}-0000-4000-8000-000000000000"))
            assert made.hook("SessionStart", source="startup").exit_code == 0
            return made

        yield begin


@pytest.fixture
def agent(begin: Callable[[], Client]) -> Client:
    return begin()


@pytest.fixture
def peer(begin: Callable[[], Client]) -> Client:
    """Another agent. The document calls it AgentX."""
    return begin()


def context(done: Done) -> str:
    assert done.exit_code == 0, done
    return str(done.answer["hookSpecificOutput"]["additionalContext"])


def seen(client: Client) -> float:
    """When an agent was last heard of."""
    listed: list[dict[str, Any]] = json.loads(client.fairlead("agents", "--json").stdout)["agents"]
    return float(next(one["seen"] for one in listed if one["name"] == client.name))


def task(client: Client, number: int, status: str) -> None:
    """Put a task where the client keeps them."""
    folder = client.home.folder / ".claude/tasks" / client.session
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{number}.json").write_text(json.dumps({"id": str(number), "subject": "x", "status": status}))


# -- Hook Types ----------------------------------------------------------------------------------------


def test_sessionstart(agent: Client, peer: Client) -> None:
    """Heartbeat + inject pending messages."""
    before = seen(agent)
    peer.send(agent.name, "Code review complete")

    assert "Code review complete" in context(agent.hook("SessionStart", source="resume"))
    assert seen(agent) > before


def test_userpromptsubmit(agent: Client, peer: Client) -> None:
    """Silent heartbeat + check for new mail."""
    before = seen(agent)

    silent = agent.hook("UserPromptSubmit", prompt="hello")
    assert (silent.exit_code, silent.stdout, silent.stderr) == (0, "", "")
    assert seen(agent) > before
    peer.send(agent.name, "News")
    assert "News" in context(agent.hook("UserPromptSubmit", prompt="hello"))


def test_stop(agent: Client) -> None:
    """Keep agent alive."""
    assert agent.hook("Stop").answer["decision"] == "block"


def test_subagentstop(agent: Client, peer: Client) -> None:
    """One-shot check: block once if messages exist."""
    agent.hook("SubagentStart", agent_id="a1", agent_type="Explore")
    peer.send(f"{agent.name}/explore-1", "For the subagent")

    first = agent.hook("SubagentStop", agent_id="a1", agent_type="Explore", stop_hook_active=False)
    second = agent.hook("SubagentStop", agent_id="a1", agent_type="Explore", stop_hook_active=False)

    assert first.answer["decision"] == "block"
    assert (second.exit_code, second.stdout) == (0, "")


def test_precompact(agent: Client) -> None:
    """Save identity state for restoration."""
    name = agent.name
    assert agent.hook("PreCompact", trigger="auto").exit_code == 0
    assert name in context(agent.hook("SessionStart", source="compact"))


# -- Installation --------------------------------------------------------------------------------------


HOOKED = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact")


def settings(home: DaemonHome) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home.folder / ".claude/settings.json").read_text())
    return found


@pytest.fixture
def installed(home: DaemonHome) -> Iterator[dict[str, Any]]:
    """The settings after an install."""
    assert home.fairlead("hooks", "install").exit_code == 0
    yield settings(home)
    home.fairlead("hooks", "uninstall", "--yes")


def test_hooks_install(installed: dict[str, Any]) -> None:
    """All of them are registered in ~/.claude/settings.json."""
    assert set(HOOKED) <= set(installed["hooks"])


def test_hooks_status(home: DaemonHome, installed: dict[str, Any]) -> None:
    assert installed
    told = home.fairlead("hooks", "status")
    assert told.exit_code == 0
    assert "settings.json" in told.stdout


def test_hooks_uninstall(home: DaemonHome, installed: dict[str, Any]) -> None:
    assert installed
    assert home.fairlead("hooks", "uninstall", "--yes").exit_code == 0
    file = home.folder / ".claude/settings.json"
    assert not file.exists() or not json.loads(file.read_text()).get("hooks")


# -- Stop Hook (Main Agents) ---------------------------------------------------------------------------


def test_mail_exists(agent: Client, peer: Client, user: Process) -> None:
    """In the document's words."""
    user.mail("send", agent.name, "--subject", "Please review this")
    peer.send(agent.name, "Status update")

    answer = agent.hook("Stop").answer

    assert answer["decision"] == "block"
    assert answer["reason"].splitlines()[:3] == [
        "You have 2 unread messages:",
        '- From: User - "Please review this"',
        f'- From: {peer.name} - "Status update"',
    ]


def test_tasks_incomplete(agent: Client) -> None:
    """In the document's words."""
    for number, status in enumerate(("in_progress", "pending", "completed"), 1):
        task(agent, number, status)

    assert agent.hook("Stop").answer == {
        "decision": "block",
        "reason": "2 incomplete task(s): #1 [in_progress], #2 [pending]. Complete ALL tasks before stopping.",
    }


def test_no_incomplete_tasks(agent: Client) -> None:
    """Done ones keep nobody."""
    task(agent, 1, "completed")

    assert "incomplete" not in agent.hook("Stop").answer["reason"]


def test_long_poll_new_message(home: DaemonHome, agent: Client, peer: Client) -> None:
    """What comes during the wait ends it."""
    home.policy(WAITS)
    try:
        waiting = agent.begin("Stop")
        until(lambda: home.ask("GET", "/v1/status")["waiting"] == 1, "the agent waits")
        peer.send(agent.name, "Wake up")
        answer = waiting.end().answer
    finally:
        home.policy(STAYS)
    assert answer["decision"] == "block"
    assert answer["reason"].splitlines()[:2] == ["You have 1 unread message:", f'- From: {peer.name} - "Wake up"']


def test_long_poll_timeout(agent: Client) -> None:
    """In the document's words."""
    assert agent.hook("Stop").answer == {
        "decision": "block",
        "reason": "No new messages. Agent staying alive (heartbeat). Use Ctrl+C to force exit.",
    }


def test_ctrl_c_to_force_exit(home: DaemonHome, agent: Client, peer: Client) -> None:
    """The client ends the hook by a signal; what comes afterwards is not lost."""
    home.policy(WAITS)
    try:
        waiting = agent.begin("Stop")
        until(lambda: home.ask("GET", "/v1/status")["waiting"] == 1, "the agent waits")
        agent.start(["kill", "-TERM", "--", f"-{waiting.pid}"], b"").end()
        assert waiting.end().stdout == ""
        until(lambda: home.ask("GET", "/v1/status")["waiting"] == 0, "nobody waits any more")
    finally:
        home.policy(STAYS)
    peer.send(agent.name, "After all")
    assert "After all" in agent.hook("Stop").answer["reason"]


def test_always_blocks_by_default(agent: Client) -> None:
    """Even when there are no messages, and again and again."""
    for active in (False, True, True):
        assert agent.hook("Stop", stop_hook_active=active).answer["decision"] == "block"


def test_checks_mail_before_tasks(agent: Client, peer: Client) -> None:
    task(agent, 1, "pending")
    peer.send(agent.name, "First")

    assert agent.hook("Stop").answer["reason"].startswith("You have 1 unread message:")
    assert agent.hook("Stop").answer["reason"].startswith("1 incomplete task(s): #1 [pending].")


def test_9_5_minute_long_poll(home: DaemonHome, agent: Client) -> None:
    """Under the 10-minute timeout of the hook."""
    home.policy(WAITS)
    try:
        payload = home.payload(session_id=agent.session, hook_event_name="Stop")
        answer = talk(home.socket, "POST", "/v1/events/Stop", payload, fairlead_id="570-1")
    finally:
        home.policy(STAYS)
    assert (answer.status, answer.headers["fairlead-wait"]) == (303, "570000")


# -- SubagentStop Hook (Task-Spawned Agents) -----------------------------------------------------------


def subagent(agent: Client, name: str = "a1") -> dict[str, object]:
    agent.hook("SubagentStart", agent_id=name, agent_type="Explore")
    return {"agent_id": name, "agent_type": "Explore"}


def test_stop_hook_active_true(agent: Client, peer: Client) -> None:
    """Allow exit: already processed."""
    its = subagent(agent)
    peer.send(f"{agent.name}/explore-1", "Too late")

    done = agent.hook("SubagentStop", **its, stop_hook_active=True)
    assert (done.exit_code, done.stdout) == (0, "")


def test_stop_hook_active_false_mail_exists(agent: Client, peer: Client) -> None:
    """Block: Claude will see messages."""
    its = subagent(agent)
    peer.send(f"{agent.name}/explore-1", "Look here first")

    answer = agent.hook("SubagentStop", **its, stop_hook_active=False).answer
    assert answer["decision"] == "block"
    assert "Look here first" in answer["reason"]


def test_stop_hook_active_false_no_mail(agent: Client, peer: Client) -> None:
    """Allow exit; and the mail of the parent is not the subagent's."""
    its = subagent(agent)
    peer.send(agent.name, "For the parent")

    done = agent.hook("SubagentStop", **its, stop_hook_active=False)
    assert (done.exit_code, done.stdout) == (0, "")
    assert "For the parent" in agent.hook("Stop").answer["reason"]


def test_key_differences(agent: Client) -> None:
    """No long poll, exit allowed by default, no task checking."""
    task(agent, 1, "pending")
    its = subagent(agent)

    running = agent.begin("SubagentStop", **its, stop_hook_active=False)
    assert running.end().stdout == ""
    assert agent.hook("Stop").answer["decision"] == "block"


def test_first_stop_second_stop(agent: Client, peer: Client) -> None:
    """Block if any; after processing, allow exit."""
    its = subagent(agent)
    peer.send(f"{agent.name}/explore-1", "One")

    assert agent.hook("SubagentStop", **its, stop_hook_active=False).answer["decision"] == "block"
    peer.send(f"{agent.name}/explore-1", "Two")
    assert agent.hook("SubagentStop", **its, stop_hook_active=True).stdout == ""


# -- SessionStart Hook ---------------------------------------------------------------------------------


def test_exports_session_id(home: DaemonHome, agent: Client) -> None:
    """Writes CLAUDE_SESSION_ID to $CLAUDE_ENV_FILE."""
    file = home.folder / f"env-{agent.session}"
    file.write_text("export KEPT=1\n")
    agent.env["CLAUDE_ENV_FILE"] = str(file)

    agent.hook("SessionStart", source="startup")

    script = f". {shlex.quote(str(file))}; env"
    told = agent.start(["sh", "-c", script], b"").end().stdout.splitlines()
    assert f"CLAUDE_SESSION_ID={agent.session}" in told
    assert "KEPT=1" in told


def test_sends_heartbeat(agent: Client) -> None:
    """Marks the agent as active with --session-start."""
    before = seen(agent)
    agent.fairlead("heartbeat", "--session-start")
    assert seen(agent) > before
    listed = json.loads(agent.fairlead("agents", "--json").stdout)["agents"]
    assert next(one["presence"] for one in listed if one["name"] == agent.name) == "active"


def test_checks_for_mail(agent: Client, peer: Client, user: Process) -> None:
    """In the document's words, as context."""
    user.mail("send", agent.name, "--subject", "Deploy fix to production", "--urgent")
    peer.send(agent.name, "Code review complete")

    told = context(agent.hook("SessionStart", source="resume"))

    assert told.splitlines()[:5] == [
        "📬 You have 2 unread messages:",
        '- From: User (urgent) - "Deploy fix to production"',
        f'- From: {peer.name} - "Code review complete"',
        "",
        "Use `fairlead inbox` to read full messages.",
    ]


def test_empty_silent_continue(agent: Client) -> None:
    done = agent.hook("SessionStart", source="resume")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")


# -- UserPromptSubmit Hook -----------------------------------------------------------------------------


def test_silent_heartbeat(agent: Client) -> None:
    """Quiet if no messages."""
    before = seen(agent)
    done = agent.hook("UserPromptSubmit", prompt="hello")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert seen(agent) > before


def test_checks_for_new_mail(agent: Client, peer: Client) -> None:
    """In the document's words."""
    peer.send(agent.name, "Build completed successfully")

    told = context(agent.hook("UserPromptSubmit", prompt="hello"))

    assert told.splitlines()[0] == f'📬 New message from {peer.name}: "Build completed successfully"'


# -- PreCompact Hook -----------------------------------------------------------------------------------


def test_saves_identity(agent: Client) -> None:
    name = agent.name
    agent.hook("PreCompact", trigger="manual")
    agent.fairlead("identity", "save")
    assert name in agent.fairlead("identity", "restore").stdout


def test_records_heartbeat(agent: Client) -> None:
    before = seen(agent)
    agent.hook("PreCompact", trigger="auto")
    assert seen(agent) > before


def test_outputs_status(agent: Client, peer: Client) -> None:
    """A summary for the context after compaction: who it is, and what waits for it."""
    sent = peer.send(agent.name, "Please answer", "What is the port?", "--request")
    agent.hook("UserPromptSubmit", prompt="hello")
    agent.hook("PreCompact", trigger="auto")

    told = context(agent.hook("SessionStart", source="compact"))

    assert agent.name in told
    assert f"{sent['id']}" in told
    assert "Please answer" in told


# -- Hook Input Format ---------------------------------------------------------------------------------


def test_all_hooks_receive_json_input_via_stdin(home: DaemonHome) -> None:
    """The document's own payload, which names neither folder nor transcript."""
    payload = b'{"session_id": "abc123-def456", "stop_hook_active": false, "hook_type": "Stop"}'
    assert home.hook("Stop", payload).answer["decision"] == "block"


def test_session_id(agent: Client, peer: Client) -> None:
    """Critical for agent identity."""
    assert agent.name != peer.name
    again = json.loads(agent.fairlead("identity", "current", "--session-id", agent.session, "--json").stdout)
    assert again["agent"]["name"] == agent.name


# -- Agent Lifecycle -----------------------------------------------------------------------------------


def test_agent_lifecycle(agent: Client, peer: Client) -> None:
    """The whole sequence, from the start to the end by the person."""
    peer.send(agent.name, "Pending")
    assert "Pending" in context(agent.hook("SessionStart", source="resume"))
    assert agent.hook("UserPromptSubmit", prompt="work").stdout == ""
    peer.send(agent.name, "More")
    assert "More" in agent.hook("Stop").answer["reason"]
    task(agent, 1, "in_progress")
    assert "#1 [in_progress]" in agent.hook("Stop", stop_hook_active=True).answer["reason"]
    task(agent, 1, "completed")
    assert "heartbeat" in agent.hook("Stop", stop_hook_active=True).answer["reason"]
    assert agent.hook("SessionEnd", reason="prompt_input_exit").exit_code == 0
    listed = json.loads(peer.fairlead("agents", "--json").stdout)["agents"]
    assert agent.session not in {one.get("session") for one in listed if one["presence"] != "offline"}


# -- Session ID Flow -----------------------------------------------------------------------------------


def test_session_id_flow(home: DaemonHome, agent: Client) -> None:
    """From the hook's input by the env file to every command, and from there to the identity."""
    file = home.folder / f"flow-{agent.session}"
    agent.env["CLAUDE_ENV_FILE"] = str(file)
    agent.hook("SessionStart", source="startup")

    script = f". {shlex.quote(str(file))}; unset CLAUDE_CODE_SESSION_ID; exec {FAIRLEAD} identity current --json"
    told = agent.start(["sh", "-c", script], b"").end()

    assert json.loads(told.stdout)["agent"]["name"] == agent.name


# -- Troubleshooting and Debugging ---------------------------------------------------------------------


def test_poll_session_id_format_hook(agent: Client, peer: Client) -> None:
    peer.send(agent.name, "Found")

    told = agent.fairlead("poll", "--session-id", agent.session, "--format", "hook", "--verbose")

    assert told.answer["decision"] == "block"
    assert "Found" in told.answer["reason"]


def test_identity_current_session_id(agent: Client, user: Process) -> None:
    assert agent.name in user.fairlead("identity", "current", "--session-id", agent.session).stdout


def test_manual_hook_testing(home: DaemonHome) -> None:
    """Each hook can be run by hand with nothing but a session id."""
    payload = b'{"session_id": "test-123"}'
    assert home.hook("SessionStart", payload).exit_code == 0
    assert home.hook("Stop", payload).answer["decision"] == "block"


def test_check_hook_registration(installed: dict[str, Any]) -> None:
    """The programs that are registered exist."""
    for name in HOOKED:
        (program,) = {hook["command"] for group in installed["hooks"][name] for hook in group["hooks"]}
        assert program.endswith("fairlead-hook")


# -- Architecture Notes and Configuration --------------------------------------------------------------


def test_hook_timeout(installed: dict[str, Any]) -> None:
    """Explicitly set, and the wait of 570 seconds stays below it. It is longer than 600, for checks may take longer."""
    (timeout,) = {hook["timeout"] for group in installed["hooks"]["Stop"] for hook in group["hooks"]}
    assert timeout >= 600


def test_settings_json(installed: dict[str, Any]) -> None:
    """Every entry is a command, in a group."""
    for name in HOOKED:
        for group in installed["hooks"][name]:
            assert all(hook["type"] == "command" for hook in group["hooks"])
