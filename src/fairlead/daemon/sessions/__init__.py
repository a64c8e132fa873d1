"""Sessions inside the daemon: the tracker, notifications about attention, token usage."""
