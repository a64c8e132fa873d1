"""Leases inside the daemon: stored in a file, ended with their holders, checked at tool calls."""
