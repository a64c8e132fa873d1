"""Switches to tmux panes, reads their last lines and sends keys to them.

`tmux` is the value of `$TMUX` in the pane, which names the server; `pane` is the id of the pane, such as `%3`. The
functions raise `NoPane` if the pane cannot be reached.
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress

from fairlead.errors import FairleadError
from fairlead.text import one_line, printable

_PANE = re.compile(r"%\d+")
_TIMEOUT = 3.0


class NoPane(FairleadError):
    """A pane cannot be reached. The message has the reason."""


async def go_to_pane(tmux: str, pane: str) -> str:
    """Switch to a pane, and return a message to the user.

    The window and the pane are selected first, so that a terminal that is attached later shows the pane.
    """
    server = _Server(tmux, pane)
    window = await server.window()
    await server.run("select-window", "-t", pane)
    await server.run("select-pane", "-t", pane)
    try:
        await server.run("switch-client", "-t", pane)
    except NoPane:
        return f"selected pane {pane}, but no terminal shows it; run: tmux -S {server.socket} attach -t {window}"
    return f"switched to {window}, pane {pane}"


async def capture_pane(tmux: str, pane: str, lines: int) -> list[str]:
    """Return at most `lines` lines from the end of a pane, without control characters."""
    server = _Server(tmux, pane)
    await server.window()
    content = await server.run("capture-pane", "-p", "-t", pane)
    return [printable(line.rstrip()) for line in content.rstrip().splitlines()][-lines:]


async def pane_process(tmux: str, pane: str) -> int:
    """Return the pid of the process that tmux started in a pane; 0 if it is not known."""
    server = _Server(tmux, pane)
    await server.window()
    pid = (await server.run("display-message", "-p", "-t", pane, "#{pane_pid}")).strip()
    return int(pid) if pid.isdecimal() else 0


async def send_keys(tmux: str, pane: str, keys: tuple[str, ...]) -> None:
    """Press keys in a pane, given by tmux's names. Copy mode is left before, because it would receive the keys."""
    server = _Server(tmux, pane)
    with suppress(NoPane):  # the pane is not in copy mode
        await server.run("send-keys", "-X", "-t", pane, "cancel")
    await server.run("send-keys", "-t", pane, *keys)


async def set_buffer(text: str) -> None:
    """Put a text into tmux's paste buffer and the clipboard, if the view runs in tmux. Errors are ignored.

    By default, tmux ignores the request of a program to set the clipboard. Old versions lack `-w`, which sets it.
    """
    tmux = os.environ.get("TMUX", "")
    for words in (("-w", "--", text), ("--", text)) if tmux else ():
        with suppress(NoPane):
            await _Server(tmux, os.environ.get("TMUX_PANE", "%0")).run("set-buffer", *words)
            return


class _Server:
    """A tmux server and one of its panes. The server is identified by its socket: `$TMUX` is `socket,pid,session`."""

    def __init__(self, tmux: str, pane: str) -> None:
        if not pane:
            raise NoPane("this session does not run in tmux, or its pane is not known")
        self.socket = re.sub(r",\d+,\d+$", "", tmux)
        if not _PANE.fullmatch(pane) or not self.socket.startswith("/"):
            raise NoPane(f"not a tmux pane: {one_line(pane)} at {one_line(tmux) or 'no socket'}")
        self._pane = pane

    async def window(self) -> str:
        """Return the session and window of the pane as `NAME:INDEX`. Raises `NoPane` if the pane is gone."""
        target = ("-t", self._pane, "#{pane_id} #{session_name}:#{window_index}")
        pane, _, window = (await self.run("display-message", "-p", *target)).strip().partition(" ")
        if pane != self._pane:  # if the target is missing, tmux may answer for another pane
            raise NoPane(f"the pane {self._pane} is gone")
        return one_line(window)

    async def run(self, *words: str) -> str:
        """Run one tmux command and return its output. Raises `NoPane` if it fails."""
        env = dict(os.environ)
        if not env.get("TMUX", "").startswith(f"{self.socket},"):  # the view does not run in this server
            env.pop("TMUX", None)
            env.pop("TMUX_PANE", None)
        try:
            process = await asyncio.create_subprocess_exec(
                *("tmux", "-N", "-S", self.socket, *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
            )
        except OSError:
            raise NoPane("tmux is not installed here") from None
        try:
            output, errors = await asyncio.wait_for(process.communicate(), _TIMEOUT)
        except TimeoutError:
            process.kill()
            await process.wait()
            raise NoPane("tmux does not answer") from None
        if process.returncode:
            raise NoPane(self._explain(one_line(errors.decode(errors="replace"))))
        return output.decode(errors="replace")

    def _explain(self, error: str) -> str:
        if "find pane" in error or "find window" in error:
            return f"the pane {self._pane} is gone"
        if "no server" in error or "error connecting" in error or "server exited" in error:
            return f"the tmux of this session is gone ({self.socket})"
        return f"tmux: {error}"
