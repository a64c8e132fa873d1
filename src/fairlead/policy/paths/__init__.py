"""Paths and file patterns: resolving, matching, searching. Knows no policy."""
