"""The integrity check: whether protected files are still what they were before a tool ran."""
