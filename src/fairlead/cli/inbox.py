"""`fairlead inbox`: the messages that one has got, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.cli.options import read_number
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead inbox [--all] [--from NAME] [--search TEXT] [--limit N] [--before ID]

Lists what was not read yet, the newest first: number, sender, age, how far it is, and what it is about. `new` was not
shown to the agent yet. To look at the list reads nothing; fairlead read ID does.

  --all               what was read and answered, too
  --from NAME         of that sender
  --search TEXT       all that you wrote or got and that has this text in it
  --limit N           so many (default: 20, at most 200)
  --before ID         those before that number: the next page
{WHO}
examples:
  fairlead inbox
  fairlead inbox --all --from amber-fox

exit codes: 0 shown, even if there is nothing; 1 it cannot be shown, and stderr says why
"""


def run(args: Sequence[str]) -> int:
    """List them."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("inbox", args, flags=("--all",), values=("--from", "--search", "--limit", "--before"))
    if given.words:
        raise UsageError(f"inbox takes options alone, got {given.texts()[0]!r}; fairlead read ID shows one message")
    asked = {
        "all": str("--all" in given).lower(),
        "from": given.value("--from"),
        "search": given.value("--search"),
        "limit": min(read_number("--limit", given.value("--limit", "20")), 200),
        "before": read_number("--before", given.value("--before")) if "--before" in given else 0,
    }
    document = ask_mail("GET", "inbox", given, asked)
    if "--json" in given:
        return print_json(document)
    from fairlead.cli.letters import inbox_lines, say

    rows = document["messages"]
    if rows:
        say(*inbox_lines(rows, document["now"]))
    else:
        say("nothing found" if "--search" in given else "no messages" if "--all" in given else "no unread messages")
    if document["more"]:
        say(f"there are more; the next page: --before {document['more']}")
    return 0
