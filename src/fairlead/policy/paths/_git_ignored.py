"""Finds out whether git ignores a file, from the files that git reads; no git process is started.

A tracked file that a pattern matches counts as ignored here: the index is not read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fairlead.policy.paths._gitignore import Pattern, self_and_parents
from fairlead.policy.paths._resolve import BaseFolder
from fairlead.policy.paths._translate import PatternError
from fairlead.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.paths._resolve import ResolvedPath

_MAX_CACHED = 1024
_EXCLUDES_FILE = re.compile(r"^\s*excludesfile\s*=\s*\"?([^\"\n#;]+)", re.IGNORECASE | re.MULTILINE)


class Ignored(Struct, frozen=True):
    """Why git ignores a file."""

    pattern: str
    source: str
    """The file that contains the pattern."""


class _Rule(Struct, frozen=True):
    pattern: Pattern
    source: str


_cached: dict[str, tuple[tuple[int, int, int], tuple[_Rule, ...]]] = {}


def find_ignored(target: ResolvedPath) -> Ignored | None:
    """Return why git ignores a file, under any of its names; `None` if it does not.

    Raises `OSError` if a file with patterns exists and cannot be read.
    """
    for name in target.names:
        root = _repository(name)
        if root is None:
            continue
        relative = name[len(root.rstrip("/")) + 1 :] + ("/" if target.is_folder else "")
        if ignored := _ignored_in(root, relative):
            return ignored
    return None


def _repository(name: str) -> str | None:
    folder = name
    while folder.strip("/"):  # `//bin` is below `//`, whose parent it is itself
        folder = os.path.dirname(folder)
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def _ignored_in(root: str, relative: str) -> Ignored | None:
    """Return why git ignores a path below the root; `None` if it does not.

    Descends from the root: files below an ignored folder are ignored, regardless of other patterns.
    """
    rules = list(_shared_rules(root))
    above = ""
    for path in self_and_parents(relative):
        rules += _rules(f"{root}/{above}.gitignore", above)
        deciding = next((rule for rule in reversed(rules) if _matches(rule, path)), None)
        if deciding is not None and not deciding.pattern.negated:
            return Ignored(deciding.pattern.text, deciding.source)
        above = path
    return None


def _matches(rule: _Rule, path: str) -> bool:
    above = rule.pattern.base.folder
    return path.startswith(above) and rule.pattern.names(path[len(above) :])


def _shared_rules(root: str) -> Iterator[_Rule]:
    """Yield the rules that apply in the whole repository, the weakest first."""
    yield from _rules(_user_excludes(), "")
    yield from _rules(f"{_common_folder(root)}/info/exclude", "")


def _user_excludes() -> str:
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for file in (f"{home}/.gitconfig", f"{config}/git/config"):
        if setting := _EXCLUDES_FILE.search(_text(file)):
            return os.path.expanduser(setting[1].strip())
    return f"{config}/git/ignore"


def _common_folder(root: str) -> str:
    """Return git's folder of a repository, which its worktrees share: there, `.git` is a file that leads to it."""
    folder = f"{root}/.git"
    pointer = _text(folder) if os.path.isfile(folder) else ""
    if pointer.startswith("gitdir:"):
        folder = os.path.join(root, pointer[len("gitdir:") :].strip())
        if common := _text(f"{folder}/commondir").strip():
            folder = os.path.join(folder, common)
    return folder


def _rules(file: str, above: str) -> tuple[_Rule, ...]:
    """Return the rules of a file, relative to the folder `above`; none if it is missing. Cached until it changes."""
    try:
        stat = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    cached = _cached.get(file)
    if cached is None or cached[0] != version:
        if len(_cached) >= _MAX_CACHED:
            _cached.clear()
        cached = _cached[file] = version, tuple(_read(file, above))
    return cached[1]


def _read(file: str, above: str) -> Iterator[_Rule]:
    base = BaseFolder(above, ())
    for line in _text(file).removeprefix("\ufeff").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield _Rule(Pattern(line.rstrip("\r"), base, own_base=True), file)
        except PatternError:
            continue  # it matches nothing in git either


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as text:
            return text.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
