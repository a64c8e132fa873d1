"""Commands that the daemon runs for a launcher: the words of a command line in, its output and exit code out."""
