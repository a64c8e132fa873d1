r"""gitignore patterns: parsed, translated to regular expressions, and matched against every name of a file.

The guards, `when:` and the reader of `.gitignore` all use this module, so that a pattern means the same everywhere.
The dialect is git's; `tests/policy/test_gitignore.py` compares it with `git check-ignore`. It differs on purpose: it
compares characters, not bytes; repeated slashes count as one; tabs at the end are dropped; and `a**/b` is `a*/b`, as
gitignore(5) says, where git also matches `ab`. In a policy, not in git's own files, `./a`, `*.{a,b}` and an absolute
path in the folder mean what they mean to people; in git they match nothing.

The package `pathspec` is not used (1.1.1, measured with Python 3.11). Importing it takes 13 ms, this module 3 ms, and a
process without a daemon lives for one event. It backtracks: `*a*a*a*a*a*a*a*a*a*ab` took 10 s on a name of 40
characters, and takes 0.3 ms here, as no expression retries what it has matched (atomic groups). Of 1000 random lists of
patterns it read 150 differently from git, with classes such as `[[:digit:]]` and `[\]]` among them. It cannot ignore
case.
"""

from __future__ import annotations

import os
import re
from stat import S_IFDIR, S_IFREG

from fairlead.policy._globs import glob_test
from fairlead.policy.paths._plain_match import plain_test
from fairlead.policy.paths._resolve import BaseFolder, ResolvedPath
from fairlead.policy.paths._spelling import is_case_insensitive, nfc
from fairlead.policy.paths._translate import ANY_FOLDERS, Translated, expand_braces, translate, translate_all
from fairlead.structs import LIGHT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Find = Callable[[str], object]

# -- one pattern ---------------------------------------------------------------------------------------


class Pattern:
    """A gitignore pattern, relative to a folder.

    Three kinds, as in the client's own permission rules: `docs/*.md` and `/docs` belong to the folder, and never
    match outside of it, as do `./docs` and an absolute path in the folder; `~/.ssh/**` belongs to the home folder;
    `//etc/**`, with two slashes, to the whole disk. In git's own files (`own_base`) there is only the first kind.
    `loose` adds conclaude's reading: a `*` also matches slashes, and the absolute path may match too.
    """

    __slots__ = ("_exact", "_find", "_find_any_case", "_loose", "_translated", "base", "negated", "text")

    def __init__(self, text: str, folder: BaseFolder, *, loose: bool = False, own_base: bool = False) -> None:
        self.text = text
        self._translated, self.base = (translate(nfc(text)), folder) if own_base else _with_base(nfc(text), folder)
        self.negated = self._translated.negated
        self._find: Find | None = None
        self._find_any_case: Find | None = None
        self._exact: re.Pattern[str] | None = None
        self._loose = glob_test(nfc(text)) or bool if loose else None

    @property
    def loose(self) -> bool:
        """Whether the pattern is also read as conclaude reads it."""
        return self._loose is not None

    @property
    def expression(self) -> str:
        """A regular expression for the start of a name below `base`: what the pattern names, or a file below it."""
        return self._translated.self_or_parent

    def matches(self, target: ResolvedPath) -> bool:
        """Return whether the pattern names a file, or a folder above it, by any of the file's names."""
        find = self._compile_any_case() if target.case_insensitive else self._find or self._compile()
        below = target.below(self.base)
        for name in below:
            if find(name):
                return True
        loose = self._loose
        return loose is not None and any(map(loose, (*below, *target.names)))

    def names(self, path: str, *, case_insensitive: bool = False) -> bool:
        """Return whether the pattern names exactly this relative path; folders end with a slash."""
        if self._exact is None:
            self._exact = re.compile(self._translated.itself)
        if case_insensitive:
            return re.fullmatch(self._translated.itself, path, re.IGNORECASE) is not None
        return self._exact.fullmatch(path) is not None

    def _compile(self) -> Find:
        """Compile the pattern, keep the function that tests a name, and return it.

        Called on first use: a process that handles one event needs few of its patterns.
        """
        plain = plain_test(self._translated.plain) if LIGHT and self._translated.plain else None
        self._find = plain or re.compile(self._translated.self_or_parent).match
        return self._find

    def _compile_any_case(self) -> Find:
        if self._find_any_case is None:
            self._find_any_case = re.compile(self._translated.self_or_parent, re.IGNORECASE).match
        return self._find_any_case


def _with_base(text: str, folder: BaseFolder) -> tuple[Translated, BaseFolder]:
    """Translate a pattern as people write it (`./a`, an absolute path, `*.{a,b}`), and return its base folder, too."""
    negated, rest = ("!", text[1:]) if text.startswith("!") else ("", text)
    base = folder
    if rest.startswith("//"):
        rest, base = rest[1:], BaseFolder("/", ("/",))
    elif rest.startswith("~/"):
        rest, base = rest[1:], BaseFolder.at(os.path.expanduser("~"))
    elif rest.startswith("/"):
        rest = _below_folder(rest, folder)
    elif rest.startswith("./"):
        rest = rest[1:]
    if "/./" in rest:
        rest = re.sub(r"(?:/\.)+(?=/)", "", rest)
    return translate_all([negated + option for option in expand_braces(rest)]), base


def _below_folder(text: str, folder: BaseFolder) -> str:
    """Return a pattern relative to the folder.

    An absolute path in the folder is converted: in `/p`, `/p/a` → `/a`. Any other pattern is relative already.
    """
    prefix = next((prefix for prefix in folder.prefixes if prefix != "/" and f"{text}/".startswith(prefix)), None)
    return text if prefix is None else "/" + (text[len(prefix) :] or "**")


# -- several patterns ----------------------------------------------------------------------------------


class PatternList:
    """A list of gitignore patterns: the last match decides, and no file below a matched folder is re-included."""

    def __init__(self, patterns: Sequence[str], folder: str | BaseFolder, *, loose: bool = False) -> None:
        base = folder if isinstance(folder, BaseFolder) else BaseFolder.at(folder)
        self._folder = base.folder.rstrip("/")
        self._patterns = tuple(Pattern(text, base, loose=loose) for text in patterns)

    def match(self, target: ResolvedPath) -> Pattern | None:
        """Return the pattern that matches a file; `None` if none does, or if a later pattern re-includes the file."""
        for index, pattern in enumerate(self._patterns):
            if not pattern.negated and pattern.matches(target):
                later = tuple(other for other in self._patterns[index + 1 :] if other.negated)
                if not is_reincluded(target, pattern, later):
                    return pattern
        return None

    def matches_any(self, names: Iterable[str]) -> bool:
        """Return whether one of the names matches, each relative to the folder; names of folders end with a slash.

        The files are not looked up: they may be deleted.
        """
        case_insensitive = is_case_insensitive(self._folder or "/")
        return any(self.match(self._target(name, case_insensitive=case_insensitive)) for name in names)

    def _target(self, name: str, *, case_insensitive: bool) -> ResolvedPath:
        path = nfc(f"{self._folder}/{name.rstrip('/')}")
        mode = S_IFDIR if name.endswith("/") else S_IFREG
        return ResolvedPath(name, (path,), path, mode, case_insensitive=case_insensitive)


class PatternSet:
    """Patterns, joined to one expression for each folder that they belong to. A quick test shows if none matches."""

    __slots__ = ("_loose", "_patterns", "_tests")

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._patterns = tuple(patterns)
        self._loose = tuple(pattern for pattern in self._patterns if pattern.loose)
        self._tests: dict[bool, tuple[tuple[BaseFolder, Find], ...]] = {}

    def may_match(self, target: ResolvedPath) -> bool:
        """Return whether a pattern matches a file by any of its names. A leading `!` is ignored."""
        if LIGHT:  # this process decides one event: to compile one expression of all takes longer
            return any(pattern.matches(target) for pattern in self._patterns)
        any_case = target.case_insensitive
        for base, find in self._tests.get(any_case) or self._compile(case_insensitive=any_case):
            for name in target.below(base):
                if find(name):
                    return True
        return bool(self._loose) and any(pattern.matches(target) for pattern in self._loose)

    def _compile(self, *, case_insensitive: bool) -> tuple[tuple[BaseFolder, Find], ...]:
        by_base: dict[BaseFolder, list[str]] = {}
        for pattern in self._patterns:
            by_base.setdefault(pattern.base, []).append(pattern.expression)
        flags = re.IGNORECASE if case_insensitive else 0
        tests = tuple((base, re.compile(_either(texts), flags).match) for base, texts in by_base.items())
        self._tests[case_insensitive] = tests
        return tests


def _either(expressions: Iterable[str]) -> str:
    """Join expressions into one. Expressions that may begin in any folder share one prefix."""
    anywhere: list[str] = []
    anchored: list[str] = []
    for text in expressions:
        inner = text.removeprefix(ANY_FOLDERS)
        (anchored if inner == text else anywhere).append(f"(?:{inner})")
    return "|".join(anchored + ([f"{ANY_FOLDERS}(?:{'|'.join(anywhere)})"] if anywhere else []))


def is_reincluded(target: ResolvedPath, pattern: Pattern, negated: Sequence[Pattern]) -> bool:
    """Return whether later patterns with a `!` re-include a file, under every name that the pattern matches."""
    if not negated:
        return False
    if pattern.loose:
        return any(later.matches(target) for later in negated)
    return not any(
        _is_excluded(name, pattern, negated, case_insensitive=target.case_insensitive)
        for name in target.below(pattern.base)
    )


def _is_excluded(name: str, pattern: Pattern, negated: Sequence[Pattern], *, case_insensitive: bool) -> bool:
    """Return whether a name, or a folder above it, is excluded. Git never enters an excluded folder."""
    for path in self_and_parents(name):
        if pattern.names(path, case_insensitive=case_insensitive) and not any(
            later.names(path, case_insensitive=case_insensitive) for later in negated
        ):
            return True
    return False


def self_and_parents(name: str) -> list[str]:
    """Return a relative path and the folders above it, from the top: `a/`, `a/b/`, `a/b/c`."""
    ends = [index + 1 for index, char in enumerate(name) if char == "/"]
    return [name[:end] for end in ends] + ([] if name.endswith("/") or not name else [name])
