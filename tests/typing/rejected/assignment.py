from fairlead import PreToolUse


def change(event: PreToolUse) -> None:
    event.tool_name = "Read"
