"""Checks: pure functions that turn facts into findings."""
