"""Rules on tool calls: which files, tools, commands and agents a policy denies."""
