"""How agents and topics are called: names that can be said and typed, and cannot be taken for another's."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final

from fairlead.mail._errors import BadName
from fairlead.mail._name_words import ADJECTIVES, NOUNS
from fairlead.text import quoted

if TYPE_CHECKING:
    from collections.abc import Container

EVERYONE: Final = "everyone"
LONGEST_NAME: Final = 40

_TRIES = 64
"""So many pairs of words are tried before a number is added."""
_RESERVED = {
    *("all", "anybody", "anyone", "everybody", "everyone", "fairlead", "human", "me", "nobody", "person", "script"),
    *("self", "system", "user", "you"),
}
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")
_TOPIC = re.compile(r"[a-z0-9][a-z0-9._/-]{0,49}")


def speakable(session: str, taken: Container[str]) -> str:
    """Make a name for a session id: always the same one, unless it is taken."""
    seed = session.encode("utf-8", "surrogatepass")
    name = ""
    for turn in range(_TRIES):
        number = int.from_bytes(sha256(b"%d %b" % (turn, seed)).digest()[:8], "big")
        rest, adjective = divmod(number, len(ADJECTIVES))
        name = f"{ADJECTIVES[adjective]}-{NOUNS[rest % len(NOUNS)]}"
        if name not in taken:
            return name
    return next(found for more in count(2) if (found := f"{name}-{more}") not in taken)


def kind_of(agent_type: str) -> str:
    """Give the part of a subagent's name that says what it is."""
    kind = re.sub(r"[^a-z0-9]+", "-", agent_type.lower()).strip("-")
    return kind[:LONGEST_NAME].rstrip("-") or "agent"


def folded(name: str) -> str:
    """Give a name as it is compared: upper and lower case are one."""
    return name.strip().casefold()


def checked_name(name: str) -> str:
    """Give a name that was wished for, if it can be one."""
    wished = name.strip()
    if not _NAME.fullmatch(wished):
        raise BadName(
            f"{quoted(name)} cannot be a name; a name has up to {LONGEST_NAME} letters, digits, '-', '_' and '.', "
            "and begins with a letter"
        )
    if re.sub(r"[^a-z]", "", wished.lower()) in _RESERVED:
        raise BadName(f"{quoted(name)} is reserved, so that nobody is taken for somebody else; choose another name")
    return wished


def checked_topic(topic: str) -> str:
    """Give the name of a topic without its `#`."""
    name = folded(topic).removeprefix("#")
    if not _TOPIC.fullmatch(name):
        raise BadName(
            f"{quoted(topic)} cannot be a topic; a topic has up to 50 letters, digits, '-', '_', '.' and '/', "
            "and begins with a letter or a digit"
        )
    return name
