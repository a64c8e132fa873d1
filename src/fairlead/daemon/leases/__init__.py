"""Leases inside the daemon: kept in a file, ended with their holders, checked at tool calls."""
