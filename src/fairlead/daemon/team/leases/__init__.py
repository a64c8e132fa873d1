"""Leases of a team: on the relay, in memory, and cached in a file for the next daemon."""
