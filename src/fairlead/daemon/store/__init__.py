"""The process of the event store, and the daemon's side of it.

The store is filled in a separate process, because that takes 50 µs of the interpreter's time for each event.
"""
