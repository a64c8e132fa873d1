"""Finds the code files that hooks in Claude Code's settings load: the values of `--hooks` and `--rules`."""

from __future__ import annotations

import os

from fairlead.clients.claude._environment import CONFIG_FOLDER, PROJECT_DIR, SETTINGS, own_files
from fairlead.events import decode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

_OPTIONS = ("--hooks", "--rules")
_MARKS = tuple(option.encode() for option in _OPTIONS)
_MAX_SIZE = 1 << 20
_cache: dict[str, tuple[tuple[int, int, int], tuple[str, ...]]] = {}
"""Settings file → its stamp (modification time, size, inode), and the code files that it names."""


def hook_files(environ: Mapping[str, str], folders: Iterable[str]) -> tuple[str, ...]:
    """Return the files that hooks load according to the settings of the user and of the project folders `folders`.

    The paths in the settings of a project are relative to its folder. Settings that cannot be read are skipped.
    """
    files = [(file, "") for file in own_files(environ).files if file.endswith(SETTINGS)]
    files += [(f"{folder}/{CONFIG_FOLDER}/{name}", folder) for folder in dict.fromkeys(folders) for name in SETTINGS]
    return tuple(dict.fromkeys(name for file, folder in files for name in _read(file, folder)))


def _read(file: str, folder: str) -> tuple[str, ...]:
    try:
        status = os.stat(file)
        stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        cached = _cache.get(file)
        if cached is None or cached[0] != stamp:
            with open(file, "rb") as opened:
                text = opened.read(_MAX_SIZE)
            cached = _cache[file] = (stamp, tuple(_named(text, folder)))
    except (OSError, ValueError, RecursionError):
        return ()
    return cached[1]


def _named(text: bytes, folder: str) -> Iterator[str]:
    if not any(mark in text for mark in _MARKS):
        return
    for words in _command_lines(decode_json(text)):
        for index, word in enumerate(words):
            option, equals, value = word.partition("=")
            if option in _OPTIONS:
                path = value if equals else "".join(words[index + 1 : index + 2])
                yield from _path(path, folder)


def _command_lines(value: Any) -> Iterator[list[str]]:
    """Yield each command in the settings as a list of words."""
    if isinstance(value, dict):
        command, args = value.get("command"), value.get("args")
        if isinstance(command, str):
            words = [word for word in args if isinstance(word, str)] if isinstance(args, list) else []
            yield [*_split(command), *words]
        for inner in value.values():
            yield from _command_lines(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _command_lines(inner)


def _split(command: str) -> list[str]:
    import shlex

    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _path(word: str, folder: str) -> Iterator[str]:
    """Yield the path in the value of an option: `guards.py:my_hooks` contains one, a module `my_guards` does not."""
    for variable in (f"${{{PROJECT_DIR}}}", f"${PROJECT_DIR}"):
        word = word.replace(variable, folder)
    path, _, _ = word.partition(":")
    if "/" in path or path.endswith(".py"):
        yield os.path.normpath(os.path.join(folder or "/", os.path.expanduser(path)))
