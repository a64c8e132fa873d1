"""What a prompt brings: texts for the model by rule, and the slash command in it.

Whether a prompt matches is decided here; the files that a text names are read by the function that is passed in.
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

    Read: TypeAlias = Callable[[str, str], str | None]
    """Folder and path → the file's text, or `None` if it may not or cannot be read."""

MAX_FILE = 64 * 1024
"""Bytes. A larger file is not put into a prompt."""
MAX_SEARCH = 0.5
"""Seconds. A pattern that takes longer (it backtracks) counts as not found."""

_FILE = re.compile(r"(?<![\w.+-])@(?P<path>[\w\-./]+)")
_SLASH = re.compile(r"/(?P<name>[A-Za-z0-9_-]+(?::[A-Za-z0-9_-]+)*)(?:\s+(?P<args>.*))?")


class SlashCommand(NamedTuple):
    """A slash command in a prompt, without its slash, and the rest of its line."""

    name: str
    args: str


def slash_command(prompt: str) -> SlashCommand | None:
    """Find the first line that is a slash command: `/name`, `/plugin:name`, then a blank and its arguments.

    A path such as `/usr/bin/x` is none.
    """
    for line in prompt.splitlines():
        if found := _SLASH.fullmatch(line.strip()):
            return SlashCommand(found["name"], found["args"] or "")
    return None


def context(prompt: str, layers: Iterable[Layer], read: Read) -> str | None:
    """Give the texts of all rules that match, nearest file first, with a blank line between them."""
    texts = [
        _with_files(rule.prompt, layer.folder, read)
        for layer in layers
        for rule in layer.policy.user_prompt_submit.context_rules
        if context_rule_applies(rule, prompt)
    ]
    return "\n\n".join(texts) or None


def context_rule_applies(rule: ContextRule, prompt: str) -> bool:
    """Tell whether a rule brings its text to a prompt."""
    return rule.enabled and matches(rule.pattern, prompt, case_insensitive=rule.case_insensitive)


def matches(pattern: str, text: str, *, case_insensitive: bool = False) -> bool:
    """Tell whether the regular expression is found anywhere; one that is broken, or takes too long, is not."""
    try:
        with _time_limit(MAX_SEARCH):
            return _compiled(pattern, case_insensitive).search(text) is not None
    except (re.error, RecursionError, OverflowError, TimeoutError):
        return False


def read_inside(folder: str, path: str) -> str | None:
    """Read a file of the folder, links resolved; `None` if it is missing, elsewhere, no plain file or too large."""
    root = os.path.realpath(folder)
    real = os.path.realpath(os.path.join(root, path))
    if not real.startswith(root.rstrip("/") + "/"):
        return None
    try:
        data = _read_plain(real)
    except OSError:
        return None
    return data.decode(errors="replace") if len(data) <= MAX_FILE else None


def _read_plain(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # a pipe would be waited for
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path}: no plain file")
        return os.read(descriptor, MAX_FILE + 1)
    finally:
        os.close(descriptor)


def _with_files(text: str, folder: str, read: Read) -> str:
    """Put files in place of `@path`. What is no file of the folder stays as it is, an e-mail address too."""

    def replaced(found: re.Match[str]) -> str:
        path = found["path"]
        for name in dict.fromkeys((path, path.rstrip("."))):  # the full stop of a sentence is no part of a name
            if name and (content := read(folder, name)) is not None:
                return content + path[len(name) :]
        return found[0]

    return _FILE.sub(replaced, text)


@lru_cache(maxsize=256)
def _compiled(pattern: str, case_insensitive: bool) -> re.Pattern[str]:  # noqa: FBT001 - a key of the cache
    return re.compile(pattern, re.IGNORECASE if case_insensitive else 0)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in time. Only the main thread can be interrupted in the middle of a search."""
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
