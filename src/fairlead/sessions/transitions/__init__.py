"""The state machine: pure functions that compute what each event changes in a session."""
