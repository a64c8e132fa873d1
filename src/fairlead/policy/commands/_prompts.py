"""What a prompt triggers: the context of the rules that match it, and the slash command in it.

A function that is passed in reads the files that a context names.
"""

from __future__ import annotations

import os
import re
import signal
from contextlib import contextmanager
from functools import lru_cache
from stat import S_ISREG
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

    from fairlead.policy.config._types import ContextRule, Layer

    ReadFile: TypeAlias = Callable[[str, str], str | None]
    """Folder and path → the text of the file, or `None` if it may not or cannot be read."""

MAX_FILE_BYTES = 64 * 1024
"""A larger file is not put into a prompt."""
_MAX_SEARCH_SECONDS = 0.5
"""A pattern that takes longer (it backtracks) counts as not found."""

_FILE = re.compile(r"(?<![\w.+-])@(?P<path>[\w\-./]+)")
_SLASH = re.compile(r"/(?P<name>[A-Za-z0-9_-]+(?::[A-Za-z0-9_-]+)*)(?:\s+(?P<args>.*))?")


class SlashCommand(NamedTuple):
    """A slash command of a prompt: its name without the slash, and the rest of the line."""

    name: str
    args: str


def slash_command(prompt: str) -> SlashCommand | None:
    """Return the first line that is a slash command: `/name` or `/plugin:name`, then a blank and its arguments.

    A path such as `/usr/bin/x` is not a slash command.
    """
    for line in prompt.splitlines():
        if match := _SLASH.fullmatch(line.strip()):
            return SlashCommand(match["name"], match["args"] or "")
    return None


def context(prompt: str, layers: Iterable[Layer], read: ReadFile) -> str | None:
    """Return the texts of all rules that match, nearest file first, separated by blank lines."""
    texts = [
        _with_files(rule.prompt, layer.folder, read)
        for layer in layers
        for rule in layer.policy.user_prompt_submit.context_rules
        if context_rule_applies(rule, prompt)
    ]
    return "\n\n".join(texts) or None


def context_rule_applies(rule: ContextRule, prompt: str) -> bool:
    """Return whether a rule adds its text to a prompt."""
    return rule.enabled and matches(rule.pattern, prompt, case_insensitive=rule.case_insensitive)


def matches(pattern: str, text: str, *, case_insensitive: bool = False) -> bool:
    """Return whether a regular expression is found in a text; an invalid or too slow one is not."""
    try:
        with _time_limit(_MAX_SEARCH_SECONDS):
            return _compiled(pattern, case_insensitive).search(text) is not None
    except (re.error, RecursionError, OverflowError, TimeoutError):
        return False


def read_inside(folder: str, path: str) -> str | None:
    """Read a file; `None` if it is missing, not really inside the folder, not a regular file, or too large."""
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
    """Replace each `@path` by the text of the file. What is not a file of the folder, an e-mail address too, stays."""

    def replace(match: re.Match[str]) -> str:
        path = match["path"]
        for name in dict.fromkeys((path, path.rstrip("."))):  # without the full stop of a sentence
            if name and (content := read(folder, name)) is not None:
                return content + path[len(name) :]
        return match[0]

    return _FILE.sub(replace, text)


@lru_cache(maxsize=256)
def _compiled(pattern: str, case_insensitive: bool) -> re.Pattern[str]:  # noqa: FBT001 - the cache needs positional arguments
    return re.compile(pattern, re.IGNORECASE if case_insensitive else 0)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` after some seconds. Only the main thread can be interrupted during a search."""
    if current_thread() is not main_thread() or any(signal.getitimer(signal.ITIMER_REAL)):
        yield
        return

    def expire(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, expire)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
