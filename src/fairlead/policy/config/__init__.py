"""The policy file: find, read, validate, merge, cache."""
