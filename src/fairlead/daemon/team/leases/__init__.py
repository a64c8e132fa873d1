"""Leases across hosts: on the relay, in memory, and in a file for the next daemon."""
