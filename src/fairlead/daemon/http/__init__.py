"""The HTTP API of the daemon: mail, sessions, waits, status, metrics."""
