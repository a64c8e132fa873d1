"""The status line in the text of Claude Code's settings: ours before a person's own, which goes on as it was.

    "statusLine": {"type": "command", "command": "exec HOOK StatusLine --python PYTHON --then 'what stood here before'"}

The client runs it by a shell, which `exec` makes go: so the person's own command has the place that it had before, and
is ended where the client ends it. Whatever else is in the object keeps its bytes. Only what the client would run is
changed: everything of another shape is left alone. Touches no file.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Literal

import msgspec

from fairlead.clients._json_text import Raw, apply, insertion, parse, removal, replacement, style_of
from fairlead.clients.claude._ownership import LAUNCHER

if TYPE_CHECKING:
    from fairlead.clients._json_text import Node
    from fairlead.clients.claude._hook_entries import Launcher, LineDone, LineWish

KEY = "statusLine"

Kind = Literal["none", "own", "odd", "chained", "ours"]
"""
none     there is none
own      the person's
odd      of another shape than the client runs
chained  the person's, with ours before it
ours     ours alone
"""

_BEGIN = "exec "
_WORD = "StatusLine"
_OPTIONS = ("--python", "--then")


class StatusLine(msgspec.Struct, frozen=True):
    """The status line as it stands in some settings."""

    kind: Kind = "none"
    hook: str = ""
    """The launcher that it starts, if it is ours or chained."""
    python: str = ""
    command: str = ""
    """What the person wants to be run; of ours alone, nothing."""

    @property
    def is_ours(self) -> bool:
        """Whether something of it is ours."""
        return self.kind in {"chained", "ours"}


def read_line(root: Node) -> StatusLine:
    """Say what the settings have for a status line."""
    node = root.member(KEY)
    if node is None:
        return StatusLine()
    command = _command(node)
    if command is None or root.keys.count(KEY) > 1:
        return StatusLine("odd")
    return _ours(command.plain) or StatusLine("own", command=command.plain)


def put_in(text: str, launcher: Launcher, wish: LineWish) -> tuple[str, LineDone]:
    """Listen to the person's own status line, bring what is ours up to date, and show ours to who asked for it."""
    root = parse(text)
    line, node = read_line(root), root.member(KEY)
    if wish == "leave" or line.kind == "odd" or (line.kind == "none" and wish != "show"):
        return text, ""
    wanted = _written(launcher, None if line.kind in {"none", "ours"} else line.command)
    style = style_of(text, root)
    command = _command(node) if node else None
    if command is None:
        return apply(text, [insertion(text, root, [(KEY, {"type": "command", "command": wanted})], style)]), "added"
    if command.plain == wanted:
        return text, ""
    done: LineDone = "chained" if line.kind == "own" else "updated"
    return apply(text, [replacement(text, command, wanted, style)]), done


def take_out(text: str, original: str | None = None) -> tuple[str, LineDone]:
    """Take out what is ours: the person's own is left, spelt as it was in the original."""
    root = parse(text)
    line, node = read_line(root), root.member(KEY)
    command = _command(node) if node else None
    if not line.is_ours or command is None:
        return text, ""
    if line.kind == "ours":
        return apply(text, removal(root, [root.keys.index(KEY)])), "removed"
    before = _spelt(original, line.command)
    return apply(text, [replacement(text, command, before or line.command, style_of(text, root))]), "restored"


def _command(node: Node) -> Node | None:
    """Find the command, if the client would run it and it can be handed on as it is."""
    if node.kind != "object" or node.repeated():
        return None
    kind, command = node.member("type"), node.member("command")
    if kind is None or kind.plain != "command" or command is None or not isinstance(command.plain, str):
        return None
    return command if command.plain.strip() and _can_be_handed_on(command.plain) else None


def _can_be_handed_on(command: str) -> bool:
    try:
        return b"\0" not in command.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False


def _ours(command: str) -> StatusLine | None:
    """Read a command line that an install wrote; one that somebody has added to is theirs."""
    command = command.removeprefix(_BEGIN)
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    names, values = words[2::2], words[3::2]
    is_written = len(names) == len(values) == len(set(names)) and set(names) <= set(_OPTIONS)
    if words[1:2] != [_WORD] or words[0].rpartition("/")[2] != LAUNCHER or not is_written:
        return None
    if shlex.join(words) != command:
        return None  # a shell would make something else of it
    told = dict(zip(names, values, strict=True))
    kind: Kind = "chained" if "--then" in told else "ours"
    return StatusLine(kind, words[0], told.get("--python", ""), told.get("--then", ""))


def _written(launcher: Launcher, command: str | None) -> str:
    then = [] if command is None else ["--then", command]
    return _BEGIN + shlex.join([launcher.hook, _WORD, "--python", launcher.python, *then])


def _spelt(original: str | None, command: str) -> Raw | None:
    """Give the person's command as it was spelt, if it still is the same."""
    node = parse(original).member(KEY) if original and original.strip("\ufeff \t\r\n") else None
    found = _command(node) if node else None
    if original is None or found is None or found.plain != command:
        return None
    return Raw(original[found.start : found.end])
