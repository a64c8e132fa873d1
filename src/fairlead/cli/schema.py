"""`fairlead schema`: prints the JSON Schema of the policy file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.errors import UsageError
from fairlead.policy import schema_text

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = """\
usage: fairlead schema

Prints the JSON Schema of the policy file, for editors and other programs.

example:
  fairlead schema > fairlead.schema.json
  then, as the first line of .fairlead.yaml:  # yaml-language-server: $schema=fairlead.schema.json
"""


def run(args: Sequence[str]) -> int:
    """Print the schema and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    if args:
        raise UsageError(f"schema takes no arguments, got {args[0]!r}; it prints to stdout")
    print(schema_text(), end="")
    return 0
