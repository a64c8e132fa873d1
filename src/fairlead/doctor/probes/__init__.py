"""Collect facts about an installation."""
