"""The plan of the commands that an event runs, and their environment. Runs nothing."""
