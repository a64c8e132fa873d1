"""Blocks shell commands that contain a forbidden pattern.

Try it:  echo '{"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "sudo rm -rf /"}}' |
           fairlead PreToolUse --hooks examples/security.py
"""

from collections.abc import Iterable

from fairlead import Hook, HookContext, HookManager, HookOutput, PreToolUse


class SecurityHook(Hook):
    """Searches the commands of Bash for patterns."""

    name = "security-hook"
    events = (PreToolUse,)
    matcher = "Bash"
    priority = 100  # run early

    def __init__(self, blocked_patterns: Iterable[str]) -> None:
        """Block commands that contain one of these patterns."""
        self.blocked_patterns = tuple(blocked_patterns)

    def execute(self, event: PreToolUse, _ctx: HookContext) -> HookOutput:
        """Block the command if it contains a pattern."""
        command = str(event.tool_input.get("command", ""))
        for pattern in self.blocked_patterns:
            if pattern in command:
                return HookOutput.block(f"Blocked: contains '{pattern}'")
        return HookOutput.allow()


hooks = HookManager()
hooks.register(SecurityHook(["rm -rf", "sudo"]))
