"""The bodies of HTTP requests to the mail. Unknown fields of newer commands are ignored."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import uuid4

import msgspec

from fairlead.daemon.mail._caller_identity import Claim
from fairlead.mail import Intent, Priority

MAX_WAIT = 86400.0
"""In seconds."""
MAX_ID = 2**62
"""Larger than the id of any message in a database."""

_Count = Annotated[int, msgspec.Meta(ge=1, le=200)]
_Id = Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)]


class MailRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of all requests: who the caller claims to be, and its folder."""

    name: str = msgspec.field(name="as", default="")
    session: str = ""
    variable: str = ""
    cwd: str = ""

    def claim(self) -> Claim:
        """Return who the caller claims to be."""
        return Claim(self.name, self.session, self.variable, self.cwd)


class Send(MailRequest, frozen=True, kw_only=True):
    """Send a message."""

    to: tuple[str, ...]
    subject: str = ""
    body: str = ""
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class Reply(MailRequest, frozen=True, kw_only=True):
    """Reply to a message."""

    body: str
    subject: str = ""
    all: bool = False
    priority: Priority = "normal"
    intent: Intent = "inform"
    deadline: float = 0.0
    key: str = ""


class Inbox(MailRequest, frozen=True, kw_only=True):
    """Read a page of the inbox."""

    all: bool = False
    sender: str = msgspec.field(name="from", default="")
    search: str = ""
    limit: _Count = 20
    before: _Id = 0


class Poll(MailRequest, frozen=True, kw_only=True):
    """Return new mail, or wait for it."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=MAX_WAIT)] = 0.0
    format: Literal["text", "json", "hook", "context"] = "json"
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=100)] = msgspec.field(default_factory=lambda: uuid4().hex)
    """Identifies the poll, so that it can be undone."""
    receipt: bool = False
    """Whether the caller gives a receipt when it has printed the mail (`ipc.give_receipt`)."""
    undo: str = ""
    """The id of a poll whose mail was not printed and is to be queued again."""


class Agents(MailRequest, frozen=True, kw_only=True):
    """List agents."""

    all: bool = False
    project: str = ""


class Heartbeat(MailRequest, frozen=True, kw_only=True):
    """Mark the session as alive."""

    start: bool = False

    def claim(self) -> Claim:
        """Return who the caller claims to be. With `start`, the session is created if it does not exist."""
        return msgspec.structs.replace(super().claim(), is_start=self.start)


class Identity(MailRequest, frozen=True, kw_only=True):
    """Change the identity of an agent."""

    action: Literal["save", "restore", "rename"]
    new: str = ""
    """The new name."""
    status: str = ""


class Tasks(MailRequest, frozen=True, kw_only=True):
    """List the tasks of a session."""

    all: bool = False
    folder: str = ""
    """The folder with the client's task lists."""


class Listen(MailRequest, frozen=True, kw_only=True):
    """Join or leave a topic."""

    action: Literal["join", "leave"]
    topic: str
