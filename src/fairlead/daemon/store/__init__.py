"""The event store, in a separate process, because filling it takes 50 µs of the interpreter for each event."""
