"""One history of a team: this host copies its events to the relay, and reads what the others have copied."""
