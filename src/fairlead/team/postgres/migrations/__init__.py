"""The migrations of a relay's schema, one file for each, in `versions`. A released migration never changes.

Hosts are upgraded one by one, so the previous version of Fairlead must still work after a migration.
"""
