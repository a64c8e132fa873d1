"""`fairlead reply`: an answer to a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, read_mail_options
from fairlead.cli.options import read_number
from fairlead.cli.send import how, shown, text_of
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead reply ID [BODY | --file FILE | -] [--all] [options]

Answers a message in its thread. If that was a request, it is owed no more.

  ID                  the message's number
  BODY                the text, or --body TEXT; --file FILE is in that file; a lone dash reads it from stdin
  --all               to everybody in the thread, not to the sender alone
  --subject TEXT      another subject than "Re: ..."
  --request, --deadline TIME, --urgent, --low, --key KEY     as of fairlead send
{WHO}
example:
  fairlead reply 12 "Done; see commit 4f3a1c."

exit codes: 0 sent; 1 nothing was sent, and stderr says why
"""

_FLAGS = ("--all", "--urgent", "--low", "--request", "--ack")
_VALUES = ("--subject", "--body", "--file", "--priority", "--intent", "--deadline", "--key")


def run(args: Sequence[str]) -> int:
    """Answer it."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("reply", args, flags=_FLAGS, values=_VALUES)
    words = given.texts()
    if not words:
        raise UsageError("reply: to which message? Give its number; fairlead inbox lists them")
    number, *rest = words
    if len(rest) > 1:
        raise UsageError(f"reply: one text, not several: {rest[1]!r}; put it in quotes")
    body = text_of(given, rest[0] if rest else "")
    if not body.strip():
        raise UsageError("reply: there is nothing to send; give a text, --file FILE, or a lone dash for stdin")
    asked = {"body": body, "subject": given.value("--subject"), "all": "--all" in given, **how(given)}
    return shown(given, ask_mail("POST", f"messages/{read_number('reply', number)}/reply", given, asked))
