"""Finds, reads, validates, merges and caches policy files."""
