"""Upgrades of older databases: one file per step, in `versions`. A released step never changes."""
