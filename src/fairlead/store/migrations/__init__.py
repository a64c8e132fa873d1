"""Upgrades of older databases. Each step is a file in `versions`, which never changes after its release."""
