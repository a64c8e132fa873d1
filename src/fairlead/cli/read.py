"""`fairlead read`: a whole message."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.cli.options import read_number
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead read ID [--body]

Shows a whole message, and marks it as read: its sender can see that. Each line of the text stands behind `> `, and
what would move the cursor is shown as a sign.

  ID                  the message's number
  --body              the text alone, byte for byte; made harmless on a terminal
{WHO}
examples:
  fairlead read 12
  fairlead read 12 --body | git apply

exit codes: 0 shown; 1 there is no such message, or it is not yours
"""


def run(args: Sequence[str]) -> int:
    """Show it."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("read", args, flags=("--body",))
    if len(given.words) != 1:
        raise UsageError("read: give the number of one message; fairlead inbox lists them")
    document = ask_mail("GET", f"messages/{read_number('read', given.texts()[0])}", given)
    if "--json" in given:
        return print_json(document)
    from fairlead.cli.letters import message_lines, say
    from fairlead.text import printable_block

    if "--body" not in given:
        say(*message_lines(document))
    elif sys.stdout.isatty():
        say(printable_block(document["message"]["body"]))
    else:
        sys.stdout.buffer.write(document["message"]["body"].encode(errors="replace"))
    return 0
