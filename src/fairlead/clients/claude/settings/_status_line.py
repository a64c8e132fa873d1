"""The status line in the text of Claude Code's settings: our launcher, which then runs the user's own command.

    "statusLine": {"type": "command", "command": "exec HOOK StatusLine --python PYTHON --then 'the previous command'"}

The client runs the command by a shell, which `exec` replaces. So the user's own command keeps its parent process, and
ends if the client ends it. The rest of the object keeps its bytes. Only a status line that the client would run is
changed. Touches no file.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients._install_types import StatusLineKind
from fairlead.clients._json_text import Raw, apply, insertion, parse, removal, replacement, style_of
from fairlead.clients._programs import LAUNCHER

if TYPE_CHECKING:
    from fairlead.clients._install_types import Launcher, StatusLineChange, StatusLineChoice
    from fairlead.clients._json_text import Node

KEY = "statusLine"

_EXEC = "exec "
_EVENT = "StatusLine"
_OPTIONS = ("--python", "--then")


class StatusLineEntry(msgspec.Struct, frozen=True):
    """The status line of a settings file."""

    kind: StatusLineKind = "none"
    hook: str = ""
    """The launcher that the status line starts; "" if it is not ours."""
    python: str = ""
    command: str = ""
    """The user's own command; "" if the status line is only ours."""

    @property
    def is_ours(self) -> bool:
        """Whether the status line starts our launcher."""
        return self.kind in {"chained", "ours"}


def read_status_line(root: Node) -> StatusLineEntry:
    """Return the status line of parsed settings."""
    node = root.member(KEY)
    if node is None:
        return StatusLineEntry()
    command = _command(node)
    if command is None or root.keys.count(KEY) > 1:
        return StatusLineEntry("odd")
    return _parse_ours(command.plain) or StatusLineEntry("own", command=command.plain)


def add_status_line(text: str, launcher: Launcher, choice: StatusLineChoice) -> tuple[str, StatusLineChange]:
    """Chain the user's own status line, update ours, or add ours if there is none and `choice` is `show`.

    Return the new text, and what was done; "" if nothing.
    """
    root = parse(text)
    line, node = read_status_line(root), root.member(KEY)
    if choice == "leave" or line.kind == "odd" or (line.kind == "none" and choice != "show"):
        return text, ""
    wanted = _command_line(launcher, None if line.kind in {"none", "ours"} else line.command)
    style = style_of(text, root)
    command = _command(node) if node else None
    if command is None:
        return apply(text, [insertion(text, root, [(KEY, {"type": "command", "command": wanted})], style)]), "added"
    if command.plain == wanted:
        return text, ""
    change: StatusLineChange = "chained" if line.kind == "own" else "updated"
    return apply(text, [replacement(text, command, wanted, style)]), change


def remove_status_line(text: str, original: str | None = None) -> tuple[str, StatusLineChange]:
    """Remove our status line, or restore the user's own as it is spelled in `original`.

    Return the new text, and what was done; "" if nothing.
    """
    root = parse(text)
    line, node = read_status_line(root), root.member(KEY)
    command = _command(node) if node else None
    if not line.is_ours or command is None:
        return text, ""
    if line.kind == "ours":
        return apply(text, removal(root, [root.keys.index(KEY)])), "removed"
    before = _spelling(original, line.command)
    return apply(text, [replacement(text, command, before or line.command, style_of(text, root))]), "restored"


def _command(node: Node) -> Node | None:
    """Return the command of a status line; `None` if the client would not run it, or it cannot be passed on."""
    if node.kind != "object" or node.duplicate_key():
        return None
    kind, command = node.member("type"), node.member("command")
    if kind is None or kind.plain != "command" or command is None or not isinstance(command.plain, str):
        return None
    return command if command.plain.strip() and _is_passable(command.plain) else None


def _is_passable(command: str) -> bool:
    try:
        return b"\0" not in command.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _parse_ours(command: str) -> StatusLineEntry | None:
    """Parse a command line that an install wrote; return `None` for one that the user wrote or edited."""
    command = command.removeprefix(_EXEC)
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    names, values = words[2::2], words[3::2]
    is_written = len(names) == len(values) == len(set(names)) and set(names) <= set(_OPTIONS)
    if words[1:2] != [_EVENT] or words[0].rpartition("/")[2] != LAUNCHER or not is_written:
        return None
    if shlex.join(words) != command:
        return None  # a shell would read it differently
    options = dict(zip(names, values, strict=True))
    kind: StatusLineKind = "chained" if "--then" in options else "ours"
    return StatusLineEntry(kind, words[0], options.get("--python", ""), options.get("--then", ""))


def _command_line(launcher: Launcher, command: str | None) -> str:
    then = [] if command is None else ["--then", command]
    return _EXEC + shlex.join([launcher.hook, _EVENT, "--python", launcher.python, *then])


def _spelling(original: str | None, command: str) -> Raw | None:
    """Return the user's command as it is spelled in the original; `None` if that has a different command."""
    node = parse(original).member(KEY) if original and original.strip("\ufeff \t\r\n") else None
    spelt = _command(node) if node else None
    if original is None or spelt is None or spelt.plain != command:
        return None
    return Raw(original[spelt.start : spelt.end])
