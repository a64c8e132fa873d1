"""Runs commands for a launcher: takes the words of a command line, and returns its output and exit code."""
