"""Fairlead compared with similar programs, in one run: events, commands, user hooks, and a hundred hooks at once.

All work under the same policy file. `peers.md` says how to get the peers; the row of a missing one says so.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import ExitStack, chdir
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING

from bench._data import HOOKS, PAYLOAD
from bench._harness import ENVIRONMENT, Timing, wall_time
from bench._home import Clients, daemon, scratch_home
from bench._peers import ABSENT, OTHER, SESSION, Command, Hcom, atm_hook, conclaude, find, floor, subtrate_commands
from bench._table import Row, Target
from bench.launcher import LAUNCHER
from bench.without_daemon import BARE, CCHOOKS, PYTHON
from fairlead import HookContext, HookManager, HookOutput, PreToolUse, parse
from fairlead.ipc import request
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bench._harness import Effort
    from bench._home import Daemon, Home

POLICY = """\
preToolUse:
  uneditableFiles: [".env"]
stop:
  commands:
    - run: "true"
subagentStop:
  commands:
    "*":
      - run: "true"
"""
COMMANDS = ("send", "inbox", "poll", "heartbeat", "status", "sessions", "events --last 20")
AT_ONCE = 100
_EDIT = {"tool_name": "Edit", "tool_use_id": "t1"}


def rows(effort: Effort) -> list[Row]:
    with scratch_home() as home, daemon(home) as server, Clients() as clients:
        project = home.project()
        (project / ".fairlead.yaml").unlink()
        (project / ".conclaude.yaml").write_text(POLICY)
        bench = _PeerBench(home, server, clients, project)
        with chdir(project):
            return [*bench.events(effort), *bench.commands(effort), *bench.at_once(effort), *_in_process(effort)]


class _PeerBench:
    """One daemon with two sessions, and the peers that were found."""

    def __init__(self, home: Home, server: Daemon, clients: Clients, project: Path) -> None:
        self._home = home
        self._server = server
        self._project = project
        self._env = home.environment()
        self._clients = clients
        hcom = find("hcom")
        self._hcom = Hcom(hcom, home.folder / "hcom") if hcom else None
        self._payloads = {
            "Edit": self._payload("PreToolUse", **_EDIT, tool_input={"file_path": str(project / "src/main.py")}),
            "Stop": self._payload("Stop"),
            "SubagentStop": self._payload("SubagentStop"),
        }

    def events(self, effort: Effort) -> list[Row]:
        """Time one event, one process, under the same policy."""
        payload = self._payloads["Edit"]
        no_daemon = {**self._home.environment("cold"), "FAIRLEAD_NO_DAEMON": "1"}
        with atm_hook(self._home.folder, payload) as atm, floor(self._home.folder, payload) as asks:
            variants: dict[str, Command | None] = {
                "Edit": self._hook("PreToolUse", payload),
                "Edit, conclaude": conclaude("PreToolUse", payload, self._env),
                "Edit, hcom": self._hcom.hook(payload) if self._hcom else None,
                "Edit, atm": atm,
                "asks": asks,
                "Edit, cchooks": Command(CCHOOKS, self._env, payload) if find_spec("cchooks") else None,
                "Edit, no daemon": Command([str(LAUNCHER), "PreToolUse", "--python", PYTHON], no_daemon, payload),
                "python": Command(BARE, self._env, payload),
                "shell": Command(["/bin/sh", "-c", "true"], self._env),
            }
            for event in ("Stop", "SubagentStop"):
                variants[event] = self._hook(event, self._payloads[event])
                variants[f"conclaude {event}"] = conclaude(event, self._payloads[event], self._env)
            times = _timed(effort, variants)
        edit, cold = "PreToolUse, Edit", "PreToolUse, Edit, no daemon"
        return [
            Row("peers", edit, "ms", times["Edit"], _ASKS, times.get("asks"), target=_TWICE, absent="needs musl-gcc"),
            _row(edit, times["Edit"], "conclaude", times.get("Edit, conclaude")),
            _row(edit, times["Edit"], "hcom, a session that it knows", times.get("Edit, hcom")),
            _row(edit, times["Edit"], "atm-hook", times.get("Edit, atm")),
            _row("Stop, one command", times["Stop"], "conclaude", times.get("conclaude Stop"), 4.5),
            _row("Stop, one command", times["Stop"], "sh -c true", times["shell"]),
            _row(
                "SubagentStop, one command",
                times["SubagentStop"],
                "conclaude",
                times.get("conclaude SubagentStop"),
                4.5,
            ),
            _row(cold, times["Edit, no daemon"], "conclaude", times.get("Edit, conclaude")),
            _row(cold, times["Edit, no daemon"], "cchooks", times.get("Edit, cchooks")),
            Row("peers", cold, "ms", times["Edit, no daemon"], _BARE, times["python"], target=Target("ratio", 1.5)),
        ]

    def commands(self, effort: Effort) -> list[Row]:
        """Time the commands that agents run."""
        with ExitStack() as stack:
            theirs = {
                "hcom": self._hcom.commands() if self._hcom else {},
                "Subtrate": stack.enter_context(subtrate_commands(self._home.folder / "subtrate")),
            }
            variants: dict[str, Command | None] = {
                name: Command(words, self._env) for name, words in self._ours().items()
            }
            for peer, commands in theirs.items():
                variants |= {f"{name}, {peer}": command for name, command in commands.items()}
            times = _timed(effort, variants)
        rivals = {"hcom": ("send", "inbox", "status", "sessions", "events --last 20"), "Subtrate": COMMANDS[:5]}
        return [
            _row(f"fairlead {name}", times[name], peer, times.get(f"{name}, {peer}"), 3.5)
            for name in COMMANDS
            for peer, names in rivals.items()
            if name in names
        ]

    def at_once(self, effort: Effort) -> list[Row]:
        """Start many processes at once, and count how many end in a second."""
        edit, stop, (program, *me) = self._payloads["Edit"], self._payloads["Stop"], self._ours()["inbox"]
        folder = self._home.folder / "at-once"
        folder.mkdir()
        with atm_hook(folder, edit) as atm, subtrate_commands(folder / "subtrate") as subtrate:
            hcom = self._hcom.commands() if self._hcom else {}
            groups: dict[str, dict[str, Command | None]] = {
                "PreToolUse, Edit": {
                    "ours": self._hook("PreToolUse", edit),
                    "conclaude": conclaude("PreToolUse", edit, self._env),
                    "hcom": self._hcom.hook(edit) if self._hcom else None,
                    "cchooks": Command(CCHOOKS, self._env, edit) if find_spec("cchooks") else None,
                    "atm-hook": atm,
                },
                "Stop, one command": {
                    "ours": self._hook("Stop", stop),
                    "conclaude": conclaude("Stop", stop, self._env),
                },
                "fairlead inbox": {
                    "ours": Command([program, *me], self._env),
                    "hcom": hcom.get("inbox"),
                    "Subtrate": subtrate.get("inbox"),
                },
            }
            storms = {what: _storms(effort, variants) for what, variants in groups.items()}
        for what, of in storms.items():
            if of["ours"].failed:
                raise RuntimeError(f"{what}: {of['ours'].failed} of our processes have failed")
        return [
            Row(
                "peers",
                f"{what}, {AT_ONCE} processes at once",
                "/s",
                storms[what]["ours"].rate,
                f"{peer}{storms[what][peer].note if peer in storms[what] else ''}",
                storms[what][peer].rate if peer in storms[what] else None,
                absent=ABSENT,
                target=_AHEAD,
            )
            for what, variants in groups.items()
            for peer in variants
            if peer != "ours"
        ]

    def _ours(self) -> dict[str, list[str]]:
        """Return our commands, as the agent of a session runs them."""
        name = self._begin(OTHER)
        self._begin(SESSION)
        program, me = str(LAUNCHER.with_name("fairlead")), ["--session", SESSION]
        return {
            "send": [program, "send", name, "--subject", "Are you there?", "Hello.", *me],
            "inbox": [program, "inbox", *me],
            "poll": [program, "poll", "--format", "context", *me],
            "heartbeat": [program, "heartbeat", *me],
            "status": [program, "status", *me],
            "sessions": [program, "sessions"],
            "events --last 20": [program, "events", "--last", "20"],
        }

    def _begin(self, session: str) -> str:
        """Start a session, and return its agent's name."""
        payload = self._payload("SessionStart", session_id=session)
        client = os.getpid() if session == SESSION else self._clients.pid_of(session)  # this process runs the commands
        env = {**self._env, "CLAUDE_PID": str(client)}
        command = [str(LAUNCHER), "SessionStart", "--python", PYTHON]
        with payload.open("rb") as stdin:
            subprocess.run(command, env=env, stdin=stdin, stdout=subprocess.DEVNULL, check=True)
        agents = request("GET", "/v1/mail/agents?all=true", at=self._server.socket)["agents"]
        return str(next(agent["name"] for agent in agents if agent["session"] == session))

    def _hook(self, event: str, payload: Path) -> Command:
        return Command([str(LAUNCHER), event, "--python", PYTHON], self._env, payload)

    def _payload(self, event: str, **fields: object) -> Path:
        file = self._home.folder / f"{event}.json"
        file.write_text(json.dumps(make_payload(event, cwd=str(self._project), **{"session_id": SESSION, **fields})))
        return file


_ASKS = "a process with musl that asks a Unix socket"
_BARE = 'python -I -c "import json"'
_TWICE = Target("ratio", 2)
_AHEAD = Target("ratio", 1, is_floor=True)


def _timed(effort: Effort, variants: Mapping[str, Command | None]) -> dict[str, Timing]:
    return effort.compare_processes(
        {
            name: wall_time(command.words, stdin=command.stdin, env=command.env)
            for name, command in variants.items()
            if command is not None
        }
    )


def _row(what: str, ours: Timing, baseline: str, theirs: Timing | None, limit: float | None = None) -> Row:
    target = None if limit is None else Target("time", limit)
    return Row("peers", what, "ms", ours, baseline, theirs, target=target, absent=ABSENT)


@dataclass(frozen=True)
class _Storm:
    """Many processes at once."""

    rate: Timing
    """How many succeed in a second: maximum and median."""
    started: int
    failed: int

    @property
    def note(self) -> str:
        """How many have failed, for the table."""
        return f", {self.failed} of {self.started} failed" if self.failed else ""


def _storms(effort: Effort, variants: Mapping[str, Command | None]) -> dict[str, _Storm]:
    """Start many processes of each variant at once, in turn."""
    rounds, total = (1, AT_ONCE) if effort.is_quick else (3, 2 * AT_ONCE)
    rates: dict[str, list[float]] = {name: [] for name, command in variants.items() if command}
    failed = dict.fromkeys(rates, 0)
    for number in range(rounds):
        effort.tick(f"{AT_ONCE} at once, round {number + 1} of {rounds}")
        for name, some in rates.items():
            command = variants[name]
            assert command is not None
            seconds, failures = _many(command, total)
            some.append((total - failures) / seconds)
            failed[name] += failures
    return {name: _Storm(Timing(max(some), median(some)), rounds * total, failed[name]) for name, some in rates.items()}


def _many(command: Command, total: int) -> tuple[float, int]:
    """Run that many processes, a hundred at a time. Return the seconds, and how many have failed."""
    start, failed = perf_counter(), 0
    running: set[int] = set()
    for _ in range(total):
        if len(running) == AT_ONCE:
            failed += _wait_for_one(running)
        running.add(_started(command.words, command.env, command.stdin or Path(os.devnull)))
    while running:
        failed += _wait_for_one(running)
    return perf_counter() - start, failed


def _started(words: Sequence[str], env: Mapping[str, str], stdin: Path) -> int:
    files = [
        (os.POSIX_SPAWN_OPEN, 0, str(stdin), os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
    ]
    return os.posix_spawn(words[0], list(words), dict(env), file_actions=files)


def _wait_for_one(running: set[int]) -> bool:
    """Wait until a process has ended; return whether it has failed."""
    pid = status = 0
    while pid not in running:  # the process in place of a client is a child, too
        pid, status = os.waitpid(-1, 0)
    running.remove(pid)
    return os.waitstatus_to_exitcode(status) != 0


def _stay_silent(event: PreToolUse, ctx: HookContext) -> HookOutput:
    return _NO_OUTPUT


_NO_OUTPUT = HookOutput()


def _in_process(effort: Effort) -> list[Row]:
    """Fire ten silent hooks in the process, against claude-agent-rs, which is native."""
    event, hooks = parse(PAYLOAD), HookManager()
    for number in range(HOOKS):
        hooks.on(PreToolUse, matcher="Bash", name=f"h{number}", inline=True)(_stay_silent)
    times = effort.compare({"ours": effort.looped(lambda: hooks.fire_sync(event))})
    program, theirs = find("hookbench"), None
    if program:
        words = [program, str(HOOKS), str(effort.rounds), '{"command": "git status --short && npm test"}']
        done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        theirs = Timing.of([float(line) / 1e9 for line in done.stdout.split()[1:]])
    what = "10 silent inline hooks, one event"
    return [Row("peers", what, "µs", times["ours"], "claude-agent-rs, native", theirs, absent=ABSENT)]
