"""Claude Code: payloads, answers, settings, session files."""
