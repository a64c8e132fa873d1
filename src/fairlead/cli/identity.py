"""`fairlead identity`: who one is, another name, and what one wants to be told after a compaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cli.mailing import WHO, ask_mail, print_json, read_mail_options
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.cli.options import Given

USAGE = f"""\
usage: fairlead identity [current]
       fairlead identity save [TEXT]
       fairlead identity restore
       fairlead identity rename NAME

  current             say who you are, and how that is known; the first line is the name alone
  save                keep who you are, and a text about what you are doing; hooks do so before a compaction
  restore             say who you are, what you saved, and what you owe; hooks do so after a compaction
  rename              take another name; what was sent to the old one still finds you
{WHO}
example:
  fairlead identity rename reviewer

exit codes: 0 done; 1 the name cannot be had, or there is no such session
"""

_VERBS = ("current", "save", "restore", "rename")
_MOST_WORDS = {"current": 0, "save": 1, "restore": 0, "rename": 1}


def run(args: Sequence[str]) -> int:
    """Do what the first word says."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    given = read_mail_options("identity", args)
    verb, *rest = given.texts() or ["current"]
    if verb not in _VERBS:
        raise UsageError(f"identity takes one of {', '.join(_VERBS)}, got {verb!r}")
    if len(rest) > _MOST_WORDS[verb]:
        raise UsageError(f"identity {verb}: too many words: {rest[-1]!r}; put a text in quotes")
    if verb == "rename" and not rest:
        raise UsageError("identity rename: which name?")
    document = _ask(given, verb, rest[0] if rest else "")
    if "--json" in given:
        return print_json(document)
    from fairlead.cli.letters import say

    say(*_SHOWN[verb](document))
    return 0


def _ask(given: Given, verb: str, text: str) -> dict[str, Any]:
    if verb == "current":
        found: dict[str, Any] = ask_mail("GET", "identity", given)
    else:
        found = ask_mail("POST", "identity", given, {"action": verb, "new": text, "status": text})
    return found


def _current(document: dict[str, Any]) -> Iterator[str]:
    agent = document["agent"]
    yield agent["name"]
    yield from (f"{key:<8} {agent[key]}" for key in ("session", "project") if agent[key])
    yield f"known by {document['how']}"


def _saved(document: dict[str, Any]) -> Iterator[str]:
    yield f"saved: {document['name']}"


def _restored(document: dict[str, Any]) -> Iterator[str]:
    from fairlead.text import printable_block

    yield document["text"]
    if document["saved"]:
        yield f"You saved: {printable_block(document['saved'])}"


def _renamed(document: dict[str, Any]) -> Iterator[str]:
    yield f"you are {document['name']} now"


_SHOWN = {"current": _current, "save": _saved, "restore": _restored, "rename": _renamed}
