"""The state of the shell that a command runs in, and what changes it. Knows words, but no syntax tree and no files."""
