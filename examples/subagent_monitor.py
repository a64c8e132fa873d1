"""Logs when subagents start and stop.

Try it:  echo '{"session_id": "s1", "agent_id": "a1", "agent_type": "Explore"}' |
           fairlead SubagentStart --hooks examples/subagent_monitor.py
"""

import logging

from fairlead import HookManager, SubagentStart, SubagentStop

logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
log = logging.getLogger("subagents")

hooks = HookManager()


@hooks.on(SubagentStart, SubagentStop, phase="observe", name="subagent-monitor")
async def monitor(event: SubagentStart | SubagentStop) -> None:
    """Log one line per start and stop."""
    match event:
        case SubagentStart(agent_id=agent_id, agent_type=agent_type, description=description):
            log.info("subagent started: id=%s type=%s desc=%s", agent_id, agent_type, description)
        case SubagentStop(agent_id=agent_id, success=False, error=error):
            log.warning("subagent failed: id=%s error=%s", agent_id, error)
        case SubagentStop(agent_id=agent_id):
            log.info("subagent completed: id=%s", agent_id)
