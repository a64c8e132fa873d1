"""The processes that run the user's own hooks for the daemon."""
