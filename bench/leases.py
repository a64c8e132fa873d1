"""The check of leases at a PreToolUse: what it adds to an event, in the process of the daemon."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from bench._table import Row, Target
from fairlead.clients import client_named
from fairlead.daemon._runtime import Daemon
from fairlead.daemon.events._extension import EventContext
from fairlead.daemon.events._messages import HookRequest
from fairlead.daemon.events.extensions._leases import LeaseGate
from fairlead.daemon.events.extensions._policy import PolicyGate
from fairlead.daemon.leases._remote import RemoteLease, RemoteLeases, now
from fairlead.events import PreToolUse
from fairlead.leases import Holder, TeamGrant, WantedLease

if TYPE_CHECKING:
    from bench._harness import Effort

PATHS = 90
PATTERNS = 10
"""Leases that another session holds, on other files; and as many that other hosts hold, in a team."""


def rows(effort: Effort) -> list[Row]:
    with TemporaryDirectory() as scratch, patch.dict(os.environ, {"FAIRLEAD_HOME": f"{scratch}/state"}):
        folder = Path(scratch).resolve()
        daemon = Daemon("0")
        wanted = [WantedLease(path=f"{folder}/src/other{number}.py", until=time() + 3600) for number in range(PATHS)]
        wanted += [
            WantedLease(path=f"docs/part{number}/*.md", folder=str(folder), until=time() + 3600)
            for number in range(PATTERNS)
        ]
        daemon.leases.take(wanted, Holder("another", "", "another"))
        gate = LeaseGate(daemon.leases)
        (folder / "src").mkdir()
        (folder / "src" / "main.py").write_text("")
        contexts = {
            "an Edit": _context(folder, "Edit", {"file_path": str(folder / "src" / "main.py")}),
            "a Bash call that changes three files": _context(folder, "Bash", {"command": "touch src/a src/b src/c"}),
        }
        for context in contexts.values():
            assert context.changes
            assert gate.before_reply(context) is None
        times = effort.compare(
            {name: effort.looped(partial(gate.before_reply, context)) for name, context in contexts.items()}
        )
        _join_team(daemon, folder)
        for context in contexts.values():
            assert gate.before_reply(context) is None
        in_team = effort.compare(
            {name: effort.looped(partial(gate.before_reply, context)) for name, context in contexts.items()}
        )
        daemon.leases.team = None
        daemon.close()
    among = f"among {PATHS} leased files and {PATTERNS} patterns"
    target = Target("time", 20)
    return [
        Row("leases", f"the check of {name} {among}{where}", "µs", measured[name], "", target=target)
        for measured, where in ((times, ""), (in_team, ", and as many of other hosts"))
        for name in contexts
    ]


def _join_team(daemon: Daemon, folder: Path) -> None:
    """Create leases of other hosts on files of the repository in the folder."""
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git/config").write_text('[remote "origin"]\n\turl = git@git.example.com:acme/app.git\n')
    grants = [_grant(f"p{number}", f"src/theirs{number}.py") for number in range(PATHS)]
    grants += [_grant(f"g{number}", f"docs/theirs{number}/*.md", "/") for number in range(PATTERNS)]
    remote = RemoteLeases()
    remote.replace([RemoteLease(grant=grant, host="other", holder="fox", ends=now() + 3600) for grant in grants])
    team: Any = SimpleNamespace(remote=remote, host_name="here")
    daemon.leases.team = team


def _grant(name: str, path: str, folder: str = "") -> TeamGrant:
    return TeamGrant(id=name, project="git.example.com/acme/app", path=path, folder=folder)


def _context(folder: Path, tool: str, tool_input: dict[str, str]) -> EventContext:
    """Return an event whose call the guards have checked."""
    event = PreToolUse(session_id="one", cwd=str(folder), tool_name=tool, tool_input=tool_input)
    request = HookRequest(event="PreToolUse", cwd=str(folder))
    context = EventContext(event, request, client_named("claude"), may_wait=True)
    PolicyGate().before_reply(context)
    return context
