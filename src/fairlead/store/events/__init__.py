"""The event store: the journal's records in a database, for queries."""
