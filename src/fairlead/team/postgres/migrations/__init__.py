"""Upgrades of a relay: one file per step, in `versions`. A released step never changes.

A step must leave the relay usable for the version of Fairlead before it: hosts are upgraded one by one.
"""
