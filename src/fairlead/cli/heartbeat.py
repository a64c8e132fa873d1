"""`fairlead heartbeat`: a sign of life, for agents whose client has no hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead heartbeat [--session-start] --session-id ID

Says that an agent is there. The client's hooks do so at every event; this is for scripts, and for agents whose client
has no hooks. It prints nothing.

  --session-start     the session begins: an agent that nobody has heard of is made, and one that had ended lives again
{WHO}
example:
  fairlead heartbeat --session-start --session-id "$session_id"

exit codes: 0 noted; 1 there is no such session, or it is not yours
"""


def run(args: Sequence[str]) -> int:
    """Give it."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("heartbeat", args, flags=("--session-start",))
    if given.words:
        raise UsageError(f"heartbeat takes options alone, got {given.texts()[0]!r}")
    document = ask_mail("POST", "heartbeat", given, {"start": "--session-start" in given})
    return print_json(document) if "--json" in given else 0
