"""A lease, and who holds it."""

from __future__ import annotations

import os
import re

import msgspec

from fairlead.errors import FairleadError

_GLOB = re.compile(r"[*?\[{]")
PERSON = ""
"""The session of a lease that the user holds. Such a lease ends only when its time is up, or is released."""


class LeaseError(FairleadError):
    """A lease cannot be taken: the path is not valid, or others hold a lease on it."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lease. The agents of one session share their leases."""

    session: str = PERSON
    agent_id: str = ""
    """The id of a subagent. Its leases end with it."""
    name: str = ""
    """The agent's name when it took the lease."""
    host: str = ""
    """The name of another host of the team; empty for this one."""


class TeamGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a lease apply to the whole team. Names the files in a way that does not depend on a host's folders."""

    id: str
    project: str
    """The identity of the repository."""
    path: str
    """Relative to the root of the repository; empty for all of it. Or a pattern."""
    folder: str = ""
    """The folder that a pattern is relative to, with a slash at the end: `/` is the root. Empty for a path."""
    until: float = 0.0
    """When the lease ends, by the relay's clock."""

    @property
    def title(self) -> str:
        """The path, or the pattern with its folder, as people write it in the root of the repository."""
        return f"{self.folder}{self.path.lstrip('/')}".lstrip("/") or "."


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right of a holder to change a path or pattern until a time."""

    id: int
    path: str
    """An absolute path, which includes everything below it; or a gitignore pattern."""
    folder: str = ""
    """The folder that a pattern is relative to; empty for a path."""
    holder: Holder
    shared: bool = False
    """Whether others may hold shared leases on the same files, and change them."""
    why: str = ""
    since: float
    until: float
    grant: TeamGrant | None = None
    """Set if the lease applies to the whole team."""

    @property
    def title(self) -> str:
        """The path, or the pattern with its folder."""
        return f"{self.folder.rstrip('/')}/{self.path.lstrip('/')}" if self.folder else self.path

    @property
    def root(self) -> str:
        """The checkout of a team's lease, without a slash at the end; "" for a lease on this host only."""
        if self.grant is None:
            return ""
        path = self.folder.rstrip("/") if self.folder else self.path
        inside = self.grant.folder.rstrip("/") if self.folder else f"/{self.grant.path}".rstrip("/")
        return path.removesuffix(inside)


def lease_path(text: str, cwd: str) -> tuple[str, str]:
    """Return the path and the folder of a lease from the text of a command.

    A text with `*`, `?`, `[` or `{` is a pattern, unless a file has that name. Raises `LeaseError` if the text is
    empty, starts with `!`, or contains a NUL.
    """
    if not text.strip() or "\0" in text:
        raise LeaseError("a lease needs the path of a file or folder, or a pattern such as 'src/**/*.py'")
    if not os.path.isabs(cwd):
        raise LeaseError("a lease needs an absolute working folder, which its paths are relative to")
    if text.startswith("!"):
        raise LeaseError(f"{text!r}: a lease cannot leave files out; name what you work on")
    if _GLOB.search(text) and not os.path.lexists(os.path.join(cwd, text)):
        return text, cwd
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(text))), ""
