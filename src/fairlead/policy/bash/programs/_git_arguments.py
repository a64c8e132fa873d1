"""Parses the arguments of git's subcommands as git does: long options may be abbreviated, `--` ends the revisions."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple


class GitArguments(NamedTuple):
    """The parsed arguments of a subcommand."""

    given: dict[str, list[str]]
    """Name of each option, without dashes → its values, "" for each time that it has none.

    The option that was given last comes last.
    """
    operands: list[str]
    """The words before `--`."""
    paths: list[str] | None
    """The words after `--`; `None` without it."""

    def has(self, *names: str) -> bool:
        """Return whether one of the options is given."""
        return not self.given.keys().isdisjoint(names)

    def values(self, *names: str) -> list[str]:
        """Return the values of the options, in the order of `names`."""
        return [value for name in names for value in self.given.get(name, ())]

    def value(self, *names: str) -> str | None:
        """Return the value that is given last for one of the options, which counts; `None` if none of them is given."""
        return next((values[-1] for name, values in reversed(self.given.items()) if name in names), None)

    @property
    def words(self) -> list[str]:
        """The words that are not options."""
        return self.operands + (self.paths or [])


def parse_git(args: tuple[str, ...], letters: str = "", valued: str = "", flags: str = "") -> GitArguments:
    """Parse arguments. `letters` and the names in `valued` take a value; `flags` are names that may be abbreviated.

    A name that ends with `=` in `valued` takes a value only after an equals sign. The option `-5` is returned as `n`.
    """
    given: dict[str, list[str]] = {}
    operands: list[str] = []
    paths: list[str] | None = None
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            paths = rest
            break
        if arg == "--end-of-options":
            operands += rest
            break
        if arg.startswith("--"):
            _long(arg[2:], valued, flags, rest, given)
        elif arg.startswith("-") and len(arg) > 1:
            _short(arg[1:], letters, rest, given)
        else:
            operands.append(arg)
    return GitArguments(given, operands, paths)


def _long(text: str, valued: str, flags: str, rest: list[str], given: dict[str, list[str]]) -> None:
    name, equals, value = text.partition("=")
    separate, known = _names(valued, flags)
    if name not in known:
        full = [other for other in known if other.startswith(name)]
        name = full[0] if len(full) == 1 else name
    if not equals and name in separate and rest:
        value = rest.pop(0)
    _add(given, name, value)


@lru_cache(maxsize=128)
def _names(valued: str, flags: str) -> tuple[frozenset[str], frozenset[str]]:
    names = valued.split()
    separate = frozenset(name for name in names if not name.endswith("="))
    return separate, frozenset(name.rstrip("=") for name in (*names, *flags.split()))


def _short(text: str, letters: str, rest: list[str], given: dict[str, list[str]]) -> None:
    if text.isdigit():
        _add(given, "n", text)
        return
    for index, letter in enumerate(text, 1):
        if letter in letters:
            value = text[index:] or (rest.pop(0) if rest else "")
            _add(given, letter, value)
            return
        _add(given, letter, "")


def _add(given: dict[str, list[str]], name: str, value: str) -> None:
    given[name] = [*given.pop(name, ()), value]


OWN_COMMANDS: Final = frozenset(
    """add am annotate apply archive bisect blame branch bugreport bundle cat-file check-attr check-ignore
    check-mailmap check-ref-format checkout checkout-index cherry cherry-pick citool clean clone column commit
    commit-graph commit-tree config count-objects credential credential-cache credential-store daemon describe
    diagnose diff diff-files diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch
    fmt-merge-msg for-each-ref for-each-repo format-patch fsck fsck-objects gc get-tar-commit-id grep gui hash-object
    help history hook http-backend http-fetch http-push imap-send index-pack init init-db instaweb interpret-trailers
    last-modified log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge merge-base merge-file
    merge-index merge-one-file merge-recursive merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes
    pack-objects pack-redundant pack-refs patch-id prune prune-packed pull push quiltimport range-diff read-tree
    rebase receive-pack reflog refs remote repack replace replay repo request-pull rerere reset restore rev-list
    rev-parse revert rm scalar send-email send-pack shell shortlog show show-branch show-index show-ref
    sparse-checkout stage stash status stripspace submodule subtree switch symbolic-ref tag unpack-file unpack-objects
    update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack verify-tag
    version whatchanged worktree write-tree""".split()  # noqa: SIM905 - a table
)
"""Git's own commands; an alias cannot replace one. Any other name is an alias or a program `git-NAME`."""
