"""The store of events, fed from the journal."""
