"""Asks git which files a command would change or show. Read-only, bounded, and no code of a repository is run."""
