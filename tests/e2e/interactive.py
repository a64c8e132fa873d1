"""A person at the real client: it runs in a terminal, in a sealed room; the person reads the screen and presses keys.

    gate = Gate(machine.folder / "answer")
    with at_terminal(machine, script=[gate.before("Here it is.")]) as person:
        person.prompts("What is it?")     # typed, and sent when it is on the screen
        gate.is_reached()                 # the model is asked, and does not answer before the gate is opened
        gate.opens()
        person.sees("Here it is.")        # waits until the screen shows it
        person.is_idle()                  # waits until the client says so itself
        person.answers("Proceed?", "Enter")  # when it is asked; pressed until the client has heard
        person.presses("Escape")          # any key by tmux's name of it
        person.fairlead("sessions")       # a command beside the client, in the same room
        view = person.watches()           # a second terminal, with `fairlead watch`
        other = person.starts_another()   # another one, with a second client
        person.leaves()                   # /exit, and waits until the client has ended

Whatever is waited for is looked at again and again until it is so; if it never is, the last screen is shown. The
terminal is tmux's: it draws what the client writes, and so shows what a person would see.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from e2e.conftest import unavailable
from e2e.model import after
from e2e.room import room

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from e2e.installed import Machine
    from e2e.model import Meanwhile, Script, Subagents, ToolCall
    from e2e.room import Room

PATIENCE = 40.0
"""Seconds for anything that is waited for: far more than it takes on a busy machine."""

_HEARS_WITHIN = 1.0
_EXITS_WITHIN = 5.0
_LOOK_INTERVAL = 0.1
_WIDE, _HIGH = "160", "50"
_READY = "? for shortcuts"


@dataclass(frozen=True)
class Gate:
    """Holds something back until the test lets it through: an answer of the model, or a command of the client's."""

    file: Path

    def before(self, turn: str | list[ToolCall]) -> Meanwhile:
        """Answer so, but only when the gate is open."""
        return after(self.command, turn)

    @property
    def command(self) -> str:
        """The shell command that says that it is here, and ends when the gate is open."""
        return f"touch {self.file}.reached; until [ -e {self.file}.open ]; do sleep 0.02; done"

    def is_reached(self) -> None:
        """Wait until something stands before it."""
        _until(lambda: self.file.with_name(f"{self.file.name}.reached").exists(), f"{self.file.name} is reached")

    def opens(self) -> None:
        """Let it through."""
        self.file.with_name(f"{self.file.name}.open").touch()


@dataclass(frozen=True)
class Terminal:
    """A terminal and who sits before it. Each method comes back when what it says is so."""

    machine: Machine
    room: Room
    pane: str
    """By tmux's name of it."""

    @property
    def screen(self) -> str:
        """What the terminal shows now."""
        return self._tmux("capture-pane", "-p")

    def sees(self, text: str) -> None:
        """Wait until the text is on the screen."""
        self.until(lambda: text in self.screen, f"{text!r} is on the screen")

    def sees_no_more(self, text: str) -> None:
        """Wait until the text is no longer on the screen."""
        self.until(lambda: text not in self.screen, f"{text!r} is gone from the screen")

    def types(self, text: str) -> None:
        """Type a text, and wait until it is on the screen: an Enter that comes with it would be part of it."""
        before = self.screen.count(text)
        self._tmux("send-keys", "-l", text)
        self.until(lambda: self.screen.count(text) > before, f"{text!r} is typed")

    def presses(self, *keys: str) -> None:
        """Press keys, by the names that tmux has for them: Enter, Escape, Down, C-c."""
        self._tmux("send-keys", *keys)

    def closes(self) -> None:
        """Close the terminal."""
        self._tmux("kill-pane")

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Wait until something holds."""
        _until(holds, what, lambda: self.screen)

    def _tmux(self, command: str, *words: str) -> str:
        """Run a command of tmux's about this terminal."""
        return _tmux(self.machine, self.room, command, "-t", self.pane, *words)

    def _opens(self, program: Path, *words: str) -> str:
        """Start a program in a terminal of its own, and name that."""
        named = ("-P", "-F", "#{pane_id}")
        return _tmux(self.machine, self.room, "new-window", "-d", *named, "--", str(program), *words)


@dataclass(frozen=True)
class Person(Terminal):
    """Who sits before the client."""

    # -- the keys --------------------------------------------------------------------------------------

    def prompts(self, text: str) -> None:
        """Type a prompt, or a command of the client, and send it."""
        self.types(text)
        self.presses("Enter")

    def answers(self, question: str, key: str) -> None:
        """Wait until the client asks, and press a key until it has heard: it ignores those that come too soon."""
        self.sees(question)
        self.until(lambda: self._is_heard(question, key), f"{question!r} is answered")

    def _is_heard(self, question: str, key: str) -> bool:
        self.presses(key)
        deadline = monotonic() + _HEARS_WITHIN
        while question in self.screen:
            if monotonic() > deadline:
                return False
            sleep(_LOOK_INTERVAL)
        return True

    # -- the client ------------------------------------------------------------------------------------

    @property
    def status(self) -> dict[str, Any]:
        """What the client itself says of its session, in its file; nothing if it does not run."""
        pid = self._tmux("display-message", "-p", "#{pane_pid}")
        try:
            told: dict[str, Any] = json.loads((self.machine.folder / f"home/.claude/sessions/{pid}.json").read_text())
        except (OSError, ValueError):  # it is just being written, or was just removed
            return {}
        return told

    def starts_again(self, *words: str, ready: str = _READY) -> None:
        """Start the client again in the same terminal, in which it has ended."""
        self.until(lambda: self._is_dead, "the client has ended")
        self._tmux("respawn-pane", "-k", "--", str(self.machine.client), *_in_default_mode(words))
        self.sees(ready)

    def starts_another(self, *words: str, ready: str = _READY) -> Person:
        """Start a second client, in a terminal of its own; it waits for a prompt."""
        other = Person(self.machine, self.room, self._opens(self.machine.client, *_in_default_mode(words)))
        other.sees(ready)
        return other

    def is_idle(self) -> None:
        """Wait until the client says that it waits for a prompt."""
        self.until(lambda: self.status.get("status") == "idle", "the client is idle")

    def leaves(self) -> int:
        """Leave the client as a person does, and return its exit code.

        On a busy machine the client may ignore an Enter that comes while it still draws its list of commands.
        """
        self.types("/exit")
        self.until(self._exits, "the client has ended")
        return int(self._exit_code)

    def _exits(self) -> bool:
        """Press Enter, and wait a moment for the client to end."""
        self.presses("Enter")
        deadline = monotonic() + _EXITS_WITHIN
        while not self._exit_code:
            if monotonic() > deadline:
                return False
            sleep(_LOOK_INTERVAL)
        return True

    @property
    def _is_dead(self) -> bool:
        """Whether the terminal was closed, also by a signal, which leaves no exit code."""
        return self._after_another("#{pane_dead}") == "1"

    @property
    def _exit_code(self) -> str:
        """As tmux has it: known a moment after the terminal was closed."""
        return self._after_another("#{pane_dead_status}")

    def _after_another(self, name: str) -> str:
        """Ask tmux for what it knows of the client, after another process has ended.

        Now and then tmux misses the signal that tells it so. With the next process that ends it sees both.
        """
        self._tmux("run-shell", "true")
        return self._tmux("display-message", "-p", name)

    # -- beside it -------------------------------------------------------------------------------------

    def fairlead(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Fairlead's in another terminal."""
        return self.room.run(self.machine.program, *words)

    def sessions(self) -> dict[str, dict[str, Any]]:
        """What `fairlead sessions` tells of all sessions, by their ids, the ended ones too."""
        done = self.fairlead("sessions", "--all", "--json")
        assert (done.returncode, done.stderr) == (0, ""), done
        return {row["id"]: row for row in json.loads(done.stdout)["sessions"]}

    def watches(self) -> Terminal:
        """Open the view in another terminal."""
        return Terminal(self.machine, self.room, self._opens(self.machine.program, "watch"))


@contextmanager
def at_terminal(
    machine: Machine,
    *words: str,
    script: Script = (),
    subagent: Subagents = (),
    ready: str = _READY,
    first: Callable[[Room], object] | None = None,
) -> Iterator[Person]:
    """Start the client in a terminal, in the project, with these words on its command line; it waits for a prompt.

    It asks for permission as it does by default, unless the words say otherwise. `ready` is what it shows then.
    `first` is called before the client starts.
    """
    if shutil.which("tmux") is None:
        unavailable("there is no tmux for a terminal")
    with room(machine.folder, script=script, subagent=subagent, env=machine.environment) as place:
        if first is not None:
            first(place)
        window = ("-x", _WIDE, "-y", _HIGH, "-P", "-F", "#{pane_id}")
        pane = _tmux(
            *(machine, place, "-f", os.devnull, "start-server", ";", "set-option", "-g", "remain-on-exit", "on", ";"),
            *("new-session", "-d", *window, "--", str(machine.client), *_in_default_mode(words)),
        )
        person = Person(machine, place, pane)
        person.sees(ready)
        yield person


def _in_default_mode(words: Sequence[str]) -> list[str]:
    """Make a client ask for permission as it does by default, unless the words say otherwise."""
    return [*([] if "--permission-mode" in words else ["--permission-mode", "default"]), *words]


def _tmux(machine: Machine, place: Room, *words: str) -> str:
    done = place.run("tmux", "-S", machine.folder / "tmux.sock", *words)
    assert done.returncode == 0, done
    return done.stdout.rstrip("\n")


def _until(holds: Callable[[], object], what: str, screen: Callable[[], str] = str) -> None:
    deadline = monotonic() + PATIENCE
    pause = 0.02
    while not holds():
        assert monotonic() < deadline, f"never came true: {what}\n{screen()}"
        sleep(pause)
        pause = min(pause * 1.25, 0.2)  # each look starts processes
