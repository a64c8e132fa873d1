"""The daemon's part in a team of hosts: one thread, one connection to the relay. Imported only in a team."""
