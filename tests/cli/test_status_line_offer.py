"""`fairlead hooks install` at a terminal offers the status line to those who have none: one key answers."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from select import select
from typing import TYPE_CHECKING

import pytest

from fairlead.cli.hooks.text import STATUS_LINE_OFFER

if TYPE_CHECKING:
    from pathlib import Path

INSTALL = ("-m", "fairlead", "hooks", "install", "--client-version", "2.1.325")
QUESTION = STATUS_LINE_OFFER.encode().splitlines()[-1]


def install(home: Path, key: bytes, *words: str) -> str:
    """Run it at a terminal, press the key when it is asked for, and return what is shown."""
    env = {"HOME": str(home), "FAIRLEAD_HOME": str(home / "state"), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    ours, theirs = pty.openpty()
    command = [sys.executable, *INSTALL, *words]
    process = subprocess.Popen(
        command, env=env, cwd=home, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    shown = b""
    while True:
        if not select([ours], [], [], 0.1)[0]:
            if key and shown.endswith(QUESTION):  # a key that comes before it listens is dropped
                os.write(ours, key)
            continue
        try:
            part = os.read(ours, 4096)
        except OSError:
            break
        shown += part
        if not part:
            break
    os.close(ours)
    assert process.wait() == 0, shown
    return shown.decode()


def status_line(home: Path) -> str:
    settings = json.loads((home / ".claude/settings.json").read_text())
    return str(settings.get("statusLine", {}).get("command", ""))


@pytest.mark.parametrize(("key", "is_wanted"), [(b"y", True), (b"Y", True), (b"n", False), (b"\r", False)])
def test_one_key_adds_the_status_line_or_leaves_it(tmp_path: Path, key: bytes, is_wanted: bool) -> None:
    assert QUESTION in install(tmp_path, key).encode()
    assert ("fairlead-hook StatusLine" in status_line(tmp_path)) == is_wanted


def test_who_has_one_or_said_what_they_want_is_not_asked(tmp_path: Path) -> None:
    assert QUESTION not in install(tmp_path, b"", "--no-status-line").encode()
    assert QUESTION not in install(tmp_path, b"", "--dry-run").encode()
    assert status_line(tmp_path) == ""
    assert QUESTION not in install(tmp_path, b"", "--status-line").encode()
    assert QUESTION not in install(tmp_path, b"").encode()
    assert "fairlead-hook StatusLine" in status_line(tmp_path)
