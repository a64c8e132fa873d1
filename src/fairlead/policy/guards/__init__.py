"""The guards on tool calls: rules on files, tools, commands and subagents."""
