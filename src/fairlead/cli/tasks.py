"""`fairlead tasks`: what the agent of a session has set itself to do, and has not done."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead tasks [--all]

Lists the incomplete tasks of a session, as its client keeps them. An agent that stays (`mail.stay: always`) is not let
go while there are any.

  --all               those that are done, too
{WHO}
example:
  fairlead tasks --session-id "$session_id"

exit codes: 0 shown, even if there are none; 1 there is no such session, or it is not yours
"""


def run(args: Sequence[str]) -> int:
    """List them."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("tasks", args, flags=("--all",))
    if given.words:
        raise UsageError(f"tasks takes options alone, got {given.texts()[0]!r}")
    from fairlead.cli.letters import one_line, say
    from fairlead.clients import client_in

    folder = client_in(os.environ).config_folder(os.environ, os.getcwd())
    document = ask_mail("GET", "tasks", given, {"all": str("--all" in given).lower(), "folder": folder})
    if "--json" in given:
        return print_json(document)
    for task in document["tasks"]:
        say(f"#{one_line(task['id'])} [{one_line(task['status'])}] {one_line(task['subject'])}".rstrip())
    if not document["tasks"]:
        say("no tasks" if "--all" in given else "no incomplete tasks")
    return 0
