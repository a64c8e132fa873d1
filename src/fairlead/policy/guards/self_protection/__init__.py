"""The guard on Fairlead itself: files that no agent may change, and commands that switch the guards off."""
