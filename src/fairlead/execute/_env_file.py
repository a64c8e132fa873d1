"""Exports the session id to the shells of a session, through the file that the client has its commands source."""

from __future__ import annotations

import os
from contextlib import suppress
from stat import S_ISREG

_EXPORT = "export CLAUDE_SESSION_ID="
_LARGEST = 1024 * 1024
"""Bytes. A larger file is something else."""


def export_session(path: str, session: str, cwd: str = "") -> bool:
    """Append `export CLAUDE_SESSION_ID='...'` unless the last such line has that value. Returns whether it has it now.

    Only a regular file of this user is written. `cwd` is what the path is relative to. Raises nothing: a session works
    without it.
    """
    if not path or not session or "\0" in session + path:
        return False
    quoted = session.replace("'", "'\\''")
    line = f"{_EXPORT}'{quoted}'\n".encode(errors="replace")
    with suppress(OSError):
        descriptor = _opened(os.path.join(cwd, path))
        try:
            about = os.fstat(descriptor)
            if not S_ISREG(about.st_mode) or about.st_uid != os.geteuid() or about.st_size > _LARGEST:
                return False
            return _append(descriptor, line)
        finally:
            os.close(descriptor)
    return False


def _opened(path: str) -> int:
    """Open the file or create it. The target of a dangling link is not created."""
    flags = os.O_RDWR | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except FileNotFoundError:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)


def _append(descriptor: int, line: bytes) -> bool:
    content = os.pread(descriptor, _LARGEST + 1, 0)
    last = (b"\n" + content).rfind(f"\n{_EXPORT}".encode())
    if last >= 0 and content[last:].startswith(line):
        return True
    whole = line if not content or content.endswith(b"\n") else b"\n" + line
    return os.write(descriptor, whole) == len(whole)
