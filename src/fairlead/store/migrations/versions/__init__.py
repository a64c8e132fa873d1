"""The migration steps. The number in a file's name is the revision to which it upgrades."""
