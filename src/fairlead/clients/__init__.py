"""The dialects of the clients: parse, render, install."""

from fairlead.clients import claude

CLIENTS = {"claude": claude}
"""By the name that `--client` takes."""
