"""The event store, in a process of its own: to fill it takes 50 µs of the interpreter for each event."""
