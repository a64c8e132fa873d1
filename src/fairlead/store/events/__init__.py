"""The event store, filled from the journal."""
