"""Finds the files that a patch changes: a unified diff, or the format of the tool `apply_patch`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fairlead.clients._tool_calls import PathAccess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.clients._tool_calls import PathMode

_LINE = re.compile(
    r"^(?:\*\*\* (?P<action>Add File|Update File|Delete File|Move to): *(?P<file>.+?)"
    r"|(?P<side>---|\+\+\+) (?P<name>[^\t\n]+)(?:\t.*)?"
    r"|(?:rename|copy) (?P<end>from|to) (?P<moved>.+?)"
    r"|Index: (?P<index>.+?)) *\r?$",
    re.MULTILINE,
)
_MODES: dict[str, PathMode] = {
    "Add File": "write",
    "Update File": "write",
    "Delete File": "delete",
    "Move to": "write",
}


def patch_paths(text: str) -> Iterator[PathAccess]:
    """Yield each file that a patch names, with its mode of access.

    The names in a unified diff are yielded with and without their first folder, `a/` or `b/`: whether it is stripped
    depends on an option of the program that applies the patch.
    """
    for line in _LINE.finditer(text):
        if line["action"]:
            yield PathAccess(line["file"], _MODES[line["action"]])
        elif line["side"] or line["index"]:
            yield from _both_names(_unquoted(line["name"] or line["index"]), "write")
        else:
            yield from _both_names(_unquoted(line["moved"]), "move" if line["end"] == "from" else "write")


def _both_names(name: str, mode: PathMode) -> Iterator[PathAccess]:
    if name == "/dev/null":
        return
    yield PathAccess(name, mode)
    if not name.startswith("/") and "/" in name:
        yield PathAccess(name.partition("/")[2], mode)


def _unquoted(name: str) -> str:
    r"""Return a name without the quotes and escapes that git writes: `"a/cl\303\251"` → `a/clé`."""
    if not (name.startswith('"') and name.endswith('"')):
        return name
    try:
        plain = name[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape")
        return plain.encode("latin-1").decode("utf-8", "surrogateescape")
    except (UnicodeDecodeError, UnicodeEncodeError):
        return name[1:-1]
