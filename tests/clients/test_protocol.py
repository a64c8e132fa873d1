"""What a client is: Claude Code fulfils it, and so does a second client that is one file and one line."""

from __future__ import annotations

import ast
import json
import re
import sys
import venv
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import pytest
from daemon.clients import client
from daemon.daemon_home import LAUNCHER, scratch_home, until

import fairlead
from fairlead import clients
from fairlead.clients import (
    PathAccess,
    ToolCall,
    UnknownClientError,
    client_in,
    client_named,
    client_or_default,
    known_clients,
)
from fairlead.clients.protocol import Client, SubagentRequest, ToolKind
from fairlead.events import HookEvent, HookOutput, PreToolUse, parse
from fairlead.policy import Guards
from fairlead.testing import make, samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.clients import Client as ClientProcess
    from daemon.daemon_home import DaemonHome, Done

CLAUDE = client_named("claude")
SRC = Path(fairlead.__file__).parent
LINE = "[fairlead.clients]\ntoy = clients.toy:CLIENT\n"
"""The whole registration of the second client, as the entry point of a package."""


# -- the registry ----------------------------------------------------------------------------------------


def test_a_client_is_found_by_its_name() -> None:
    assert (CLAUDE.name, CLAUDE.title) == ("claude", "Claude Code")
    assert client_named("claude") is CLAUDE
    assert list(known_clients()) == [CLAUDE]
    with pytest.raises(UnknownClientError, match="expected one of claude, got 'nobody'"):
        client_named("nobody")


def test_a_client_is_registered_by_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(clients.CLIENTS, "toy", "clients.toy:CLIENT")
    monkeypatch.setattr(clients, "_loaded", {})

    assert client_named("toy").title == "Toy"
    assert [client.name for client in known_clients()] == ["claude", "toy"]
    assert client_in({"TOY_CONVERSATION": "c1"}).name == "toy"
    assert clients.session_in({"TOY_CONVERSATION": "c1"}) == "c1"


def test_a_session_of_a_client_that_is_gone_has_tools_of_no_kind() -> None:
    gone = client_or_default("gone")

    assert (gone.kind_of("Bash"), gone.path_of({"path": "x"}), gone.find_sessions()) == ("other", "x", [])
    assert client_or_default("gone") is gone


def test_guards_deny_a_call_of_a_client_that_is_not_known() -> None:
    event = make(PreToolUse, tool_name="Edit", tool_input={"file_path": "x"})
    with pytest.raises(UnknownClientError):
        Guards(()).check(Client().own(event))


# -- Claude Code -----------------------------------------------------------------------------------------


def test_every_part_of_the_protocol_is_fulfilled() -> None:
    """What is left to the defaults is the same for Claude Code: its vocabulary of events is ours."""
    own = {name for name in vars(type(CLAUDE)) if not name.startswith("_")}
    parts = {name for name in vars(Client) if not name.startswith("_")}

    assert own <= parts
    assert parts - own == {
        *("event_names", "event_named", "parse", "own", "is_gate", "refuse", "kind_of", "command_keys", "tool_input"),
        *("mcp_prefix", "agent_transcript", "may_change_files"),
    }


KINDS: dict[str, ToolKind] = {
    "Bash": "shell",
    "Write": "file_write",
    "Edit": "file_write",
    "Read": "file_read",
    "Agent": "spawn",
    "TaskCreate": "other",
    "TaskUpdate": "other",
    "EnterWorktree": "other",
    "ExitWorktree": "other",
    "mcp__elic__ask": "other",
    "mcp__elic__boom": "other",
}


def test_every_tool_in_a_recorded_payload_has_a_kind() -> None:
    recorded = [event for event in samples() if event.tool_name]
    for file in (Path(__file__).parents[1] / "payloads").rglob("*.json"):
        recorded += [event for event in read_events(json.loads(file.read_text("utf-8"))) if event.tool_name]

    assert {event.tool_name: CLAUDE.kind_of(event.tool_name or "") for event in recorded} == KINDS
    for event in recorded:
        call = CLAUDE.tool_call(event.tool_name or "", getattr(event, "tool_input", {}))
        assert (call.kind, call.command is not None) == (KINDS[event.tool_name or ""], event.tool_name == "Bash")


def read_events(document: Any) -> list[Any]:
    if isinstance(document, list):
        return [event for item in document for event in read_events(item)]
    return [parse(document)] if isinstance(document, dict) and "hook_event_name" in document else []


@pytest.mark.parametrize(
    ("tool", "tool_input", "call"),
    [
        ("Bash", {"command": "ls"}, ToolCall("shell", command="ls")),
        ("Edit", {"file_path": "/a"}, ToolCall("file_write", (PathAccess("/a"),))),
        ("NotebookEdit", {"notebook_path": "/n"}, ToolCall("file_write", (PathAccess("/n"),))),
        ("Read", {"file_path": "/a"}, ToolCall("file_read", (PathAccess("/a", "read"),))),
        ("Glob", {"path": "/d", "pattern": "*"}, ToolCall("search", (PathAccess("/d", "list"),))),
        (
            "Grep",
            {"path": "/d", "glob": "*.{js,ts}"},
            ToolCall(
                "search",
                tuple(PathAccess(path, "read", below=True, among=("*.js", "*.ts")) for path in ("/d", "/d/*.{js,ts}")),
            ),
        ),
        ("WebFetch", {"url": "https://x"}, ToolCall("fetch")),
        (
            "Task",
            {"subagent_type": "Explore", "description": "look"},
            ToolCall("spawn", subagent=SubagentRequest("Explore", "Explore", "look")),
        ),
        (
            "Agent",
            {"name": "scout"},
            ToolCall("spawn", subagent=SubagentRequest("general-purpose", "scout")),
        ),
        ("Grep", {"pattern": "KEY"}, ToolCall("search", (PathAccess(".", "read", below=True),))),
        ("WebFetch", {"url": "file:///a%20b"}, ToolCall("fetch", (PathAccess("/a b", "read"),))),
        ("TodoWrite", {"todos": [{"content": "/a"}]}, ToolCall()),
        ("mcp__fs__read_file", {"path": "/a"}, ToolCall(paths=(PathAccess("/a", "read"),))),
        (
            "mcp__fs__move",
            {"source": "/a", "destination": "file:///b"},
            ToolCall(paths=(PathAccess("/a", "move"), PathAccess("/b"))),
        ),
        ("mcp__sh__run", {"command": "ls"}, ToolCall(command="ls")),
        ("Newer", {"files": ["/a", "https://x", 3]}, ToolCall(paths=(PathAccess("/a", "any"),))),
    ],
)
def test_a_tool_call_has_a_normal_form(tool: str, tool_input: dict[str, Any], call: ToolCall) -> None:
    assert CLAUDE.tool_call(tool, tool_input) == call


@pytest.mark.parametrize(("tool", "tool_input"), [("Bash", {}), ("Bash", {"command": 3}), ("Edit", {"file_path": []})])
def test_a_call_of_another_shape_is_an_error_so_that_the_gate_denies(tool: str, tool_input: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        CLAUDE.tool_call(tool, tool_input)


def test_an_example_call_is_the_reverse_of_its_normal_form() -> None:
    for tool, kind in CLAUDE.tool_kinds.items():
        if kind in {"shell", "file_write", "file_read"}:
            call = CLAUDE.tool_call(tool, CLAUDE.tool_input(tool, command="ls", path="/a"))
            paths = [access.path for access in call.paths]
            assert (call.command, paths) == (("ls", []) if kind == "shell" else (None, ["/a"]))
    assert set(CLAUDE.tool_kinds.values()) == set(get_args(ToolKind))


def test_what_the_client_can_block_is_what_its_answers_block() -> None:
    for event in HookEvent:
        fields = {"session_id": "s", "hook_event_name": event.value, "agent_id": "a", "agent_type": "t", "error": "e"}
        made = parse({**fields, "tool_name": "Bash", "tool_input": {}, "prompt": "p"})
        answer = CLAUDE.render(made, HookOutput.block("why"))
        document = json.loads(answer.stdout or b"{}")
        specific = document.get("hookSpecificOutput", {})
        decides = {"decision", "permissionDecision"} & (document.keys() | specific.keys())

        assert (answer.exit_code == 2) == (event.value in CLAUDE.capabilities.blocks_by_exit_code), event
        assert bool(decides or answer.exit_code == 2) == (event.value in CLAUDE.capabilities.blocks), event
    assert "SubagentStart" not in CLAUDE.capabilities.blocks


def test_the_launcher_sends_the_variables_that_the_daemon_reads() -> None:
    variables = CLAUDE.variables
    wanted = {variables.project_dir, variables.config_dir, variables.env_file, *variables.while_waiting}
    for file in ("request.c", "hook.py"):
        text = (SRC.parents[1] / "launcher" / file).read_text("utf-8")
        assert {name for name in wanted if not re.search(rf"\b{name}\b", text)} == set(), file


# -- a second client -------------------------------------------------------------------------------------


@cache
def python_with_toy(folder: Path) -> str:
    """A Python in which the second client is installed: one file, and one line."""
    venv.create(folder, with_pip=False, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    paths = [str(SRC.parent), str(Path(__file__).parents[1]), *(path for path in sys.path if "site-packages" in path)]
    (site / "paths.pth").write_text("\n".join(paths))
    package = site / "toy-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(LINE)
    return str(folder / "bin/python")


@pytest.fixture(scope="session")
def python(tmp_path_factory: pytest.TempPathFactory) -> str:
    return python_with_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home in which an event starts a daemon."""
    with scratch_home() as made:
        made.policy("preToolUse:\n  uneditableFiles:\n    - protected.txt\n")
        (made.project / "protected.txt").touch()
        yield made


class ToyAgent:
    """One conversation of the second client: a process that starts hooks through the real launcher."""

    def __init__(self, home: DaemonHome, python: str, process: ClientProcess | None = None) -> None:
        self.home = home
        self.python = python
        self.process = process

    def hook(self, event: str, kind: str, **fields: object) -> Done:
        """Start the hook as the client would: with our name of the event, and the client's payload."""
        payload, words = self.payload(kind, **fields), ["--client", "toy", "--python", self.python]
        if self.process is None:
            return self.home.hook(event, payload, *words)
        return self.process.start([str(LAUNCHER), event, *words], payload).end()

    def payload(self, kind: str, **fields: object) -> bytes:
        return json.dumps({"type": kind, "conversation": "c1", "dir": str(self.home.project), **fields}).encode()

    def mail_name(self) -> str:
        """The name by which others write to it."""
        until(lambda: self.home.ask("GET", "/v1/mail/agents?all=true")["agents"], "the agent is known")
        return str(self.home.ask("GET", "/v1/mail/agents?all=true")["agents"][0]["name"])

    def tool(self, name: str, **args: object) -> dict[str, Any]:
        """Ask for permission to call a tool; return the client's answer."""
        done = self.hook("PreToolUse", "before_tool", tool={"name": name, "args": args}, call=f"call-{name}")
        assert (done.exit_code, done.stderr) == (0, "")
        return done.answer


@pytest.fixture
def toy(home: DaemonHome, python: str) -> Iterator[ToyAgent]:
    """A conversation whose first event was decided without a daemon, and started one."""
    with client(home, "c1") as process:
        agent = ToyAgent(home, python, process)
        assert agent.hook("SessionStart", "opened").exit_code == 0
        until(home.has_mail, "the daemon has opened the mail")
        yield agent


def test_its_own_write_tool_is_blocked_on_a_protected_file(toy: ToyAgent) -> None:
    answer = toy.tool("write_file", target="protected.txt")

    assert answer["verdict"] == "no"
    assert answer["because"].startswith("Blocked write_file operation: file matches preToolUse.uneditableFiles pattern")
    assert toy.tool("write_file", target="src/other.txt") == {}
    assert toy.tool("show_file", target="protected.txt") == {}


def test_its_shell_tool_cannot_remove_the_protected_file(toy: ToyAgent) -> None:
    assert toy.tool("run_shell", line="ls && rm -f ./protected.txt")["verdict"] == "no"
    assert toy.tool("run_shell", line="echo x > src/other.txt") == {}


def test_each_path_of_its_tools_is_judged_by_what_is_done_to_it(toy: ToyAgent) -> None:
    assert toy.tool("convert", target="protected.txt", into="src/other.txt") == {}
    assert toy.tool("convert", target="src/other.txt", into="protected.txt")["verdict"] == "no"
    assert toy.tool("patch", text="*** Begin Patch\n*** Add File: src/a.txt\n+x\n*** End Patch") == {}
    moved = "*** Update File: src/a.txt\n*** Move to: protected.txt\n@@\n"
    assert toy.tool("patch", text=moved)["verdict"] == "no"
    assert toy.tool("patch", text="*** Delete File: protected.txt")["verdict"] == "no"


def test_it_cannot_change_the_settings_of_any_client(toy: ToyAgent) -> None:
    for name in (".claude/settings.json", ".fairlead.yaml"):
        assert "preToolUse.protectOwnFiles" in toy.tool("write_file", target=name)["because"]


def test_the_same_is_decided_without_a_daemon(home: DaemonHome, python: str) -> None:
    toy = ToyAgent(home, python)
    home.env["FAIRLEAD_NO_DAEMON"] = "1"
    payload = toy.payload("before_tool", tool={"name": "write_file", "args": {"target": "protected.txt"}})

    assert toy.tool("write_file", target="protected.txt")["verdict"] == "no"
    done = home.run([python, "-m", "fairlead", "PreToolUse", "--client", "toy"], payload)
    assert (done.exit_code, done.answer["verdict"]) == (0, "no")


def test_its_events_are_in_the_journal_in_our_vocabulary(toy: ToyAgent, home: DaemonHome) -> None:
    toy.tool("write_file", target="protected.txt")

    until(lambda: len(home.happened()) == 2, "both events are in the journal")
    first, second = home.happened()
    assert (first.event, first.client, first.session, first.route) == ("SessionStart", "toy", "c1", "cold")
    assert (second.event, second.client, second.session, second.route) == ("PreToolUse", "toy", "c1", "daemon")
    assert (second.tool, second.verdict) == ("write_file", "blocked")
    assert json.loads(bytes(second.payload))["type"] == "before_tool"


def test_its_session_is_listed_and_survives_the_daemon(toy: ToyAgent, home: DaemonHome) -> None:
    def state() -> dict[str, Any]:
        sessions = home.ask("GET", "/v1/sessions")["sessions"]
        return next((session for session in sessions if session["id"] == "c1"), {})

    assert toy.hook("UserPromptSubmit", "asked", text="write it").stdout == ""
    toy.tool("write_file", target="src/other.txt")
    until(lambda: state().get("evidence", {}).get("tool") == "write_file", "the call is known")
    assert (state()["client"], state()["cwd"], state()["first_prompt"]) == ("toy", str(home.project), "write it")
    assert state()["evidence"]["path"] == "src/other.txt"

    toy.hook(
        "PostToolUse", "after_tool", tool={"name": "write_file", "args": {}, "out": "done"}, call="call-write_file"
    )
    toy.hook("Stop", "turn_done")
    until(lambda: "state" not in state(), "the turn is over, and idle is the default")
    assert "c1" in home.run([toy.python, "-m", "fairlead", "sessions", "--json"], b"").stdout


def test_mail_is_shown_to_it(toy: ToyAgent, home: DaemonHome) -> None:
    assert home.fairlead("send", toy.mail_name(), "--subject", "Lunch?").exit_code == 0

    assert "Lunch?" in toy.hook("UserPromptSubmit", "asked", text="go on").answer["note"]
    assert toy.hook("UserPromptSubmit", "asked", text="go on").stdout == ""


def test_mail_keeps_it_going_at_the_end_of_a_turn(toy: ToyAgent, home: DaemonHome) -> None:
    assert home.fairlead("send", toy.mail_name(), "--subject", "Wait!").exit_code == 0

    assert "Wait!" in toy.hook("Stop", "turn_done").answer["because"]


def test_the_policys_commands_read_our_vocabulary(toy: ToyAgent, home: DaemonHome) -> None:
    home.policy("stop:\n  commands:\n    - run: cat > seen.json; exit 1\n      message: not yet\n")

    done = toy.hook("Stop", "turn_done")

    assert done.answer["because"].startswith("not yet")
    seen = json.loads((home.project / "seen.json").read_text("utf-8"))
    assert seen == {"session_id": "c1", "cwd": str(home.project), "hook_event_name": "Stop"}


def test_a_payload_that_cannot_be_read_is_refused_in_its_dialect(toy: ToyAgent, home: DaemonHome) -> None:
    for python in ([], ["--python", toy.python]):
        done = home.hook("PreToolUse", b'{"type": "before_tool"', "--client", "toy", *python)
        assert (done.exit_code, done.answer["verdict"]) == (0, "no"), python
    assert home.hook("Stop", b"{}", "--client", "toy", "--python", toy.python).exit_code == 1


def test_it_does_not_wait_at_the_end_of_a_turn(toy: ToyAgent, home: DaemonHome) -> None:
    """Its capabilities say that a hook there is not waited for."""
    home.policy("mail:\n  stay: always\n")

    assert toy.hook("Stop", "turn_done") == toy.hook("Stop", "turn_done")


def test_without_its_line_it_is_unknown_and_the_gate_is_shut(home: DaemonHome) -> None:
    payload = ToyAgent(home, "").payload("before_tool", tool={"name": "write_file", "args": {}})

    done = home.hook("PreToolUse", payload, "--client", "toy", "--python", sys.executable)

    assert (done.exit_code, done.stdout) == (2, "")
    assert "--client: expected one of claude, got 'toy'" in done.stderr


# -- nobody else knows Claude Code -----------------------------------------------------------------------

ALLOWED = {
    "cli/demo/team.py": "plays a session of Claude Code, as an example",
    "sessions/transitions/_activity.py": "the label of a subagent without a type is `Agent`",
}
"""Modules outside of `clients` that may name a tool, file or variable of Claude Code, and why."""

COMMON = {"Agent", "Bash", "Edit", "Glob", "Grep", "LS", "LSP", "Monitor", "Read", "Skill", "Task", "Write"}
"""Tools whose names are also words: only a text that is nothing else is meant."""


def test_no_other_package_knows_claude_code() -> None:
    found = {str(path.relative_to(SRC)): names for path in sorted(SRC.rglob("*.py")) if (names := knowledge(path))}

    assert {name: names for name, names in found.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "no longer needed"


def knowledge(path: Path) -> list[str]:
    """The names of Claude Code in a module: in its texts, but not in its documentation.

    The texts of commands may name a file, as an example for people.
    """
    if path.is_relative_to(SRC / "clients"):
        return []
    tree = ast.parse(path.read_text("utf-8"))
    exports = {"__all__", "__getattr__"}
    skipped = {
        id(node)
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Expr)
        or (isinstance(statement, ast.Assign) and exports & {getattr(name, "id", "") for name in statement.targets})
        for node in ast.walk(statement)
        if isinstance(statement, ast.Assign) or statement.value is node
    }
    texts = [
        str(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and id(node) not in skipped
    ]
    names = [r"CLAUDE[A-Z_]*", *sorted(set(CLAUDE.tool_kinds) - COMMON)]
    files = [] if path.is_relative_to(SRC / "cli") else [r"\.claude\b", r"settings(\.local)?\.json", "Claude ?Code"]
    pattern = re.compile("|".join([*(rf"\b{name}\b" for name in names), *files]))
    return [text for text in texts if text in COMMON or pattern.search(text)]
