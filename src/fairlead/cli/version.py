"""`fairlead version`: prints the version."""

from __future__ import annotations

import json

import click

from fairlead import __version__
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_line


def to_text(version: str, *, as_json: bool) -> str:
    """Return the version as text, or as JSON."""
    return json.dumps({"version": version}) if as_json else f"fairlead {version}"


@click.command("version", cls=Command, examples=("fairlead version",))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def version(*, as_json: bool) -> int:
    """Print the version."""
    print_line(to_text(__version__, as_json=as_json))
    return 0
