"""The store of mail: agents, messages, deliveries."""
