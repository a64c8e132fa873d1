"""Switches to a tmux pane, and reads its last lines: by the pane's id, on the server that the session runs in."""

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
    """The pane cannot be reached; the message says why."""


async def jump(tmux: str, pane: str) -> str:
    """Bring a pane to the front, and return a message that says so.

    The window and the pane are selected first, which lasts for a client that attaches later, even if none is attached.
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


async def peek(tmux: str, pane: str, lines: int) -> list[str]:
    """Return the last lines of a pane, safe to show."""
    server = _Server(tmux, pane)
    await server.window()
    content = await server.run("capture-pane", "-p", "-t", pane)
    return [printable(line.rstrip()) for line in content.rstrip().splitlines()][-lines:]


async def pane_process(tmux: str, pane: str) -> int:
    """Return the pid of the process that a pane was opened with. Raises `NoPane` if the pane is gone."""
    server = _Server(tmux, pane)
    await server.window()
    pid = (await server.run("display-message", "-p", "-t", pane, "#{pane_pid}")).strip()
    return int(pid) if pid.isdecimal() else 0


async def send_keys(tmux: str, pane: str, keys: tuple[str, ...]) -> None:
    """Press keys in a pane, by tmux's names. A pane that shows its history would take them, so it leaves that first."""
    server = _Server(tmux, pane)
    with suppress(NoPane):  # it is in no such mode
        await server.run("send-keys", "-X", "-t", pane, "cancel")
    await server.run("send-keys", "-t", pane, *keys)


async def set_buffer(text: str) -> None:
    """Put a text into tmux's paste buffer and the clipboard, if the view runs in tmux.

    With its default settings tmux does not pass a program's own request for the clipboard on. Old ones lack `-w`.
    """
    tmux = os.environ.get("TMUX", "")
    for words in (("-w", "--", text), ("--", text)) if tmux else ():
        with suppress(NoPane):
            await _Server(tmux, os.environ.get("TMUX_PANE", "%0")).run("set-buffer", *words)
            return


class _Server:
    """One tmux server, by its socket: `$TMUX` is `socket,pid,session`."""

    def __init__(self, tmux: str, pane: str) -> None:
        if not pane:
            raise NoPane("this session does not run in tmux, or its pane is not known")
        self.socket = re.sub(r",\d+,\d+$", "", tmux)
        if not _PANE.fullmatch(pane) or not self.socket.startswith("/"):
            raise NoPane(f"not a tmux pane: {one_line(pane)} at {one_line(tmux) or 'no socket'}")
        self._pane = pane

    async def window(self) -> str:
        """Return the pane's session and window. Raises `NoPane` if the pane is gone."""
        target = ("-t", self._pane, "#{pane_id} #{session_name}:#{window_index}")
        pane, _, window = (await self.run("display-message", "-p", *target)).strip().partition(" ")
        if pane != self._pane:  # where a target is missing, tmux may answer for another
            raise NoPane(f"the pane {self._pane} is gone")
        return one_line(window)

    async def run(self, *words: str) -> str:
        """Run one tmux command and return its output."""
        env = dict(os.environ)
        if not env.get("TMUX", "").startswith(f"{self.socket},"):  # the view runs in another server, or in none
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
