"""What a launcher asks: the headers of its request, read into one value."""

from __future__ import annotations

import os
from itertools import count
from time import time_ns
from typing import TYPE_CHECKING
from urllib.parse import unquote

import msgspec

from fairlead.clients import client_or_default
from fairlead.events import DEFAULT_CLIENT, HookEvent
from fairlead.journal import Caller
from fairlead.paths import SETTLING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LONGEST_NUMBER = 15
_numbers = count()


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One event to decide, without its payload."""

    event: str
    client: str = DEFAULT_CLIENT
    id: str = ""
    cwd: str = "/"
    env: dict[str, str] = {}
    """The variables that the launcher passes on, as far as they are set."""
    launched: bool = False
    """A launcher asks: it always says what its variables are."""
    acks: bool = False
    """It says when it has printed the answer."""
    caller: Caller = Caller()


def read_request(word: str, query: bytes, headers: Iterable[tuple[bytes, bytes]]) -> HookRequest:
    """Read a request. Of what is missing or odd, the usual is taken: the payload alone decides the event."""
    told = {name: value.decode("latin-1") for name, value in headers if name.startswith(b"fairlead-")}
    env = read_env(told.get(b"fairlead-env", ""))
    name = told.get(b"fairlead-id") or f"{time_ns():016x}-0-{next(_numbers):x}"
    event, client = read_target(word, query)
    variables = client_or_default(client).variables
    caller = Caller(
        pid=_number(told.get(b"fairlead-pid")),
        start=_number(told.get(b"fairlead-start")),
        pane=env.get("TMUX_PANE", ""),
        tmux=env.get("TMUX", ""),
        project=env.get(variables.project_dir, ""),
        env_file=env.get(variables.env_file, ""),
        version=told.get(b"fairlead-version", ""),
    )
    cwd = unquote(told.get(b"fairlead-cwd", "/"), errors="surrogateescape")
    return HookRequest(
        event=event,
        client=client,
        id=name,
        cwd=cwd,
        env=env,
        launched=b"fairlead-env" in told,
        acks=told.get(b"fairlead-acks") == "1",
        caller=caller,
    )


def read_target(word: str, query: bytes) -> tuple[str, str]:
    """Read which event of which client is asked for."""
    known = HookEvent.find(word)
    client = query.removeprefix(b"client=").decode("latin-1") if query.startswith(b"client=") else DEFAULT_CLIENT
    return known.value if known else word, client


def read_env(text: str) -> dict[str, str]:
    """Read the variables: `NAME=percent-encoded;...`."""
    pairs = (item.partition("=") for item in text.split(";") if item)
    return {name: unquote(value, errors="surrogateescape") if "%" in value else value for name, _, value in pairs}


def is_same_home(ask: HookRequest, own: Mapping[str, str]) -> bool:
    """Tell whether who asks has the same folders as this daemon: else it would be told another's policy."""
    for name, value in own.items():
        if ask.env.get(name, "") != value:
            return own == home_of(ask.env, ask.cwd)
    return True


def home_of(env: Mapping[str, str], cwd: str) -> dict[str, str]:
    """Give what settles the folders of a process; Fairlead's own may be named relative to where it is."""
    home = {name: env.get(name, "") for name in SETTLING}
    if own := home["FAIRLEAD_HOME"]:
        home["FAIRLEAD_HOME"] = os.path.abspath(os.path.join(cwd, own))
    return home


def is_newer(theirs: str, ours: str) -> bool:
    """Tell whether a version is newer than another; what is no version is not."""
    return theirs != ours and _parts(theirs) > _parts(ours)


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _number(text: str | None) -> int:
    return int(text) if text and text.isdigit() and len(text) <= _LONGEST_NUMBER else 0
