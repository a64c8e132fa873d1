"""Logs every tool call, before and after. An observer: it also sees calls that other hooks blocked.

Try it:  echo '{"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "ls"}}' |
           fairlead PreToolUse --hooks examples/logging_hook.py
"""

import logging

from fairlead import HookManager, PostToolUse, PostToolUseFailure, PreToolUse

logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
log = logging.getLogger("audit")

hooks = HookManager()


@hooks.on(PreToolUse, PostToolUse, PostToolUseFailure, phase="observe", name="logging-hook")
def log_tool(event: PreToolUse | PostToolUse | PostToolUseFailure) -> None:
    """Log one line per event."""
    log.info("hook event %s, tool %s", event.event_type, event.tool_name)
