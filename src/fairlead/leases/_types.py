"""A lease, and who holds it."""

from __future__ import annotations

import os
import re

import msgspec

from fairlead.errors import FairleadError

_GLOB = re.compile(r"[*?\[{]")
PERSON = ""
"""The value of `Holder.session` for the user, whose leases end only when their time is up or they are released."""


class LeaseError(FairleadError):
    """A lease cannot be taken. The message says why, such as an invalid path or too many leases."""


class Holder(msgspec.Struct, frozen=True):
    """Who holds a lease. The agents of one session share their leases."""

    session: str = PERSON
    agent_id: str = ""
    """The id of the subagent that took the lease; "" for none. The lease ends when the subagent ends."""
    name: str = ""
    """The agent's name when it took the lease."""
    host: str = ""
    """The name of the holder's host; "" for this host."""


class TeamGrant(msgspec.Struct, frozen=True, kw_only=True):
    """Makes a lease apply to the whole team. Identifies the files independently of the folders of any host."""

    id: str
    project: str
    """The identity of the repository."""
    path: str
    """A path relative to the root of the repository, empty for all of it; or a pattern if `folder` is set."""
    folder: str = ""
    """The folder that a pattern is relative to, with a slash at the end: `/` is the root. Empty for a path."""
    until: float = 0.0
    """When the lease ends, by the relay's clock."""

    @property
    def title(self) -> str:
        """The path, or the pattern with its folder, relative to the root of the repository, which is "."."""
        return f"{self.folder}{self.path.lstrip('/')}".lstrip("/") or "."


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """The right of a holder to change the files of a path or pattern until a time."""

    id: int
    path: str
    """An absolute path, which includes everything below it; or a gitignore pattern."""
    folder: str = ""
    """The folder that a pattern is relative to; empty for a path."""
    holder: Holder
    shared: bool = False
    """Whether others may hold shared leases on the same files, and change them."""
    why: str = ""
    """Why the holder needs the files, as text for other agents and people."""
    since: float
    """In Unix time; 0 for a lease of another host."""
    until: float
    """In Unix time."""
    grant: TeamGrant | None = None
    """Set if the lease applies to the whole team."""

    @property
    def title(self) -> str:
        """The path, or the pattern with its folder."""
        return f"{self.folder.rstrip('/')}/{self.path.lstrip('/')}" if self.folder else self.path

    @property
    def root(self) -> str:
        """The folder of the checkout on this host, without a slash at the end; "" unless the lease is for the team."""
        if self.grant is None:
            return ""
        path = self.folder.rstrip("/") if self.folder else self.path
        inside = self.grant.folder.rstrip("/") if self.folder else f"/{self.grant.path}".rstrip("/")
        return path.removesuffix(inside)


def lease_path(text: str, cwd: str) -> tuple[str, str]:
    """Return `Lease.path` and `Lease.folder` for a path or pattern on a command line, relative to `cwd`.

    A text with `*`, `?`, `[` or `{` is a pattern, unless a file has that name. The folder of a path is "". Raises
    `LeaseError` if the text is empty, starts with `!` or contains a NUL, or if `cwd` is not absolute.
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
