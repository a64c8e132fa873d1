"""The commands that an event runs, as a plan; their environment. Runs nothing."""
