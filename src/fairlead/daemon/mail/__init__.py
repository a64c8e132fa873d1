"""Mail inside the daemon: the service, its operations, who asks, and agents that wait."""
