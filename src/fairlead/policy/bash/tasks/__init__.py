"""Finds the commands that `make`, `npm run`, `just` and `task` run for the names of tasks."""
