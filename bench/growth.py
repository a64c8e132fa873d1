"""Growth: the daemon's start, an event and the commands, with few and with many messages and events kept."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from contextlib import ExitStack, closing
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING

from bench import user_hooks
from bench._harness import Timing, wall_time
from bench._home import Clients, Home, daemon, scratch_home
from bench._peers import OTHER, SESSION
from bench._table import Row, Target
from bench.launcher import LAUNCHER
from bench.peers import POLICY as CHECKS
from bench.without_daemon import PYTHON
from fairlead.events import parse
from fairlead.ipc import request
from fairlead.journal import Journal, event_record
from fairlead.mail import Draft, MessageService
from fairlead.store import MailStore
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from bench._harness import Effort, Variant
    from bench._home import Daemon

FEW, MANY = 1_000, 1_000_000
QUICK_FEW, QUICK_MANY = 100, 2_000
_BATCH = 500
_UNREAD = 20
_FEED_TIMEOUT = 1_200.0
_BODY = "What was found, in a few lines.\n" * 4
_POLL_INTERVAL = 0.1
EVENTS = ("PreToolUse, Edit", "PreToolUse, a user hook", "Stop, one command", "SubagentStop, one command")
COMMANDS: dict[str, list[str]] = {
    "send": ["--subject", "x", "Hello."],
    "inbox": [],
    "inbox --search": ["needle"],
    "poll": ["--format", "context"],
    "heartbeat": [],
    "status": [],
    "agents": [],
    "sessions": [],
    "events --last 20": [],
}
"""The commands that are timed, with further arguments."""


def rows(effort: Effort) -> list[Row]:
    few, many = (QUICK_FEW, QUICK_MANY) if effort.is_quick else (FEW, MANY)
    with ExitStack() as stack:
        kept = {size: stack.enter_context(scratch_home()) for size in (few, many)}
        starts = {size: _filled(home, size, effort) for size, home in kept.items()}
        clients = stack.enter_context(Clients())
        variants: dict[str, Variant] = {}
        for size, home in kept.items():
            server = stack.enter_context(daemon(home))
            names = {session: _begin(home, server, clients, session) for session in (OTHER, SESSION)}
            timed = {**_events(home), **_commands(home, names[OTHER])}
            variants |= {f"{name} {size}": variant for name, variant in timed.items()}
        times = effort.compare_processes(variants)
    flat = Target("ratio", 1.3)
    growth = [
        Row("growth", name, "ms", times[f"{name} {many}"], _same(few), times[f"{name} {few}"], target=flat)
        for name in (*EVENTS, *COMMANDS)
    ]
    what = f"daemon start to its first answer, {many} events kept and not yet in the store"
    return [Row("growth", what, "ms", starts[many], _same(few), starts[few], target=Target("time", 300)), *growth]


def _same(few: int) -> str:
    return f"the same with {few}"


def _filled(home: Home, size: int, effort: Effort) -> Timing:
    """Store `size` events and messages; return how long the daemon takes to start with events to catch up on."""
    effort.tick(f"writing {size} events and messages")
    _write_events(home, size)
    _write_mail(home, size)
    start = perf_counter()
    with daemon(home) as server:
        seconds = perf_counter() - start
        deadline = monotonic() + _FEED_TIMEOUT
        while server.behind():
            if monotonic() > deadline:
                raise RuntimeError(f"{server.behind()} bytes of the journal are not in the store yet")
            effort.tick(f"{server.behind()} bytes of {size} events to store")
            sleep(_POLL_INTERVAL)
    return Timing(seconds, seconds)


def _write_events(home: Home, size: int) -> None:
    payload = json.dumps(make_payload("PostToolUse", cwd=str(home.project()), session_id=SESSION)).encode()
    event = parse(payload)
    with closing(Journal(str(home.folder / "state/journal"))) as journal:
        for number in range(size):
            name = f"{0x18000000000000 + number:016x}-1"
            journal.append(
                event_record(
                    name, "PostToolUse", payload, event, client="claude", route="daemon", verdict="none", exit_code=0
                )
            )


def _write_mail(home: Home, size: int) -> None:
    """Send the messages in batches, and mark all but the last few as read."""
    database = home.folder / "state/mail.db"
    with closing(MailStore.open(f"sqlite:///{database}")) as store:
        service = MessageService(store)
        sender, me = (service.ensure_agent(session, project=str(home.project())) for session in (OTHER, SESSION))
        for start in range(0, size, _BATCH):
            numbers = range(start, min(size, start + _BATCH))
            drafts = [Draft(to=(me.name,), subject=f"message {number}", body=_BODY) for number in numbers]
            service.send_many([(sender, draft) for draft in drafts])
    with closing(sqlite3.connect(database)) as disk, disk:
        disk.execute(
            "UPDATE mail_letters SET stage = 'read', shown = queued, read = queued"
            " WHERE message <= (SELECT max(message) FROM mail_letters) - ?",
            (_UNREAD,),
        )


def _begin(home: Home, server: Daemon, clients: Clients, session: str) -> str:
    """Start a session, and return its agent's name."""
    payload = json.dumps(make_payload("SessionStart", cwd=str(home.project()), session_id=session)).encode()
    client = os.getpid() if session == SESSION else clients.pid_of(f"{home.folder} {session}")  # runs the commands
    env = {**home.environment(), "CLAUDE_PID": str(client)}
    command = [str(LAUNCHER), "SessionStart", "--python", PYTHON]
    subprocess.run(command, env=env, input=payload, stdout=subprocess.DEVNULL, check=True, cwd=home.project())
    agents = request("GET", "/v1/mail/agents?all=true", at=server.socket)["agents"]
    return str(next(agent["name"] for agent in agents if agent["session"] == session))


def _events(home: Home) -> dict[str, Variant]:
    checks = home.project(1)
    (checks / ".fairlead.yaml").write_text(CHECKS)
    own = user_hooks.project(home)
    edit = {"tool_name": "Edit", "tool_input": {"file_path": str(home.project() / "src/main.py")}}
    payloads = {
        "PreToolUse, Edit": make_payload("PreToolUse", cwd=str(home.project()), **edit),
        "PreToolUse, a user hook": make_payload(
            "PreToolUse", cwd=str(own), tool_name="Bash", tool_input={"command": "git status"}
        ),
        "Stop, one command": make_payload("Stop", cwd=str(checks), session_id="checks"),
        "SubagentStop, one command": make_payload("SubagentStop", cwd=str(checks), session_id="checks"),
    }
    variants: dict[str, Variant] = {}
    for name, payload in payloads.items():
        stdin = home.folder / f"{name}.json"
        stdin.write_text(json.dumps(payload))
        words = [str(LAUNCHER), name.partition(",")[0], "--python", PYTHON]
        variants[name] = wall_time(words, stdin=stdin, env=home.environment())
    return variants


def _commands(home: Home, recipient: str) -> dict[str, Variant]:
    env, program = home.environment(), str(LAUNCHER.with_name("fairlead"))
    variants: dict[str, Variant] = {}
    for name, rest in COMMANDS.items():
        words = name.split()
        to = [recipient] if name == "send" else []
        me = [] if words[0] in {"sessions", "events"} else ["--session", SESSION]
        variants[name] = wall_time([program, words[0], *to, *words[1:], *rest, *me], env=env)
    return variants
