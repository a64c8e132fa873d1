"""Mail in the daemon: the message service, its operations, the identity of callers, and the waits of agents."""
