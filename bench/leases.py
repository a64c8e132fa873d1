"""The check of leases at a PreToolUse: what it adds to an event, in the process of the daemon."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import TYPE_CHECKING
from unittest.mock import patch

from bench._table import Row, Target
from fairlead.clients import client_named
from fairlead.daemon._runtime import Daemon
from fairlead.daemon.events._extension import EventContext
from fairlead.daemon.events._messages import HookRequest
from fairlead.daemon.events.extensions._leases import LeaseGate
from fairlead.daemon.events.extensions._policy import PolicyGate
from fairlead.events import PreToolUse
from fairlead.leases import Holder, WantedLease

if TYPE_CHECKING:
    from bench._harness import Effort

PATHS = 90
PATTERNS = 10
"""Leases that another session holds, on other files."""


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
        context, gate = _context(folder), LeaseGate(daemon.leases)
        assert context.changes
        assert gate.before_reply(context) is None
        times = effort.compare({"check": effort.looped(lambda: gate.before_reply(context))})
        daemon.close()
    what = f"the check of an Edit among {PATHS} leased files and {PATTERNS} patterns"
    return [Row("leases", what, "µs", times["check"], "", target=Target("time", 20))]


def _context(folder: Path) -> EventContext:
    """Return an event whose call the guards have looked at."""
    file = folder / "src" / "main.py"
    file.parent.mkdir()
    file.write_text("")
    event = PreToolUse(session_id="one", cwd=str(folder), tool_name="Edit", tool_input={"file_path": str(file)})
    request = HookRequest(event="PreToolUse", cwd=str(folder))
    context = EventContext(event, request, client_named("claude"), inline=False)
    PolicyGate().before_reply(context)
    return context
