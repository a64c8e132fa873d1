"""A capability is a file and a registration: adding one adds it, removing one removes it and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic, sleep, time
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

import fairlead
from fairlead.daemon.events._extension import EventExtension, ExtensionRegistry
from fairlead.daemon.leases._file import LeaseFile
from fairlead.ipc import DaemonUnavailable, request
from fairlead.journal import CommandsRecord, EventRecord
from fairlead.leases import Holder, Lease
from fairlead.policy import write_trusted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.events import Event

TIMEOUT = 30.0
REGISTRATION = "daemon/events/extensions/__init__.py"
CAPABILITIES = (
    *("policy", "user_hooks", "leases", "environment", "integrity", "mail", "answers", "presence", "sessions"),
    "metrics",
)
"""All but the list of shell calls, which needs a client and its shells: tests/daemon/test_who.py."""
NEEDED_BY = {"policy": {"leases"}}
"""Leases are compared with the changes that the guards of the policy find in a call."""
POLICY = """\
preToolUse: {protectOwnFiles: false, uneditableFiles: ["locked.txt"]}
hooks: [user_hooks.py]
leases: block
"""
USER_HOOKS = """\
from fairlead import HookManager, HookOutput, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, matcher="Grep")
def no_searches(event):
    return HookOutput.deny("no searches")
"""
START = "import sys; sys.path.insert(0, sys.argv[1]); from fairlead.daemon.command import main; sys.exit(main([]))"
TOY = '''\
"""A gate that blocks one tool."""

from fairlead.daemon.events._extension import EventExtension
from fairlead.decide import Decision
from fairlead.events import HookOutput


def create(daemon):
    return Toy()


class Toy(EventExtension):
    kind = "gate"
    events = frozenset({"PreToolUse"})

    def __init__(self):
        self.recorded = 0

    def before_reply(self, context):
        if context.event.tool_name == "Toy":
            return Decision(output=HookOutput.deny(f"no toys; {self.recorded} events before"))

    def after_record(self, record, event):
        self.recorded += 1
'''


class Tree(NamedTuple):
    """A copy of the sources, and a home for a daemon that runs from it."""

    source: Path
    home: Path

    def edit(self, old: str, new: str) -> None:
        """Change one line of the registration."""
        file = self.source / "fairlead" / REGISTRATION
        text = file.read_text("utf-8")
        assert text.count(old) == 1
        file.write_text(text.replace(old, new), "utf-8")

    @contextmanager
    def daemon(self) -> Iterator[None]:
        """Run a daemon of this copy."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home), "FAIRLEAD_HOME": str(self.home)}
        command = [sys.executable, "-I", "-c", START, str(self.source)]
        with subprocess.Popen(command, env=env, cwd=self.home, stderr=subprocess.DEVNULL) as process:
            try:
                wait_until((self.home / "run/daemon.sock").exists)
                yield
            finally:
                process.terminate()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Send a request to the daemon."""
        return request(method, path, body, at=str(self.home / "run/daemon.sock"), timeout=TIMEOUT)

    def event(self, name: str, **fields: Any) -> dict[str, Any]:
        """Send an event as an http hook, and return the client's JSON."""
        payload = {"session_id": "s1", "cwd": str(self.home), "hook_event_name": name, **fields}
        answer = self.ask("POST", f"/v1/http/{name}", payload)
        assert isinstance(answer, dict)
        return answer

    def blocks(self, tool: str, **tool_input: str) -> str:
        """Return why a tool call is denied; empty if it is not."""
        answer = self.event("PreToolUse", tool_name=tool, tool_input=tool_input, tool_use_id="t1")
        output = answer.get("hookSpecificOutput", {})
        return str(output.get("permissionDecisionReason", "")) if output.get("permissionDecision") == "deny" else ""


def wait_until(condition: Any) -> None:
    deadline = monotonic() + TIMEOUT
    while not condition():
        assert monotonic() < deadline, "it did not happen in time"
        sleep(0.01)


@pytest.fixture
def tree() -> Iterator[Tree]:
    folder = Path(mkdtemp(prefix="fl", dir="/tmp"))
    try:
        # With what Python has compiled, but for files that other processes are just writing.
        just_written = shutil.ignore_patterns("light.*", "*.pyc.*", "*.tmp*")
        shutil.copytree(Path(fairlead.__file__).parent, folder / "src/fairlead", ignore=just_written)
        (folder / ".fairlead.yaml").write_text(POLICY)
        (folder / "user_hooks.py").write_text(USER_HOOKS)
        (folder / "config.yaml").write_text("attention: {answer: true}\n")
        (folder / "locked.txt").write_text("as it was\n")
        lease = Lease(id=1, path=str(folder / "held/a.txt"), holder=Holder(), since=0.0, until=time() + 3600)
        LeaseFile(str(folder)).write((lease,))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("FAIRLEAD_HOME", str(folder))
            for name in (".fairlead.yaml", "user_hooks.py"):
                write_trusted(str(folder / name), (folder / name).read_bytes())
        yield Tree(folder / "src", folder)
    finally:
        shutil.rmtree(folder)


def capabilities(tree: Tree) -> set[str]:
    """Try each capability once, and return those that work."""
    wait_until(lambda: has_mail(tree))  # else the first event is answered without it on a busy machine
    launched(tree, "SessionStart")
    probes = {
        "environment": (tree.home / "env.sh").exists(),
        "policy": tree.blocks("Write", file_path=str(tree.home / "locked.txt"), content="x"),
        "user_hooks": tree.blocks("Grep", pattern="x") == "no searches",
        "leases": tree.blocks("Write", file_path=str(tree.home / "held/a.txt"), content="x"),
        "integrity": is_reported(tree, "locked.txt"),
        "mail": is_shown(tree, "a letter"),  # at a prompt
        "presence": (tree.home / "presence.json").exists(),
        "answers": b" 303 " in launched(tree, "PermissionRequest", tool_name="Bash", tool_input={"command": "make"}),
        "metrics": tree.ask("GET", "/v1/status")["events"],
        "sessions": any(session["id"] == "s1" for session in tree.ask("GET", "/v1/sessions")["sessions"]),
    }
    return {name for name, works in probes.items() if works}


def is_reported(tree: Tree, name: str) -> bool:
    """Return whether a command is reported that changes a protected file."""
    wait_until(lambda: all(project["ready"] for project in tree.ask("GET", "/v1/status")["integrity"]))
    call = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "b1"}
    tree.event("PreToolUse", **call)
    (tree.home / name).write_text("changed\n")
    return name in json.dumps(tree.event("PostToolUse", **call, tool_response={}))


def is_shown(tree: Tree, subject: str) -> bool:
    """Return whether mail to the session's agent is shown at a prompt."""
    names = [agent["name"] for agent in tree.ask("GET", "/v1/mail/agents?all=true")["agents"] if agent["session"]]
    if names:
        tree.ask("POST", "/v1/mail/send", {"to": names, "subject": subject})
    return subject in json.dumps(tree.event("UserPromptSubmit", prompt="hello"))


def has_mail(tree: Tree) -> bool:
    """Return whether the daemon has opened the mail."""
    try:
        return "agents" in tree.ask("GET", "/v1/mail/agents")
    except DaemonUnavailable:
        return False


def launched(tree: Tree, event: str, **fields: Any) -> bytes:
    """Send an event as a launcher does, with the variables of its client, and return the reply."""
    variables = f"CLAUDE_ENV_FILE={tree.home}/env.sh;HOME={tree.home};FAIRLEAD_HOME={tree.home}"
    document = {"session_id": "s1", "cwd": str(tree.home), "hook_event_name": event, **fields}
    payload = json.dumps(document).encode()
    head = (
        f"POST /v1/events/{event} HTTP/1.1\r\nhost: fairlead\r\nfairlead-cwd: {tree.home}\r\nfairlead-env: {variables}"
        f"\r\nfairlead-version: {fairlead.__version__}\r\nfairlead-id: 1-{event}\r\n"
        f"content-length: {len(payload)}\r\n\r\n"
    )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT)
        connection.connect(str(tree.home / "run/daemon.sock"))
        connection.sendall(head.encode() + payload)
        return connection.recv(65536)


def test_a_toy_extension_is_one_file_and_one_line(tree: Tree) -> None:
    """It is asked as a gate, in the order of the kinds, and hears of the records."""
    (tree.source / "fairlead" / REGISTRATION).with_name("_toy.py").write_text(TOY, "utf-8")
    tree.edit('    "_policy",\n', '    "_policy",\n    "_toy",\n')
    with tree.daemon():
        assert tree.blocks("Toy") == "no toys; 0 events before"
        assert tree.blocks("Read", file_path="x") == ""
        assert tree.blocks("Toy") == "no toys; 2 events before"
        assert capabilities(tree) == set(CAPABILITIES)


@pytest.mark.parametrize("name", CAPABILITIES)
def test_removing_a_registration_removes_that_capability_and_nothing_else(tree: Tree, name: str) -> None:
    tree.edit(f'    "_{name}",\n', "")
    with tree.daemon():
        assert capabilities(tree) == set(CAPABILITIES) - {name, *NEEDED_BY.get(name, ())}


class _Listener(EventExtension):
    """Notes the records of some events, or of all events, and those of commands."""

    def __init__(self, *names: str) -> None:
        self.recorded_events = frozenset(names) or None
        self.noted: list[object] = []

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        self.noted.append(record)
        assert event is None

    def after_commands(self, record: CommandsRecord) -> None:
        self.noted.append(record)


PROMPT, STOP = (EventRecord(id=name, at=1.0, event=name) for name in ("UserPromptSubmit", "Stop"))


def _pass_on(registry: ExtensionRegistry, *records: EventRecord) -> None:
    for record in records:
        for after_record in registry.observers(record.event):
            after_record(record, None)


def test_an_extension_is_passed_only_the_records_that_it_asks_for() -> None:
    registry, some, every = ExtensionRegistry(), _Listener("UserPromptSubmit"), _Listener()
    registry.register(some)
    registry.register(every)
    done = CommandsRecord(id="Stop", at=2.0)
    _pass_on(registry, PROMPT, STOP)
    registry.after_commands(done)
    assert some.noted == [PROMPT, done]
    assert every.noted == [PROMPT, STOP, done]


def test_an_extension_can_ask_for_other_records_later() -> None:
    registry, some = ExtensionRegistry(), _Listener("UserPromptSubmit")
    registry.register(some)
    _pass_on(registry, PROMPT, STOP)
    some.recorded_events = frozenset({"Stop"})
    registry.refresh()
    _pass_on(registry, PROMPT, STOP)
    assert some.noted == [PROMPT, STOP]
