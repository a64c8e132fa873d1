"""Names of agents and topics: pronounceable, easy to type, and never ambiguous."""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING, Final

from fairlead.mail._errors import BadName

if TYPE_CHECKING:
    from collections.abc import Container

EVERYONE: Final = "everyone"
MAX_NAME_LENGTH: Final = 40

_MAX_ATTEMPTS = 64
"""How many pairs of words are tried before a number is appended."""
_RESERVED = {
    *("all", "anybody", "anyone", "everybody", "everyone", "fairlead", "human", "me", "nobody", "person", "script"),
    *("self", "system", "user", "you"),
}
_NAME = re.compile(rf"[A-Za-z][A-Za-z0-9._-]{{0,{MAX_NAME_LENGTH - 1}}}")
_TOPIC = re.compile(r"[a-z0-9][a-z0-9._/-]{0,49}")
_MAX_QUOTED_LENGTH = 60


def generate_name(session: str, taken: Container[str]) -> str:
    """Return a name for a session id: the same one each time, unless it is taken."""
    seed = session.encode("utf-8", "surrogatepass")
    name = ""
    for attempt in range(_MAX_ATTEMPTS):
        number = int.from_bytes(sha256(b"%d %b" % (attempt, seed)).digest()[:8], "big")
        rest, adjective = divmod(number, len(ADJECTIVES))
        name = f"{ADJECTIVES[adjective]}-{NOUNS[rest % len(NOUNS)]}"
        if name not in taken:
            return name
    return next(numbered for suffix in count(2) if (numbered := f"{name}-{suffix}") not in taken)


def subagent_kind(agent_type: str) -> str:
    """Return the part of a subagent's name that is made from its type."""
    kind = re.sub(r"[^a-z0-9]+", "-", agent_type.lower()).strip("-")
    return kind[:MAX_NAME_LENGTH].rstrip("-") or "agent"


def normalize_name(name: str) -> str:
    """Return a name in the form in which names are compared: stripped and case-folded."""
    return name.strip().casefold()


def validate_name(name: str) -> str:
    """Return a requested name without surrounding whitespace, or raise `BadName`."""
    requested = name.strip()
    if not _NAME.fullmatch(requested):
        raise BadName(
            f"{quote(name)} is not a valid name; use up to {MAX_NAME_LENGTH} letters, digits, '-', '_' and '.', "
            "starting with a letter"
        )
    if re.sub(r"[^a-z]", "", requested.lower()) in _RESERVED:
        raise BadName(f"{quote(name)} is reserved, so that no agent is mistaken for another; choose another name")
    return requested


def validate_topic(topic: str) -> str:
    """Return the name of a topic without its `#`, or raise `BadName`."""
    name = normalize_name(topic).removeprefix("#")
    if not _TOPIC.fullmatch(name):
        raise BadName(
            f"{quote(topic)} is not a valid topic; use up to 50 letters, digits, '-', '_', '.' and '/', "
            "starting with a letter or a digit"
        )
    return name


def quote(text: str) -> str:
    """Return untrusted text as one quoted line of limited length for an error message."""
    return repr(text if len(text) <= _MAX_QUOTED_LENGTH else f"{text[:_MAX_QUOTED_LENGTH]}…")


# -- the words of generated names: short, easy to say and to distinguish, and friendly -------------------

ADJECTIVES: Final = tuple(
    """
    able agile airy alert alpine amber ample apt arctic autumn azure balmy bold brave breezy brief bright brisk broad
    bronze calm candid cedar cheery civil clear clever cobalt copper coral cosy crimson crisp curious dapper daring deft
    dusky eager early earnest easy elated ember even fabled fair faithful fancy fine fleet fluent fond frank fresh
    frosty gentle giddy glad gleaming golden grand green handy happy hardy hazel hearty honest humble indigo ivory jade
    jaunty jolly jovial keen kind lilac lively loyal lucid lucky lunar maple mellow merry mild minty misty modest mossy
    neat nimble noble olive opal patient pearly plucky polite proud quick quiet quirky rapid ready royal ruby rustic
    sage sandy scarlet serene sharp shiny silent silken silver simple sleek smooth snowy solar solid spry stable steady
    sturdy subtle sunny swift tame teal tender thrifty tidy tranquil trusty upbeat velvet vivid warm wise witty woven
    young zesty
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)

NOUNS: Final = tuple(
    """
    acorn alder anchor antler apple arbor aspen aster atlas badger barley basin beacon beaver birch bison bloom breeze
    bridge brook canyon canoe cactus candle castle cedar cliff clover comet compass condor cove crane creek cricket
    crystal cypress daisy dawn delta dolphin dove dune eagle elk elm falcon fern ferry finch fjord flute forest fox
    garden geyser glacier glade grove gull harbor hare harp hawk hazel heron hill island iris ivy jasmine kestrel kite
    koala lagoon lake lantern lark laurel lemur lily linden lotus lynx magnolia mango maple marlin marten meadow mesa
    meteor mill moon moose moth nectar newt oak oasis ocean orbit orchid oriole osprey otter owl panda parrot pebble
    pelican pepper petal pine planet plum pond poplar prairie puffin quail quartz rabbit raven reef ridge river robin
    rocket rowan sail salmon seal shore sparrow spring spruce star stream summit sunset swan thistle tiger trail tulip
    turtle valley violet walnut walrus willow wren zebra
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)
