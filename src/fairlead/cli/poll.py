"""`fairlead poll`: what has come, or comes within a while; shown once."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from fairlead.cli.mailing import NOTHING, WHO, ask_mail, print_json, read_mail_options
from fairlead.cli.options import choose, read_span
from fairlead.errors import FairleadError, UsageError
from fairlead.ipc import ConnectionLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.cli.options import Given

USAGE = f"""\
usage: fairlead poll [--wait TIME] [--format text|json|hook|context] [--verbose]

Gives the mail that was not shown yet, and counts it as shown: it comes once. With --wait it waits until there is some.

  --wait TIME         wait for mail, as 30s or 10m; at most 1d
  --format text       for a person or an agent (default)
  --format json       for a program
  --format hook       for a script that is the client's Stop hook: JSON that keeps the agent going, or nothing
  --format context    for a script at SessionStart or UserPromptSubmit: text for the agent, or nothing
  --verbose           say on stderr for whom, how long it took, and how much came
{WHO}
examples:
  fairlead poll --wait 10m && echo 'there is mail'
  fairlead poll --session-id "$session_id" --format hook

exit codes: 0 there was mail, or the format is hook or context; 1 it cannot be told; 3 nothing came;
            130 interrupted while it waited, and nothing was shown
"""

_FORMATS = ("text", "json", "hook", "context")
_LONGEST = 86400.0
_GRACE = 30.0
_INTERRUPTED = 130
_TURN = 0.1


def run(args: Sequence[str]) -> int:
    """Ask, print, and say by the exit code whether there was any."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("poll", args, flags=("--verbose",), values=("--wait", "--format"))
    if given.words:
        raise UsageError(f"poll takes options alone, got {given.texts()[0]!r}")
    wanted = choose("--format", given.value("--format", "json" if "--json" in given else "text"), _FORMATS)
    wait = read_span("--wait", given.value("--wait")) if "--wait" in given else 0.0
    if wait > _LONGEST:
        raise UsageError(f"--wait: a day at most, got {given.value('--wait')!r}")
    try:
        document = _ask(given, wanted, wait)
    except KeyboardInterrupt:
        return _INTERRUPTED
    if "--verbose" in given:
        _explain(document)
    _print(given, wanted, document)
    return NOTHING if wanted in {"text", "json"} and not document["messages"] else 0


def _ask(given: Given, wanted: str, wait: float) -> dict[str, Any]:
    """Wait for an answer; if the daemon goes meanwhile, wait with the next one for the rest of the time."""
    deadline = monotonic() + wait
    while True:
        left = max(0.0, deadline - monotonic())
        asked = {"wait": left, "format": wanted, "id": f"poll-{os.urandom(16).hex()}"}
        try:
            document: dict[str, Any] = ask_mail("POST", "poll", given, asked, timeout=left + _GRACE)
        except ConnectionLost:
            if monotonic() >= deadline:
                raise
            continue
        if document["messages"] or monotonic() >= deadline:
            return document
        sleep(_TURN)  # the daemon goes, and lets those go that wait; the next one is asked


def _print(given: Given, wanted: str, document: dict[str, Any]) -> None:
    """Print it; what cannot be printed was not shown, and is given back."""
    try:
        _show(wanted, document)
        sys.stdout.flush()
    except OSError as error:
        with suppress(FairleadError):
            ask_mail("POST", "poll", given, {"undo": document["id"]})
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would complain of it once more at its end
        raise FairleadError(f"the mail cannot be printed, so it stays unshown: {error.strerror}") from None


def _show(wanted: str, document: dict[str, Any]) -> None:
    from fairlead.cli.letters import say

    if wanted == "json":
        print_json(document)
    elif document["messages"]:
        text = document["text"]
        say(json.dumps({"decision": "block", "reason": text}) if wanted == "hook" else text)
    elif wanted == "text":
        say("no new messages")


def _explain(document: dict[str, Any]) -> None:
    came = len(document["messages"])
    print(
        f"fairlead: for {document['you']}, known by {document['how']}; waited {document['waited']:.1f} s; "
        f"{came} came, {document['left']} more wait",
        file=sys.stderr,
    )
