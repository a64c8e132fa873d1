"""`fairlead team schema`: the SQL with which an administrator prepares the relay's database."""

from __future__ import annotations

import click

from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_line


@click.command(
    "schema",
    cls=Command,
    examples=("fairlead team schema --role fairlead | psql -d team",),
    exit_codes=((0, "printed"), (1, "the packages of a team are not installed")),
)
@click.option("--role", metavar="ROLE", default="fairlead", help="Who connects (default: fairlead).")
def schema(*, role: str) -> int:
    """Print the SQL of the relay's tables, for an administrator.

    A role that may create a schema does not need this script. For any other role, the script creates the tables, and
    grants the least rights that the relay needs on them. It can be run again.
    """
    from fairlead.team.postgres import schema_sql

    print_line(schema_sql(role), end="")
    return 0
