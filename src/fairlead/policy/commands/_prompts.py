"""Finds the context rules that match a prompt, and the slash command in a prompt.

The caller passes the function that reads the files that a context names.
"""

from __future__ import annotations

import os
import re
from stat import S_ISREG
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from fairlead.policy.commands._pattern_search import PatternSearch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fairlead.policy.config._types import ContextRule, Layer

    ReadFile: TypeAlias = Callable[[str, str], str | None]
    """Folder and path → the text of the file, or `None` if it may not or cannot be read."""

MAX_FILE_BYTES = 64 * 1024
"""The maximum number of bytes of a file that is added to a prompt."""

_FILE = re.compile(r"(?<![\w.+-])@(?P<path>[\w\-./]+)")
_SLASH = re.compile(r"/(?P<name>[A-Za-z0-9_-]+(?::[A-Za-z0-9_-]+)*)(?:\s+(?P<args>.*))?")


class SlashCommand(NamedTuple):
    """A slash command of a prompt: its name without the slash, and the rest of the line."""

    name: str
    args: str


def slash_command(prompt: str) -> SlashCommand | None:
    """Return the slash command in the first line that is one; `None` if no line is.

    It is `/name` or `/plugin:name`, then a blank and its arguments. A path such as `/usr/bin/x` is not a slash command.
    """
    for line in prompt.splitlines():
        if match := _SLASH.fullmatch(line.strip()):
            return SlashCommand(match["name"], match["args"] or "")
    return None


def context(prompt: str, layers: Iterable[Layer], read: ReadFile, search: PatternSearch | None = None) -> str | None:
    """Return the texts of all rules that match, nearest file first, separated by blank lines; `None` if none does.

    `read` reads the files that a text names with `@`. `search` searches the prompt; by default a new one is made.
    """
    search = search or PatternSearch(prompt)
    texts = [
        _with_files(rule.prompt, layer.folder, read)
        for layer in layers
        for rule in layer.policy.user_prompt_submit.context_rules
        if context_rule_applies(rule, search)
    ]
    return "\n\n".join(texts) or None


def context_rule_applies(rule: ContextRule, search: PatternSearch) -> bool:
    """Return whether a rule is enabled and its pattern is found in the prompt of `search`."""
    return rule.enabled and search.finds(rule.pattern, case_insensitive=rule.case_insensitive)


def read_inside(folder: str, path: str) -> str | None:
    """Return the text of a file in a folder; `None` if it may not or cannot be added to a prompt.

    It must be a regular file of at most `MAX_FILE_BYTES`, and neither `..` nor a link may lead out of the folder.
    """
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, path))
    if not real.startswith(root.rstrip("/") + "/"):
        return None
    try:
        data = _read_regular(real)
    except OSError:
        return None
    return data.decode(errors="replace") if len(data) <= MAX_FILE_BYTES else None


def _read_regular(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # opening a pipe would wait
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: not a regular file")
        return os.read(descriptor, MAX_FILE_BYTES + 1)
    finally:
        os.close(descriptor)


def _with_files(text: str, folder: str, read: ReadFile) -> str:
    """Replace each `@path` that is a file of the folder by its text. Other words, such as e-mail addresses, stay."""

    def replace(match: re.Match[str]) -> str:
        path = match["path"]
        for name in dict.fromkeys((path, path.rstrip("."))):  # without the full stop of a sentence
            if name and (content := read(folder, name)) is not None:
                return content + path[len(name) :]
        return match[0]

    return _FILE.sub(replace, text)
