"""The state machine: what each event changes in a session. Pure functions."""
