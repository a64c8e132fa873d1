"""The dialects of the clients: parse, render, install."""

from fairlead.clients.claude import _render as claude

CLIENTS = {"claude": claude}
"""By the name that `--client` takes."""
