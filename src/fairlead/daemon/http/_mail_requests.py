"""What the mail can be asked over HTTP: the shapes of requests. What a newer command adds to them is not looked at."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid4

import msgspec

from fairlead.daemon.mail._caller_identity import Claim
from fairlead.mail import Intent, Priority

LONGEST_WAIT = 86400.0
LARGEST_ID = 2**62
"""No database counts further."""

_Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
_Id = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_ID)]


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Who somebody says it is, and where."""

    name: str = msgspec.field(name="as", default="")
    session: str = ""
    variable: str = ""
    cwd: str = ""

    def claim(self) -> Claim:
        """Say who it claims to be."""
        return Claim(self.name, self.session, self.variable, self.cwd)


class Send(Ask, frozen=True, kw_only=True):
    """A message."""

    to: tuple[str, ...]
    subject: str = ""
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class Reply(Ask, frozen=True, kw_only=True):
    """An answer."""

    body: str
    subject: str = ""
    all: bool = False
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class Inbox(Ask, frozen=True, kw_only=True):
    """A page of messages."""

    all: bool = False
    sender: str = msgspec.field(name="from", default="")
    search: str = ""
    limit: _Count = 20
    before: _Id = 0


class Poll(Ask, frozen=True, kw_only=True):
    """What has come, or comes within so many seconds."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT)] = 0.0
    format: Literal["text", "json", "hook", "context"] = "json"
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = msgspec.field(default_factory=lambda: uuid4().hex)
    """By which it can be undone."""
    undo: str = ""
    """What was given under this id was not printed: it is to be shown again."""


class Agents(Ask, frozen=True, kw_only=True):
    """Who is there."""

    all: bool = False
    project: str = ""


class Heartbeat(Ask, frozen=True, kw_only=True):
    """A sign of life."""

    start: bool = False

    def claim(self) -> Claim:
        """Say who it claims to be; a session may begin by it."""
        return msgspec.structs.replace(super().claim(), is_start=self.start)


class Identity(Ask, frozen=True, kw_only=True):
    """Something about oneself."""

    action: Literal["save", "restore", "rename"]
    new: str = ""
    """The new name."""
    status: str = ""


class Tasks(Ask, frozen=True, kw_only=True):
    """What is left to be done."""

    all: bool = False
    folder: str = ""
    """The client's."""


class Listen(Ask, frozen=True, kw_only=True):
    """To listen to a topic, or no more."""

    action: Literal["join", "leave"]
    topic: str
