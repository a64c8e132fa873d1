"""The data of the measurements: a PreToolUse payload as the client sends it, its command lengthened to 1 KB."""

from __future__ import annotations

from pathlib import Path

from fairlead import HookOutput

ROOT = Path(__file__).parent.parent
PAYLOAD_FILE = Path(__file__).with_name("payload.json")
PAYLOAD = PAYLOAD_FILE.read_bytes().strip()
HOOKS = 10
ANSWER = HookOutput.allow()
"""Created once: the callers of the hooks are measured, not the hooks."""
