"""Where the real clients come from: the newest with the SDK, the oldest by npm, for no release of the SDK brings it.

Nothing is run here but npm, which is told to run no scripts: a client is only for `sealed.run`.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from e2e import sealed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

OLDEST = "2.1.197"
"""The oldest that hooks are installed for, and whose events are known."""

_PACKAGE = "@anthropic-ai/claude-code"
PATIENCE = 300.0
"""Seconds for 75 MB."""


class Unavailable(Exception):
    """It cannot be had here."""


def newest() -> Path:
    """Give the client that the SDK's wheel brings."""
    if reason := sealed.impossible():
        raise Unavailable(reason)
    sdk = find_spec("claude_agent_sdk")
    if sdk is None or sdk.origin is None:
        raise Unavailable("claude-agent-sdk is not installed")
    bundled = Path(sdk.origin).with_name("_bundled") / "claude"
    if not os.access(bundled, os.X_OK):
        raise Unavailable("this platform's claude-agent-sdk brings no client")
    return bundled


def oldest(say: Callable[[str], None]) -> Path:
    """Give the oldest; download it if it is not there. Of several processes one does and says so, the others wait."""
    if reason := sealed.impossible():
        raise Unavailable(reason)
    with _alone():
        return _kept() or _fetch(say)


def _kept() -> Path | None:
    return next((file for file in sorted(_folder().glob("node_modules/*/claude-code-*/claude"))), None)


def _fetch(say: Callable[[str], None]) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Unavailable(f"Claude Code {OLDEST} is only to be had by npm, which is not installed")
    say(f"Getting Claude Code {OLDEST} for the tests: 75 MB, only the first time")
    begun = _folder().with_name(f"{_folder().name}.begun")
    shutil.rmtree(begun, ignore_errors=True)
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(begun), *quiet, f"{_PACKAGE}@{OLDEST}"]
    try:
        done = subprocess.run(
            command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"npm did not get Claude Code {OLDEST} within {PATIENCE:g} s") from None
    if done.returncode:
        raise Unavailable(f"npm cannot get Claude Code {OLDEST}: {done.stderr.strip()[-500:]}")
    begun.rename(_folder())
    found = _kept()
    if found is None:
        raise Unavailable(f"Claude Code {OLDEST} has no build for this platform")
    return found


def _folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "fairlead-tests" / f"claude-code-{OLDEST}"


@contextmanager
def _alone() -> Iterator[None]:
    _folder().parent.mkdir(parents=True, exist_ok=True)
    with _folder().with_name(f"{_folder().name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
