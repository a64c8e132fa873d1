"""Commands for messages between agents. Each turns options into one request, and the daemon's document into text."""
