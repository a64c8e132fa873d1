"""`fairlead schema`: prints the JSON Schema of the policy file."""

from __future__ import annotations

import click

from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_line
from fairlead.policy import schema_text


@click.command(
    "schema",
    cls=Command,
    examples=(
        "fairlead schema > fairlead.schema.json",
        "then, as the first line of .fairlead.yaml:  # yaml-language-server: $schema=fairlead.schema.json",
    ),
)
def schema() -> int:
    """Print the JSON Schema of the policy file.

    It is for editors and other programs. `fairlead init --schema` writes it beside a new policy, which names it by a
    relative path, so that it is found on every machine that has both files.
    """
    print_line(schema_text(), end="")
    return 0
