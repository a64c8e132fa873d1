"""Runs a command as a user does: in this process through the same entry point, or at a terminal."""

from __future__ import annotations

import os
import pty
import subprocess
from typing import TYPE_CHECKING

from fairlead.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import pytest


def run(command: str, args: Sequence[str] = ()) -> int:
    """Run a command and return its exit code."""
    return main([*command.split(), *args])


def error_of(capsys: pytest.CaptureFixture[str], command: str, args: Sequence[str] = ()) -> str:
    """Return the one line that a command prints which fails with exit code 1."""
    assert run(command, args) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("fairlead: ")
    assert err.count("\n") == 1
    return err.removeprefix("fairlead: ").removesuffix("\n")


def at_terminal(words: Sequence[str | Path], env: Mapping[str, str], typed: bytes, cwd: Path | None = None) -> str:
    """Run a command at a terminal of its own, where somebody types, and return what it shows."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        words, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    os.write(ours, typed)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        if not part:
            break
        shown += part
    process.wait()
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")
