"""What git ignores, read from its files as git reads them; no git process is started.

A file that is tracked although a pattern matches counts as ignored here: the index is not read.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from fairlead.policy.paths._gitignore import PatternError
from fairlead.policy.paths._patterns import Pattern, steps
from fairlead.policy.paths._resolve import Base

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.paths._resolve import Target

_MAX_KNOWN = 1024
_EXCLUDES_FILE = re.compile(r"^\s*excludesfile\s*=\s*\"?([^\"\n#;]+)", re.IGNORECASE | re.MULTILINE)


class Ignored(msgspec.Struct, frozen=True):
    """Why git ignores a file."""

    pattern: str
    source: str
    """The file that the pattern stands in."""


class _Rule(msgspec.Struct, frozen=True):
    pattern: Pattern
    source: str


_known: dict[str, tuple[tuple[int, int, int], tuple[_Rule, ...]]] = {}


def find_ignored(target: Target) -> Ignored | None:
    """Tell whether git ignores a file, under any of its names, in the repository that it is in."""
    for name in target.names:
        root = _repository(name)
        if root is None:
            continue
        if found := _ignored_in(root, name[len(root.rstrip("/")) + 1 :] + ("/" if target.is_folder else "")):
            return found
    return None


def _repository(name: str) -> str | None:
    folder = name
    while folder != "/":
        folder = os.path.dirname(folder)
        if os.path.lexists(os.path.join(folder, ".git")):
            return folder
    return None


def _ignored_in(root: str, relative: str) -> Ignored | None:
    """Go down from the top: what is below an ignored folder is ignored, whatever else is said about it."""
    rules = list(_shared_rules(root))
    above = ""
    for step in steps(relative):
        rules += _rules(f"{root}/{above}.gitignore", above)
        deciding = next((rule for rule in reversed(rules) if _names(rule, step)), None)
        if deciding is not None and not deciding.pattern.negated:
            return Ignored(deciding.pattern.text, deciding.source)
        above = step
    return None


def _names(rule: _Rule, step: str) -> bool:
    above = rule.pattern.base.folder
    return step.startswith(above) and rule.pattern.names(step[len(above) :])


def _shared_rules(root: str) -> Iterator[_Rule]:
    """Give the rules that hold in the whole repository, the weakest first."""
    yield from _rules(_user_excludes(), "")
    yield from _rules(f"{_common_folder(root)}/info/exclude", "")


def _user_excludes() -> str:
    home = os.path.expanduser("~")
    config = os.environ.get("XDG_CONFIG_HOME") or f"{home}/.config"
    for file in (f"{home}/.gitconfig", f"{config}/git/config"):
        if named := _EXCLUDES_FILE.search(_text(file)):
            return os.path.expanduser(named[1].strip())
    return f"{config}/git/ignore"


def _common_folder(root: str) -> str:
    """Find git's own folder; in a worktree `.git` is a file that says where that is."""
    folder = f"{root}/.git"
    pointer = _text(folder) if os.path.isfile(folder) else ""
    if pointer.startswith("gitdir:"):
        folder = os.path.join(root, pointer[len("gitdir:") :].strip())
        if common := _text(f"{folder}/commondir").strip():
            folder = os.path.join(folder, common)
    return folder


def _rules(file: str, above: str) -> tuple[_Rule, ...]:
    """Read the patterns of a file, again only if it has changed."""
    try:
        stat = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    version = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
    known = _known.get(file)
    if known is None or known[0] != version:
        if len(_known) >= _MAX_KNOWN:
            _known.clear()
        known = _known[file] = version, tuple(_read(file, above))
    return known[1]


def _read(file: str, above: str) -> Iterator[_Rule]:
    base = Base(above, ())
    for line in _text(file).removeprefix("\ufeff").split("\n"):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            yield _Rule(Pattern(line.rstrip("\r"), base, own_base=True), file)
        except PatternError:
            continue  # git does not heed it either


def _text(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as text:
            return text.read()
    except (FileNotFoundError, NotADirectoryError):
        return ""
