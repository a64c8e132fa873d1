"""Rewrites a search with ripgrep so that it leaves out files that no agent may read."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

_SEARCH: Final = re.compile(r"(?:^|(?<=[;&|(\n]))[ \t]*rg(?=[ \t])")
"""The name of the program, where a command begins."""


def narrowed_command(command: str, globs: Iterable[str]) -> str | None:
    """Return a command whose calls of `rg` leave out `globs`; `None` if it has no such call, or a glob has a quote.

    The result is checked like any other command, so this function need not understand quotes.
    """
    texts = [*globs]
    if not _SEARCH.search(command) or any("'" in text for text in texts):
        return None
    options = "".join(f" -g '!{text}'" for text in texts)
    return _SEARCH.sub(lambda name: name[0] + options, command)
