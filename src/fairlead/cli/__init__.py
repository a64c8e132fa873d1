"""The command line: one file per command, imported on demand."""
