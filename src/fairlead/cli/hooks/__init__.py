"""Commands that install Fairlead's hooks into a client's settings, show their status, and remove them."""
