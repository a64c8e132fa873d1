"""The mail store: agents, messages and deliveries in a database."""
