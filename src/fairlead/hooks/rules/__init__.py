"""Rules from files: settings, plugins, skills and subagents become command hooks."""
