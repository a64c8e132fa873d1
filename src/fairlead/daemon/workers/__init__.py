"""The processes that run the user's hooks for the daemon."""
