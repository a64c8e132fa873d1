"""The history of sessions: their activity, their costs, and the search in their prompts, commands and files."""
