"""Which files a pattern matches: gitignore's rules, on every name that a file has."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from fairlead.policy.guards._verdict import glob_test
from fairlead.policy.paths._gitignore import Glob, either, read_glob
from fairlead.policy.paths._resolve import Base, Target, nfc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Pattern:
    """A gitignore pattern, relative to a folder.

    Three kinds, as in the client's own permission rules: `docs/*.md` and `/docs` belong to the folder, and never
    match outside of it; `~/.ssh/**` belongs to the home folder; `//etc/**`, with two slashes, to the whole disk.
    In git's own files (`own_base`) there is only the first kind.
    `loose` adds conclaude's reading: a `*` also takes slashes, and the whole absolute path may match too.
    """

    __slots__ = ("_exact", "_glob", "_loose", "_search", "_search_blind", "base", "negated", "text")

    def __init__(self, text: str, folder: Base, *, loose: bool = False, own_base: bool = False) -> None:
        self.text = text
        self._glob, self.base = (read_glob(nfc(text)), folder) if own_base else _read(nfc(text), folder)
        self.negated = self._glob.negated
        self._search: Callable[[str], object] | None = None
        self._search_blind: Callable[[str], object] | None = None
        self._exact: re.Pattern[str] | None = None
        self._loose = glob_test(nfc(text)) or bool if loose else None

    @property
    def loose(self) -> bool:
        """Whether it also has conclaude's reading."""
        return self._loose is not None

    @property
    def expression(self) -> str:
        """What a name below `base` begins with if it is what the pattern names, or below it."""
        return self._glob.self_or_parent

    def matches(self, target: Target) -> bool:
        """Tell whether a file, by any of its names, is what the pattern names, or below it."""
        search = self._blind() if target.blind else self._search or self._compile()
        below = target.below(self.base)
        for name in below:
            if search(name):
                return True
        loose = self._loose
        return loose is not None and any(map(loose, (*below, *target.names)))

    def names(self, path: str, *, blind: bool = False) -> bool:
        """Tell whether a relative path is exactly what the pattern names; folders end with a slash."""
        if self._exact is None:
            self._exact = re.compile(self._glob.itself)
        if blind:
            return re.fullmatch(self._glob.itself, path, re.IGNORECASE) is not None
        return self._exact.fullmatch(path) is not None

    def _compile(self) -> Callable[[str], object]:
        """Compile the expression when it is first needed: in a short life most are not."""
        self._search = re.compile(self._glob.self_or_parent).match
        return self._search

    def _blind(self) -> Callable[[str], object]:
        if self._search_blind is None:
            self._search_blind = re.compile(self._glob.self_or_parent, re.IGNORECASE).match
        return self._search_blind


def _read(text: str, folder: Base) -> tuple[Glob, Base]:
    negated, rest = ("!", text[1:]) if text.startswith("!") else ("", text)
    if rest.startswith("//"):
        return read_glob(negated + rest[1:]), Base("/", ("/",))
    if rest.startswith("~/"):
        return read_glob(negated + rest[1:]), Base.at(os.path.expanduser("~"))
    return read_glob(text), folder


class AnyOf:
    """Patterns as one expression for each folder that they belong to: to tell at once that none matches."""

    __slots__ = ("_loose", "_patterns", "_tests")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)
        self._loose = any(pattern.loose for pattern in self._patterns)
        self._tests: dict[bool, tuple[tuple[Base, Callable[[str], object]], ...]] = {}

    def may_match(self, target: Target) -> bool:
        """Tell whether a pattern matches a file by any of its names; conclaude's reading always may."""
        if self._loose:
            return True
        for base, search in self._tests.get(target.blind) or self._compile(blind=target.blind):
            for name in target.below(base):
                if search(name):
                    return True
        return False

    def _compile(self, *, blind: bool) -> tuple[tuple[Base, Callable[[str], object]], ...]:
        together: dict[Base, list[str]] = {}
        for pattern in self._patterns:
            together.setdefault(pattern.base, []).append(pattern.expression)
        flags = re.IGNORECASE if blind else 0
        found = tuple((base, re.compile(either(texts), flags).match) for base, texts in together.items())
        self._tests[blind] = found
        return found


class GitPatterns:
    """A list of gitignore patterns: the last one that matches decides, and nothing is let in below a closed folder."""

    def __init__(self, patterns: Sequence[str], folder: str | Base, *, loose: bool = False) -> None:
        base = folder if isinstance(folder, Base) else Base.at(folder)
        self.patterns = tuple(Pattern(text, base, loose=loose) for text in patterns)

    def match(self, target: Target) -> Pattern | None:
        """Give the pattern because of which a file is matched."""
        for at, pattern in enumerate(self.patterns):
            if not pattern.negated and pattern.matches(target):
                lifting = tuple(later for later in self.patterns[at + 1 :] if later.negated)
                if not is_lifted(target, pattern, lifting):
                    return pattern
        return None


def is_lifted(target: Target, pattern: Pattern, lifting: Sequence[Pattern]) -> bool:
    """Tell whether later patterns with a `!` take back a match, for every name that the file has."""
    if not lifting:
        return False
    if pattern.loose:
        return any(later.matches(target) for later in lifting)
    return not any(_stays(name, pattern, lifting, blind=target.blind) for name in target.below(pattern.base))


def _stays(name: str, pattern: Pattern, lifting: Sequence[Pattern], *, blind: bool) -> bool:
    """Go down from the folder as git does: a folder that is matched is never looked into."""
    for step in steps(name):
        if pattern.names(step, blind=blind) and not any(later.names(step, blind=blind) for later in lifting):
            return True
    return False


def steps(name: str) -> list[str]:
    """Give a relative path and all folders above it, from the top: `a/`, `a/b/`, `a/b/c`."""
    ends = [at + 1 for at, char in enumerate(name) if char == "/"]
    return [name[:end] for end in ends] + ([] if name.endswith("/") or not name else [name])
