"""Exports the session's id to the shell commands of the session, as a line in `CLAUDE_ENV_FILE`, which they read."""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_ISREG

from fairlead.clients.claude._environment import SESSION_ID

_EXPORT = f"export {SESSION_ID[1]}="
_MAX_SIZE = 1024 * 1024
"""The maximum size in bytes. Larger files are not changed."""


def export_session(path: str, session: str, cwd: str = "") -> bool:
    """Append `export CLAUDE_SESSION_ID='...'`, unless the last such line is equal. Return whether it is there now.

    Only a regular file of this user is written, also through a link. A relative path is resolved from `cwd`. Never
    raises, because a session works without the variable.
    """
    if not path or not session or "\0" in session + path:
        return False
    quoted = session.replace("'", "'\\''")
    line = f"{_EXPORT}'{quoted}'\n".encode(errors="replace")
    with suppress(OSError, UnicodeEncodeError):  # the path may have a surrogate that stands for no byte
        descriptor = _open(os.path.join(cwd, path))
        try:
            status = os.fstat(descriptor)
            if not S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_size > _MAX_SIZE:
                return False
            return _append(descriptor, line)
        finally:
            os.close(descriptor)
    return False


def _open(path: str) -> int:
    """Open the file, or create it. The target of a dangling link is not created."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)


def _append(descriptor: int, line: bytes) -> bool:
    content = os.pread(descriptor, _MAX_SIZE + 1, 0)
    last = (b"\n" + content).rfind(f"\n{_EXPORT}".encode())
    if last >= 0 and content[last:].startswith(line):
        return True
    whole = line if not content or content.endswith(b"\n") else b"\n" + line
    return os.write(descriptor, whole) == len(whole)
