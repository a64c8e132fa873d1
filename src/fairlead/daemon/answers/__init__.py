"""Questions of agents that a person can answer outside of the client."""
