"""Commands that install Fairlead's hooks in a client's settings, and that list the user's own hooks in a policy."""
