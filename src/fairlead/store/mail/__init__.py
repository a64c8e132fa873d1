"""The mail store: agents, messages, deliveries."""
