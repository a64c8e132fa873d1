"""The HTTP API of the daemon: mail, leases, sessions, history, answers, waits, the team, status, metrics."""
