"""Goes to a tmux pane, and looks at its last lines. By the pane's exact id, on the server that the session runs in."""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import suppress

from fairlead.errors import FairleadError
from fairlead.text import harmless

_PANE = re.compile(r"%\d+")
_SPACES = re.compile("( +)")
_PATIENCE = 3.0


class NoPane(FairleadError):
    """There is no pane to go to; the text says why."""


async def jump(tmux: str, pane: str) -> str:
    """Bring a pane to the front, and say what was done.

    The window and the pane are chosen first: that holds for whoever attaches later, even if nobody is attached now.
    """
    server = _Server(tmux, pane)
    where = await server.where()
    await server.tell("select-window", "-t", pane)
    await server.tell("select-pane", "-t", pane)
    try:
        await server.tell("switch-client", "-t", pane)
    except NoPane:
        return f"{pane} is chosen, but no terminal shows it; run: tmux -S {server.socket} attach -t {where}"
    return f"went to {where}, pane {pane}"


async def peek(tmux: str, pane: str, lines: int) -> list[str]:
    """Give the last lines of a pane, as text that is safe to show."""
    server = _Server(tmux, pane)
    await server.where()
    told = await server.tell("capture-pane", "-p", "-t", pane)
    shown = [_line(line) for line in told.rstrip().splitlines()]
    return shown[-lines:]


async def keep(text: str) -> None:
    """Put a text where tmux pastes from, and into the clipboard, if the view runs in one.

    A tmux with its usual settings does not let those in it reach the clipboard by themselves. Older ones know no `-w`.
    """
    tmux = os.environ.get("TMUX", "")
    for words in (("-w", "--", text), ("--", text)) if tmux else ():
        with suppress(NoPane):
            await _Server(tmux, os.environ.get("TMUX_PANE", "%0")).tell("set-buffer", *words)
            return


def _line(line: str) -> str:
    """Make a line harmless, and leave all of it where it stands: it is a picture, made with spaces."""
    return "".join(part if part.isspace() else harmless(part) for part in _SPACES.split(line.rstrip()))


class _Server:
    """One tmux server, by its socket: `$TMUX` is `socket,pid,session`."""

    def __init__(self, tmux: str, pane: str) -> None:
        if not pane:
            raise NoPane("this session does not run in tmux, or its pane is not known")
        self.socket = re.sub(r",\d+,\d+$", "", tmux)
        if not _PANE.fullmatch(pane) or not self.socket.startswith("/"):
            raise NoPane(f"not a tmux pane: {harmless(pane)} at {harmless(tmux) or 'no socket'}")
        self._pane = pane

    async def where(self) -> str:
        """Name the pane's session and window, which also tells that the pane is there."""
        told = await self.tell("display-message", "-p", "-t", self._pane, "#{pane_id} #{session_name}:#{window_index}")
        found, _, where = told.strip().partition(" ")
        if found != self._pane:  # where a target is missing, tmux may answer for another
            raise NoPane(f"the pane {self._pane} is gone")
        return harmless(where)

    async def tell(self, *words: str) -> str:
        """Run one tmux command. Where the view runs in another server, that one's client is not meant."""
        env = dict(os.environ)
        if not env.get("TMUX", "").startswith(f"{self.socket},"):
            env.pop("TMUX", None)
            env.pop("TMUX_PANE", None)
        try:
            program = await asyncio.create_subprocess_exec(
                *("tmux", "-N", "-S", self.socket, *words),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=env,
            )
        except OSError:
            raise NoPane("tmux is not installed here") from None
        try:
            out, errors = await asyncio.wait_for(program.communicate(), _PATIENCE)
        except TimeoutError:
            program.kill()
            await program.wait()
            raise NoPane("tmux does not answer") from None
        if program.returncode:
            raise NoPane(self._why(harmless(errors.decode(errors="replace"))))
        return out.decode(errors="replace")

    def _why(self, said: str) -> str:
        if "find pane" in said or "find window" in said:
            return f"the pane {self._pane} is gone"
        if "no server" in said or "error connecting" in said or "server exited" in said:
            return f"the tmux of this session is gone ({self.socket})"
        return f"tmux: {said}"
