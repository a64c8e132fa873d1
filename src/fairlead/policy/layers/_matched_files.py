"""The files that each pattern of the guards matches now, for people who check their policy. Bounded."""

from __future__ import annotations

import os
import time
from collections import deque
from functools import partial
from stat import S_IFREG
from typing import TYPE_CHECKING

from fairlead.policy.guards._evaluation import MAIN_AGENT
from fairlead.policy.guards._file_rules import FileRules
from fairlead.policy.paths._gitignore import Pattern, PatternSet
from fairlead.policy.paths._resolve import BaseFolder, ResolvedPath
from fairlead.policy.paths._roots import search_roots
from fairlead.policy.paths._spelling import is_case_insensitive, nfc
from fairlead.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from fairlead.policy.config._types import Layer
    from fairlead.policy.guards._file_rules import ListedRule
    from fairlead.policy.paths._roots import SearchRoot

MAX_ENTRIES = 50_000
"""The maximum number of files that are visited below one folder."""
MAX_SECONDS = 2.0
MAX_LISTED = 1_000
"""The maximum number of files of one pattern that are named."""


class PatternMatches(Struct, frozen=True, omit_defaults=True):
    """A pattern of a rule, and the files that it matches now."""

    setting: str
    """The setting of the rule: `preToolUse.uneditableFiles[0]`."""
    pattern: str
    policy: str
    """The policy file."""
    count: int
    complete: bool
    """Whether all files were compared; else there may be more matches."""
    hint: str = ""
    """What to write, if the pattern matches nothing as it is written."""
    files: tuple[str, ...] = ()
    """The first of the matched files."""


def matched_files(
    layers: Sequence[Layer], *, max_listed: int = MAX_LISTED, seconds: float = MAX_SECONDS
) -> tuple[PatternMatches, ...]:
    """Return the files that each pattern matches, in the order of the policy files and their rules.

    `max_listed` limits the files that are named for each pattern, `seconds` the time of the whole search.
    """
    searches = [*_listed(layers), *_on_tools(layers)]
    end = time.monotonic() + seconds
    incomplete: set[str] = set()
    for root in search_roots(search.pattern for search in searches):
        below = [search for search in searches if search.folder == root.folder]
        if not _search(root, below, end):
            incomplete.add(root.folder)
    return tuple(search.result(max_listed, complete=search.folder not in incomplete) for search in searches)


class _Search:
    """A pattern, and the files that it has matched so far."""

    def __init__(self, setting: str, policy: str, pattern: Pattern, test: Callable[[ResolvedPath], bool]) -> None:
        self.pattern = pattern
        self.folder = os.path.realpath(pattern.base.folder)
        self._setting, self._policy, self._test = setting, policy, test
        self._without_slash = Pattern(pattern.text.rstrip("/"), pattern.base) if pattern.text.endswith("/") else None
        self._files: list[str] = []
        self._count = 0
        self._is_file = False

    def add_if_matched(self, target: ResolvedPath) -> None:
        if self._test(target):
            self._count += 1
            if len(self._files) < MAX_LISTED:
                self._files.append(target.real)
        elif self._without_slash is not None and self._without_slash.matches(target):
            self._is_file = True

    def result(self, max_listed: int, *, complete: bool) -> PatternMatches:
        return PatternMatches(
            self._setting,
            self.pattern.text,
            self._policy,
            self._count,
            complete,
            "" if self._count else self._hint(),
            tuple(sorted(self._files)[:max_listed]),
        )

    def _hint(self) -> str:
        text = self.pattern.text
        if self._is_file:
            return f"it matches folders only; for the file write `{text.rstrip('/')}`"
        if text.startswith("/") and not text.startswith("//") and os.path.lexists(_literal_folder(text)):
            return f"it is relative to {self.pattern.base.folder}; for the path on the disk write `/{text}`"
        return ""


def _literal_folder(text: str) -> str:
    """Return the topmost folder of an absolute path: `/etc` of `/etc/x`; of `/*/x`, without one, the path itself."""
    parts = text.split("/")[1:]
    return f"/{parts[0]}" if not parts[0].startswith(("*", "?", "[", "{")) else text


def _listed(layers: Sequence[Layer]) -> Iterator[_Search]:
    rules = FileRules(layers)
    for listed in (rules.uneditable, rules.unreadable, rules.additions):
        for rule in listed.rules:
            yield _Search(rule.missed.setting, rule.missed.file, rule.pattern, partial(_holds, rule))


def _holds(rule: ListedRule, target: ResolvedPath) -> bool:
    return rule.matches(target, MAIN_AGENT)


def _on_tools(layers: Iterable[Layer]) -> Iterator[_Search]:
    for layer in layers:
        base = BaseFolder.at(layer.folder)
        for index, rule in enumerate(layer.policy.pre_tool_use.tool_usage_validation):
            if rule.pattern != "*":
                pattern = Pattern(rule.pattern, base, loose=layer.is_conclaude)
                yield _Search(f"preToolUse.toolUsageValidation[{index}]", layer.file, pattern, pattern.matches)


def _search(root: SearchRoot, searches: Sequence[_Search], end: float) -> bool:
    """Add the files below a folder to the searches that match them, nearest first; `False` if a limit ended it."""
    any_of = PatternSet(search.pattern for search in searches)
    ignores_case = is_case_insensitive(root.folder)
    slashed = any(search.pattern.text.endswith("/") for search in searches)
    for index, path in enumerate(_files(root)):
        if index >= MAX_ENTRIES or time.monotonic() > end:
            return False
        target = ResolvedPath(path, (nfc(path),), path, S_IFREG, case_insensitive=ignores_case)
        if slashed or any_of.may_match(target):
            for search in searches:
                search.add_if_matched(target)
    return True


def _files(root: SearchRoot) -> Iterator[str]:
    """Yield the files below a folder that can match, level by level, without the contents of `.git`."""
    waiting = deque([""])
    while waiting:
        above = waiting.popleft()
        try:
            entries = list(os.scandir(f"{root.folder}/{above}"))
        except OSError:
            continue
        for entry in entries:
            relative = above + entry.name
            if not entry.is_dir(follow_symlinks=False):
                yield f"{root.folder.rstrip('/')}/{relative}"
            elif entry.name != ".git" and root.may_contain(relative):
                waiting.append(f"{relative}/")
