"""Finds the files that git commands would change or show. Reads a limited amount, and runs no code of a repository."""
