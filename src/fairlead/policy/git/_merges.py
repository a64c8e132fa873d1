"""Which protected files a command of git would change: merges, rebases, picks, patches, and what git cannot tell."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._moves import CHECKOUTS, Move
from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_PICKED: Final = 30
_SEVERAL: Final = 10
"""The commits that a merge or a rebase may put on top."""
_MERGE_VALUES: Final = "message file strategy strategy-option cleanup into-name gpg-sign="
PRINTERS: Final = ("rev-parse", "merge-base", "describe", "symbolic-ref")
"""Commands whose output others take as a revision."""
_STEPS: Final = "abort quit continue skip"


# -- merge, pull, rebase -------------------------------------------------------------------------------


def _merge(move: Move) -> Iterator[str]:
    opts = move.parse("mFsX", _MERGE_VALUES, f"{_STEPS} squash no-commit ff ff-only no-ff quiet stat no-stat")
    if opts.has("abort"):
        yield from _back_to(move, "HEAD")
        return
    strategies = opts.values("s", "strategy", "X", "strategy-option")
    if any("subtree" in strategy for strategy in strategies):
        raise NotKnown("in which folder git merges a subtree")
    if opts.has("quit", "continue") or "ours" in opts.values("s", "strategy"):
        move.sequence.commits += 1
        return
    for revision in opts.words or ["@{upstream}"]:
        yield from _merged(move, revision)


def _merged(move: Move, revision: str) -> Iterator[str]:
    """Yield the files that another side changed since the common ancestor."""
    heads, others = move.heads(), move.commits(revision)
    for other in others:
        if not heads:
            yield from move.from_tree(other, deletes=False)
        for head in heads:
            bases = move.repository.merge_bases(head, other)
            theirs = move.repository.between(bases[0] if len(bases) == 1 else head, other)
            if not move.sequence.commits:
                differing = {change.path for change in move.repository.between(head, other)}
                theirs = tuple(change for change in theirs if change.path in differing)
            yield from move.written(theirs)
    move.require_known(revision)
    move.sequence.move(others)
    move.sequence.commits += _SEVERAL


def _back_to(move: Move, revision: str) -> Iterator[str]:
    """Yield the files that are put back to a commit: those that differ in the index."""
    for tree in move.trees(revision):
        for path, old, _ in move.repository.compared(tree):
            if move.repository.differs(path, old):
                yield path


def _pull(move: Move) -> Iterator[str]:
    opts = move.parse(
        "sXo",
        "strategy strategy-option depth upload-pack shallow-since server-option refmap rebase= recurse-submodules=",
    )
    words = [word.partition(":")[0].removeprefix("+") for word in opts.words]
    if words[:1] == ["."]:
        for revision in words[1:]:
            yield from _merged(move, revision)
        return
    known = [f"{words[0]}/{branch}" for branch in words[1:]] if words else ["@{upstream}"]
    for revision in known:
        yield from _merged(move, revision)
    raise NotKnown("what git pull brings from the remote is only known once it is fetched")


def _rebase(move: Move) -> Iterator[str]:
    opts = move.parse(
        "xsXC", "exec onto strategy strategy-option whitespace= empty= rebase-merges= gpg-sign=",
        f"{_STEPS} edit-todo show-current-patch interactive root keep-base fork-point autostash autosquash",
    )  # fmt: skip
    if opts.has("abort", "continue", "skip", "edit-todo"):
        yield from _resumed(move)
        return
    if opts.has("quit", "show-current-patch"):
        return
    for branch in opts.words[1:2]:
        yield from move.switch(branch)
    upstream = opts.words[0] if opts.words else "@{upstream}"
    onto = opts.value("onto")
    if opts.has("i", "interactive", "root") or onto is not None:
        yield from _replayed(move, onto or upstream)
    else:
        yield from _merged(move, upstream)


def _replayed(move: Move, revision: str) -> Iterator[str]:
    """Yield the files that differ from a commit on which only some commits may be applied again."""
    onto, _, _ = revision.partition("...")
    targets = move.commits(onto)
    for target in targets:
        for head in move.heads() or [move.repository.empty_tree(target)]:
            yield from move.written(move.repository.between(head, target))
    move.require_known(onto)
    move.sequence.move(targets)
    move.sequence.commits += _SEVERAL


def _resumed(move: Move) -> Iterator[str]:
    original = move.repository.file("rebase-merge/orig-head", "rebase-apply/orig-head")
    for target in move.commits(original) if original else ():
        yield from move.from_tree(target, deletes=True)
    todo = move.repository.file("rebase-merge/git-rebase-todo") or ""
    if re.search(r"^\s*(?:x|exec)\s", todo, re.MULTILINE):
        raise NotKnown("which files the commands change that this rebase runs")


# -- commits that are applied again --------------------------------------------------------------------


def _cherry_pick(move: Move) -> Iterator[str]:
    opts = move.parse("mX", "mainline strategy strategy-option cleanup gpg-sign= empty=", f"{_STEPS} no-commit edit")
    if opts.has("abort", "skip"):
        yield from _back_to(move, move.repository.file("sequencer/head") or "HEAD")
    if opts.has("abort", "skip", "quit", "continue"):
        return
    reverted = move.command.name == "revert"
    parent = opts.value("m", "mainline") or "1"
    for commit in _picked(move, opts.words):
        old = move.repository.resolve([f"{commit}^{parent}"])[0] or move.repository.empty_tree(commit)
        first, second = (commit, old) if reverted else (old, commit)
        yield from move.written(move.repository.between(first, second))
    for revision in opts.words:
        move.require_known(revision)
    move.sequence.commits += _SEVERAL


def _picked(move: Move, words: list[str]) -> list[str]:
    """Return the commits that are named, or in a range."""
    ranges = [word for word in words if ".." in word or word.startswith("^")]
    if not ranges:
        return [commit for word in words for commit in move.commits(word)]
    if any(word.startswith("-") for word in words):
        raise NotKnown("which commits git picks")
    for word in words:
        move.sequence.candidates(word)
    output = move.repository.process.ask("rev-list", f"--max-count={_MAX_PICKED + 1}", *words, "--", may_fail=True)
    commits = (output or b"").decode().split()
    if len(commits) > _MAX_PICKED:
        raise NotKnown(f"which files more than {_MAX_PICKED} commits change")
    return commits


# -- patches -------------------------------------------------------------------------------------------

PATCHED: Final = re.compile(
    r"^(?:\+\+\+|---) (?:\"?)(?P<file>[^\t\n\"]+)|^(?:rename|copy) (?:from|to) (?P<name>[^\n]+)"
    r"|^diff --git (?P<old>\S+) (?P<new>\S+)",
    re.MULTILINE,
)
_APPLY_VALUES: Final = "directory exclude include whitespace build-fake-ancestor patch-format= empty= gpg-sign="
_PLAIN_DESCRIBE: Final = re.compile(r"--(?:tags|all|always|long|first-parent|abbrev=\d+|match=.*|exclude=.*)")
_MAX_PATCH: Final = 4 * 1024 * 1024
_MAX_MODULE_FILES: Final = 20_000


def _apply(move: Move) -> Iterator[str]:
    flags = f"{_STEPS} stat numstat summary check cached index 3way reverse reject apply show-current-patch retry"
    opts = move.parse("pC", _APPLY_VALUES, flags)
    is_mail = move.command.name == "am"
    if opts.has("abort", "skip"):
        yield from _back_to(move, move.repository.file("rebase-apply/abort-safety") or "HEAD")
    if is_mail and opts.has("abort", "skip", "quit", "continue", "retry", "show-current-patch"):
        return
    if not opts.has("apply") and opts.has("stat", "numstat", "summary", "check", "cached"):
        return
    strip = int(opts.value("p") or 1) if (opts.value("p") or "1").isdigit() else 1
    folder = opts.value("directory") or ""
    here = os.path.relpath(os.path.realpath(move.repository.process.folder), move.repository.root)
    for text in _patches(move, opts.words):
        for name in patched_names(text, strip):
            for path in {os.path.normpath(f"{above}/{folder}/{name}").lstrip("/") for above in ("", here)}:
                if move.repository.wanted(path):
                    yield path


def _patches(move: Move, words: list[str]) -> Iterator[str]:
    command = move.command
    files = [word for word in words if word != "-"]
    if not files:
        if command.stdin is None:
            raise NotKnown(f"which files the patch changes that git {command.name} gets from another command")
        yield command.stdin
    for file in files:
        try:
            with open(os.path.join(move.repository.process.folder, file), encoding="utf-8", errors="replace") as patch:
                text = patch.read(_MAX_PATCH + 1)
        except OSError:
            raise NotKnown(f"which files the patch {file} changes: it cannot be read now") from None
        if len(text) > _MAX_PATCH:
            raise NotKnown(f"which files the patch {file} changes: it is too large to check")
        yield text


def patched_names(text: str, strip: int) -> Iterator[str]:
    """Yield the files that a patch names, without the first parts of their paths."""
    for match in PATCHED.finditer(text):
        if match["name"]:
            yield match["name"].strip().strip('"')
        for name in (match["file"], match["old"], match["new"]):
            if name and name.strip() != "/dev/null":
                parts = name.strip().strip('"').split("/")
                yield "/".join(parts[min(strip, len(parts) - 1) :])


# -- what git cannot tell beforehand -------------------------------------------------------------------


def _if_tracked(move: Move) -> Iterator[str]:
    """Yield nothing; what becomes of the protected files that git tracks is not known."""
    args = [word for word in move.command.args if not word.startswith("-")]
    if move.command.name == "sparse-checkout" and args[:1] in (["list"], ["check-rules"], []):
        return
    for path in move.repository.index(()):
        raise NotKnown(f"whether git {move.command.name} changes {path}")
    yield from ()


def _bisect(move: Move) -> Iterator[str]:
    action = move.command.args[0] if move.command.args else ""
    if action in {"", "log", "view", "visualize", "terms", "help"}:
        return
    for path in move.repository.in_history(["--all"]):
        raise NotKnown(f"which version of {path} git bisect checks out")
    yield from ()


def _submodule(move: Move) -> Iterator[str]:
    """Yield nothing; which files another commit of a submodule has is not known, if protected files are in it."""
    words = [word for word in move.command.args if not word.startswith("-")]
    if words[:1] != ["update"]:
        return
    listed = move.repository.process.lines("ls-files", "--stage", "-z", "--full-name", "--", *words[1:])
    for line in listed:
        module = line.partition("\t")[2]
        if line.startswith("160000 "):
            for path in filter(move.repository.wanted, _files_in(f"{move.repository.root}/{module}", module)):
                raise NotKnown(f"whether git submodule update changes {path}")
    yield from ()


def _files_in(folder: str, relative: str) -> Iterator[str]:
    """Yield the files of a submodule. Raise `NotKnown` if there are too many."""
    left = _MAX_MODULE_FILES
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        left -= len(files)
        if left < 0:
            raise NotKnown(f"which files git submodule update changes in {relative}")
        yield from (f"{relative}{above[len(folder) :]}/{name}" for name in files)


def _subtree(move: Move) -> Iterator[str]:
    if move.command.args[:1] not in ((), ("split",), ("push",)):
        raise NotKnown(f"which files git subtree {move.command.args[0]} changes")
    yield from ()


# -- calls that only change the state ------------------------------------------------------------------


def _commit(move: Move) -> Iterator[str]:
    if not move.sequence.is_opaque and any(
        move.from_index()
    ):  # the commit has other protected files than the disk, and than the commit before
        move.sequence.is_opaque = True
    move.sequence.commits += 1
    move.sequence.changed = True
    yield from ()


def _add(move: Move) -> Iterator[str]:
    opts = move.parse("", "chmod pathspec-from-file", "force update all dry-run patch interactive intent-to-add")
    if opts.has("n", "dry-run"):
        return
    move.sequence.changed = True
    if not opts.has("u", "update"):
        everything = opts.has("pathspec-from-file", "A", "all") and not opts.words
        move.sequence.added.append((opts.has("f", "force"), () if everything else tuple(opts.words)))
    yield from ()


def _fetch(move: Move) -> Iterator[str]:
    move.sequence.fetched = True
    for word in move.parse("o", "depth upload-pack refmap server-option shallow-since jobs").words[1:]:
        if ":" in word:
            move.sequence.is_opaque = True
    yield from ()


def _point(move: Move) -> Iterator[str]:
    """Record a branch or tag that is created, moved or renamed."""
    opts = move.parse(
        "umF", "set-upstream-to message file contains no-contains merged= no-merged= sort format points-at"
    )
    words = opts.words
    if opts.has("show-current"):
        yield from _print(move)
    elif opts.has("m", "M", "move", "c", "C", "copy") and move.command.name == "branch":
        renamed = opts.values("m") or words
        move.sequence.point(renamed[-1] if renamed else "", words[0] if len(words) > 1 else "HEAD")
    elif words and not opts.has("d", "D", "delete", "l", "list", "u", "set-upstream-to"):
        move.sequence.point(words[0], words[1] if len(words) > 1 else "HEAD")
    yield from ()


def _plumbing(move: Move) -> Iterator[str]:
    move.sequence.is_opaque = True
    yield from ()


def _symbolic_ref(move: Move) -> Iterator[str]:
    if len(move.parse("m").words) > 1:
        move.sequence.is_opaque = True
    else:
        yield from _print(move)


def _print(move: Move) -> Iterator[str]:
    """Record the commits that a call prints."""
    opts = move.parse("", "short= abbrev-ref= abbrev= match exclude format= max-count")
    name, words = move.command.name, opts.words
    if name == "merge-base":
        heads = [commit for word in words for commit in move.commits(word)[:1]]
        for first, second in pairwise(heads):
            move.sequence.printed += move.repository.merge_bases(first, second)
        if move.sequence.commits:  # a merge may have made one of them the ancestor of the other
            move.sequence.printed += heads
    elif name == "describe":
        options = [word for word in move.command.args if _PLAIN_DESCRIBE.fullmatch(word)]
        tag = move.repository.process.ask("describe", *options, may_fail=True)
        move.sequence.printed += os.fsdecode(tag or b"").split()
    else:
        for word in words if name == "rev-parse" else ["HEAD"]:
            move.sequence.printed += move.commits(word)
    yield from ()


MOVES: Final[dict[str, Callable[[Move], Iterator[str]]]] = {
    **CHECKOUTS,
    "merge": _merge,
    "pull": _pull,
    "rebase": _rebase,
    "cherry-pick": _cherry_pick,
    "revert": _cherry_pick,
    "apply": _apply,
    "am": _apply,
    "bisect": _bisect,
    "submodule": _submodule,
    "subtree": _subtree,
    "commit": _commit,
    "add": _add,
    "stage": _add,
    "fetch": _fetch,
    "branch": _point,
    "tag": _point,
    **dict.fromkeys(PRINTERS, _print),
    "symbolic-ref": _symbolic_ref,
    **dict.fromkeys(("sparse-checkout", "filter-branch", "filter-repo", "rerere", "merge-index"), _if_tracked),
    **dict.fromkeys(
        ("update-index", "update-ref", "replace", "fast-import", "merge-one-file", "unpack-objects"),
        _plumbing,
    ),
}
"""Subcommand → what it would change."""
