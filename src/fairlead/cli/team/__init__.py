"""Commands about a team of hosts: join it, show it, change its members, and prepare its relay."""
