"""The languages of scripts: which interpreter runs a script by its first line or its name."""

from __future__ import annotations

import re
from typing import Final

from fairlead.policy.bash.programs._calls import basename

_SHEBANG: Final = r"#!\s*(\S+)(?:[ \t]+(.*))?"
_SHELLS: Final = frozenset({"sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "rbash", "fish", "source", "."})
_NODE: Final = frozenset({"node", "deno", "bun", "tsx", "ts-node"})
_BY_SUFFIX: Final = {
    "sh": "sh", "bash": "sh", "zsh": "sh", "ksh": "sh", "bats": "sh", "py": "python", "js": "node", "mjs": "node",
    "cjs": "node", "ts": "node", "mts": "node", "tsx": "node", "pl": "perl", "pm": "perl", "rb": "ruby", "php": "php",
    "lua": "lua", "R": "Rscript", "awk": "awk", "sed": "sed", "go": "go", "rs": "rust", "tcl": "tclsh",
}  # fmt: skip
_HEAD: Final = 1024
"""Characters in which a program that is not a script has a NUL."""


def find_language(path: str, text: str) -> str | None:
    """Return the interpreter of a script by its first line or its suffix, `sh` if neither names one.

    Returns `None` for a program that is not a script.
    """
    if "\0" in text[:_HEAD]:
        return None
    match = re.match(_SHEBANG, text)
    if match is None:
        return _BY_SUFFIX.get(path.rpartition("/")[2].rpartition(".")[2], "sh")
    words = [match[1], *(match[2] or "").split()]
    if basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word] or ["sh"]
    program = basename(words[0]).rstrip("0123456789.")
    if program in _NODE:
        return "node"
    return "sh" if program in _SHELLS else program
