"""The effects of the SQLite shell: its commands start with a dot, and some open files or run programs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    ProgramCall,
    RunFile,
    RunScript,
    UnknownEffect,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_VALUED: Final = frozenset(
    {"cmd", "init", "separator", "newline", "nullvalue", "mmap", "vfs", "maxsize", "lookaside", "pagecache"}
)
_READS: Final = frozenset({".read", ".import", ".load", ".restore", ".open", ".ar", ".archive"})
_WRITES: Final = frozenset({".output", ".once", ".backup", ".save", ".clone", ".log", ".excel", ".open", ".cd"})
_RUNS: Final = frozenset({".shell", ".system", ".sh", ".sys"})
_FUNCTION: Final = re.compile(
    r"\b(readfile|writefile|edit|load_extension)\s*\(\s*'((?:[^']|'')*)'|\battach\s+(?:database\s+)?(')([^']*)'",
    re.IGNORECASE,
)


def sqlite(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of a call: accesses to the database, and to the files that its commands name."""
    values, operands = _parsed(call.args)
    yield from (RunFile(word, "sqlite", []) for word in values.get("init", ()))
    for word in operands[:1]:
        if plain(word) not in {"", ":memory:"}:
            yield Access("read", word)
            yield Access("write", word)
    texts = [*values.get("cmd", ()), *operands[1:]]
    if call.file is not None:
        yield RunFile(call.file, "sqlite", [])
    elif any(map(is_unknown, texts)) or (call.piped and call.stdin is None and not operands[1:]):
        yield UnknownEffect("what sqlite3 runs is only known when it runs")
    for text in [*map(plain, texts), call.stdin or ""]:
        yield from sqlite_commands(text)


def _parsed(args: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return the values of each option, and the operands. Options start with one dash or two."""
    values: dict[str, list[str]] = {}
    operands, rest = [], iter(args)
    for arg in rest:
        name = arg.lstrip("-")
        if arg[:1] != "-":
            operands.append(arg)
        elif name in _VALUED:
            values.setdefault(name, []).append(next(rest, ""))
    return values, operands


def sqlite_commands(text: str) -> Iterator[Effect]:
    """Yield the effects of dot-commands and SQL statements."""
    for line in text.splitlines():
        if line.lstrip().startswith("."):
            yield from _dot_command(line.strip())
    for function, path, attach, database in _FUNCTION.findall(text):
        yield Access("read", quote(path or database))
        if attach or function.lower() != "readfile":
            yield Access("write", quote(path or database))


def _dot_command(line: str) -> Iterator[Effect]:
    name, _, rest = line.partition(" ")
    if name in _RUNS:
        yield RunScript(rest)
        return
    words = [word.strip("'\"") for word in rest.split() if not word.startswith("-")]
    for word in words:
        if word.startswith("|"):
            yield RunScript(rest.partition("|")[2].rstrip("'\""))
            return
        if name in _READS:
            yield Access("read", quote(word), if_exists=True)
        if name in _WRITES:
            yield Access("write", quote(word))
