"""The identity of a repository, which is the same for its clones on all hosts.

It is read from the git configuration of the clone, without running git or any code of the repository. It is
`fairlead.project` if that is set, else the host and path in the URL of the remote `origin`, or of the only remote.
Included files and `insteadOf` are not supported.
"""

from __future__ import annotations

import os
import re
from stat import S_ISREG
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_CONFIG: Final = 256 * 1024
_MAX_IDENTITY: Final = 300
_SECTION: Final = re.compile(r'\s*\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\]\s*(.*)', re.DOTALL)
_ENTRY: Final = re.compile(r"\s*([A-Za-z][\w-]*)\s*=\s*(.*)", re.DOTALL)
_VALUE: Final = re.compile(r'(?:"(?:[^"\\]|\\.)*"|[^"#;\\]|\\.)*')
_URL: Final = re.compile(
    r"(?:ssh|git|https?|git\+ssh|ssh\+git|ftps?)://(?:[^/@]*@)?([^/:@]+)(?::\d*)?/(.+)", re.IGNORECASE
)
_SCP: Final = re.compile(r"(?:[^/:@]+@)?([^/:@]{2,}):(?!:)(.+)")
_ONLY_HERE: Final = re.compile(r"localhost|127(\.\d+){3}|\[?::1\]?", re.IGNORECASE)


class Checkout(NamedTuple):
    """A repository that is checked out on this host."""

    root: str
    """The folder of the working tree."""
    project: str
    """The identity of the repository; empty if it has none."""
    why: str = ""
    """The reason why it has no identity; empty if it has one."""


def find_checkout(root: str, git_folder: str) -> Checkout:
    """Return a checkout with its identity. `root` is its folder, `git_folder` the one with the git configuration."""
    entries = list(_entries(_read(f"{git_folder}/config")))
    named = [value for section, _, key, value in entries if (section, key) == ("fairlead", "project") and value]
    if named:
        name = _bounded(named[-1])
        return Checkout(root, f"name:{name}") if name else Checkout(root, "", "its fairlead.project is no plain text")
    remotes: dict[str, str] = {}
    for section, name, key, value in entries:
        if (section, key) == ("remote", "url"):
            remotes.setdefault(name, value)
    if not remotes:
        return Checkout(root, "", "its repository has no remote; name it: git config fairlead.project NAME")
    name = "origin" if "origin" in remotes else next(iter(remotes))
    if name != "origin" and len(remotes) > 1:
        return Checkout(root, "", "none of its remotes is origin; name it: git config fairlead.project NAME")
    identity = identity_of_url(remotes[name])
    why = f"the URL of {name} is one of this machine; name it: git config fairlead.project NAME"
    return Checkout(root, identity, "" if identity else why)


def identity_of_url(url: str) -> str:
    """Return the identity in a repository's URL, the same for all protocols: `git@host:a/b.git` → `host/a/b`.

    Return "" for a URL that is local, unknown, not printable or too long (`_MAX_IDENTITY`).
    """
    match = _URL.fullmatch(url.strip()) or (None if "://" in url else _SCP.fullmatch(url.strip()))
    if match is None or _ONLY_HERE.fullmatch(match[1]):
        return ""
    path = match[2].strip("/").removesuffix(".git").rstrip("/")
    return _bounded(f"{match[1].lower()}/{path}") if path else ""


def _bounded(text: str) -> str:
    return text if len(text) <= _MAX_IDENTITY and text.isprintable() else ""


def _entries(text: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the entries of a git configuration: section, subsection, key, value."""
    section = name = ""
    for line in text.replace("\r\n", "\n").replace("\\\n", "").split("\n"):
        rest = line
        if header := _SECTION.fullmatch(line):
            section, name, rest = header[1].lower(), re.sub(r"\\(.)", r"\1", header[2] or ""), header[3]
        if entry := _ENTRY.fullmatch(rest):
            yield section, name, entry[1].lower(), _value(entry[2])


def _value(text: str) -> str:
    """Return a value without quotes and comments."""
    match = _VALUE.match(text)
    return re.sub(r"\\(.)", r"\1", (match[0] if match else "").strip().replace('"', ""))


def _read(path: str) -> str:
    """Return the first `_MAX_CONFIG` bytes of a regular file; "" if it cannot be read, or is another kind of file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    with open(descriptor, "rb") as file:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return file.read(_MAX_CONFIG).decode("utf-8", "replace")
