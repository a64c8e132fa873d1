"""The HTTP API of the daemon, for mail, leases, sessions, history, answers, waits, the team, status and metrics."""
