"""Analyses a shell command from its syntax tree, without running it."""
