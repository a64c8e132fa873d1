"""Probes, which collect facts about an installation."""
