"""Answers events for all sessions of one user: the only place where everything is put together.

`remote` is its other end, and `starting` how it is begun: both know the standard library alone.
"""
