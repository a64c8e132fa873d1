"""`fairlead topics`: what several agents listen to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE = f"""\
usage: fairlead topics [list]
       fairlead topics join NAME
       fairlead topics leave NAME

What is sent to #build goes to everybody who has joined the topic build, but not to who sent it. Joining makes it.

  list                the topics, and who listens to each (default)
  join, leave         listen to a topic, or no more; its name with or without the #
{WHO}
examples:
  fairlead topics join build
  fairlead send '#build' "The build is red since 4f3a1c."

exit codes: 0 done; 1 it is not a name for a topic, or it cannot be asked
"""

_VERBS = ("list", "join", "leave")


def run(args: Sequence[str]) -> int:
    """Do what the first word says."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("topics", args)
    verb, *rest = given.texts() or ["list"]
    if verb not in _VERBS:
        raise UsageError(f"topics takes one of {', '.join(_VERBS)}, got {verb!r}")
    if len(rest) != (verb != "list"):
        raise UsageError(f"topics {verb}: {'it takes no name' if verb == 'list' else 'name one topic'}")
    if verb == "list":
        document = ask_mail("GET", "topics", given)
    else:
        document = ask_mail("POST", "topics", given, {"action": verb, "topic": rest[0]})
    if "--json" in given:
        return print_json(document)
    _print(verb, document)
    return 0


def _print(verb: str, document: dict[str, Any]) -> None:
    from fairlead.cli.letters import say, table

    if verb != "list":
        say(f"{document['you']} {'listens to' if verb == 'join' else 'has left'} #{document['topic']}")
    elif document["topics"]:
        say(*table([(f"#{topic['name']}", ", ".join(topic["subscribers"])) for topic in document["topics"]]))
    else:
        say("no topics; the first who joins one makes it: fairlead topics join NAME")
