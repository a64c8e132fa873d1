"""Answers to questions of sessions on another host."""
