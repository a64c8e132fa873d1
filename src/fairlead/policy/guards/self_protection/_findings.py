"""What the guard on Fairlead itself finds in a command, and functions that parse the words of commands."""

from __future__ import annotations

import re

from fairlead.policy.bash.programs._calls import basename
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_OPEN = r"\$[\w({@*#?!$-]|`|\(input from a pipe\)"
"""Matches in a word that is only known when the command runs."""
_REQUIREMENT = r"[\[=<>~!@; ]"

TEXT_PROGRAMS = frozenset(
    {
        *("echo", "printf", "cat", "grep", "egrep", "fgrep", "rg", "ag", "ack", "git", "gh", "glab", "sed", "jq", "yq"),
        *(
            "ls",
            "test",
            "[",
            "[[",
            "head",
            "tail",
            "less",
            "wc",
            "diff",
            "cp",
            "mv",
            "ln",
            "mkdir",
            "rm",
            "touch",
            "find",
        ),
        *("fd", "cd", "pushd", "stat", "file", "tree", "which", "type", "man", "make", "pytest", "tar", "sort", "uniq"),
        *("ruff", "mypy", "code", "vim", "nvim", "nano", "read", "local", "declare", "tee", "cut", "tr", "du", "pgrep"),
    }
)
"""Programs that do not run their arguments, or whose commands are analysed elsewhere."""


class Finding(Struct, frozen=True):
    """A way to switch the guards off."""

    what: str
    """What the command would do, as the end of the sentence "keeps agents from …"."""
    is_certain: bool = True
    """`False`: the command may be harmless, so the user is asked."""


def is_open(word: str) -> bool:
    """Return whether a word is only known when the command runs."""
    return re.search(_OPEN, word) is not None


def is_any(word: str) -> bool:
    """Return whether a word may be one of several: a pattern, or only known when the command runs."""
    return is_open(word) or any(character in word for character in "*?[")


def operands(args: Iterable[str]) -> list[str]:
    """Return the arguments that are not options."""
    return [arg for arg in args if not arg.startswith("-")]


def option_values(args: Sequence[str], *names: str) -> Iterator[str]:
    """Yield the values of options: `--target x`, `--target=x`, `-tx`."""
    for index, arg in enumerate(args):
        for name in names:
            if arg == name:
                yield from args[index + 1 : index + 2]
            elif name.startswith("--") and arg.startswith(f"{name}="):
                yield arg.partition("=")[2]
            elif not name.startswith("--") and arg.startswith(name) and not arg.startswith("--"):
                yield arg[len(name) :]


def distribution(word: str) -> str:
    """Return the package name of a requirement, an archive or a URL: `fairlead` for `fairlead==1`."""
    if "://" in word or word.startswith("git+") or "/" in word or word.endswith((".whl", ".tar.gz", ".zip")):
        named = re.match(r"([A-Za-z0-9_.-]+?) ?@ ?", word)
        last = basename(word.partition("#")[0].partition("?")[0])
        fragment = re.search(r"#egg=([\w.-]+)", word)
        name = fragment[1] if fragment else named[1] if named else re.split(r"-\d|\.git|@", last)[0]
    else:
        name = re.split(_REQUIREMENT, word)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def refusal(tool: str, what: str) -> str:
    """Return the reason for blocking an attempt to switch the guards off."""
    return (
        f"Blocked {tool} operation: preToolUse.protectOwnFiles keeps agents from {what}. "
        f"Only the user can do that, in a terminal of their own."
    )
