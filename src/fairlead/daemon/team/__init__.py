"""The daemon in a team of hosts: one thread, one connection to the relay. Not loaded on a host without a team."""
