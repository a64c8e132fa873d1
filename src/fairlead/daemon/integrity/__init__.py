"""The integrity check: finds out whether tools have changed protected files."""
