"""`fairlead demo`: recorded events of a team of agents, decided by the real launcher and daemon in a scratch home."""
