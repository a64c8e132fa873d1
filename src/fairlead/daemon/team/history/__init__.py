"""The history of a team: this host copies its events to the relay, and reads the events of the other hosts."""
