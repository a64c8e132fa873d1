"""The sessions in the daemon: their tracker, notifications to the user about them, the user's presence, token usage."""
