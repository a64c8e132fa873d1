"""What is measured with: one PreToolUse of a real client, its command long enough for 1 KB."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
PAYLOAD_FILE = Path(__file__).with_name("payload.json")
PAYLOAD = PAYLOAD_FILE.read_bytes().strip()
HOOKS = 10
