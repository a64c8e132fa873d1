"""Makes new inputs from known ones: of bytes, of JSON values, of words."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

PAYLOADS = [path.read_bytes() for path in sorted((Path(__file__).parents[1] / "payloads" / "claude").glob("*/*.json"))]
"""As the client sent them."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1e308, 2**63, 10**30, "", "x", "\ud83d", "\x00", "é" * 300, [], {}, [[]], {"": {}}),
    *("../../etc/passwd", "~", "a\nb", "\u2028", '"', "\\", "${HOME}", "$(id)", "-rf", {"zz": 1}, [None], "9" * 400),
)
WORDS = (
    "token",
    "secret-",
    "-eyJ",
    "api_key_",
    "://a:",
    "\ud83d",
    '\\"',
    "../",
    "{a,",
    "$(",
    "'",
    "a\n",
    "<!--",
    "&amp;",
)
"""Repeated some thousand times: what takes a time that grows with the square of a text shows by these."""
LONG = 14_000
BYTES = (b"\x00", b"\xff", b"\r\n", b"\n", b'"', b"\\", b"{", b"[", b"\\ud83d", b"1e999", b"\xed\xa0\x80", b": ", b"")


def mutate_bytes(data: bytes, random: Random) -> bytes:
    """Flip, insert, remove, repeat or cut some bytes."""
    changed = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at, kind = random.randint(0, len(changed)), random.randrange(6)
        if kind == 0 and at < len(changed):
            changed[at] ^= 1 << random.randrange(8)
        elif kind == 1:
            changed[at:at] = random.choice(BYTES)
        elif kind == 2:
            del changed[at : at + random.randint(1, 20)]
        elif kind == 3:
            changed[at:at] = changed[at : at + random.randint(1, 40)] * random.randint(1, 20)
        elif kind == 4:
            del changed[at:]
        else:
            changed[at : at + 1] = random.randbytes(1)
    return bytes(changed)


def mutate_json(data: bytes, random: Random) -> bytes:
    """Replace, add and remove fields, at any depth; now and then the bytes themselves."""
    if random.random() < 0.2:
        return mutate_bytes(data, random)
    document = json.loads(data)
    for _ in range(random.randint(1, 3)):
        _mutate_value(document, random)
    return json.dumps(document).encode()


def _mutate_value(value: Any, random: Random) -> None:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    if not keys:
        return
    key = random.choice(keys)
    if isinstance(value[key], dict | list) and random.random() < 0.6:
        _mutate_value(value[key], random)
    elif random.random() < 0.15 and isinstance(value, dict):
        del value[key]
    elif random.random() < 0.3 and isinstance(value, dict):
        value[random.choice(("zz", "cwd", "extra", "", "tool_input", "agent_id"))] = deepcopy(random.choice(VALUES))
    else:
        value[key] = deepcopy(random.choice(VALUES)) if random.random() < 0.995 else _long_text(random)


def _long_text(random: Random) -> str:
    word = "".join(random.choice(WORDS) for _ in range(random.randint(1, 2)))
    return word * (LONG // len(word))
