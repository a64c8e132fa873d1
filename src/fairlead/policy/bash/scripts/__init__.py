"""Finds the scripts that a command runs, and analyses them. Knows files and words, but no syntax tree."""
