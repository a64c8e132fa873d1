"""The check of `examples/security.py` as a cchooks hook. Run as a script."""

from cchooks import PreToolUseContext, create_context

if __name__ == "__main__":
    context = create_context()
    assert isinstance(context, PreToolUseContext)
    command = context.tool_input.get("command", "") if context.tool_name == "Bash" else ""
    if any(pattern in command for pattern in ("rm -rf", "sudo")):
        context.output.exit_block("dangerous command blocked")
    context.output.exit_success()
