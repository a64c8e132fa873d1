"""Mail inside the daemon: the service, its operations, the identity of callers, and agents that wait."""
