"""The protected files that git would change by merges, rebases, cherry-picks, patches and other commands."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._checkouts import CHECKOUTS, GitCall
from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MAX_PICKED: Final = 30
_MAX_NEW_COMMITS: Final = 10
"""The maximum number of commits that a merge or a rebase is assumed to add."""
_MERGE_VALUES: Final = "message file strategy strategy-option cleanup into-name gpg-sign="
REVISION_COMMANDS: Final = ("rev-parse", "merge-base", "describe", "symbolic-ref")
"""Commands whose output other commands take as a revision."""
_STEPS: Final = "abort quit continue skip"


# -- merge, pull, rebase -------------------------------------------------------------------------------


def _merge(call: GitCall) -> Iterator[str]:
    opts = call.parse("mFsX", _MERGE_VALUES, f"{_STEPS} squash no-commit ff ff-only no-ff quiet stat no-stat")
    if opts.has("abort"):
        yield from _back_to(call, "HEAD")
        return
    strategies = opts.values("s", "strategy", "X", "strategy-option")
    if any("subtree" in strategy for strategy in strategies):
        raise NotKnown("in which folder git merges a subtree")
    if opts.has("quit", "continue") or "ours" in opts.values("s", "strategy"):
        call.state.commits += 1
        return
    for revision in opts.words or ["@{upstream}"]:
        yield from _merged(call, revision)


def _merged(call: GitCall, revision: str) -> Iterator[str]:
    """Yield the files that `revision` has changed since the common ancestor, and record that it may be merged."""
    heads, others = call.heads(), call.commits(revision)
    for other in others:
        if not heads:
            yield from call.from_tree(other, deletes=False)
        for head in heads:
            bases = call.repository.merge_bases(head, other)
            theirs = call.repository.between(bases[0] if len(bases) == 1 else head, other)
            if not call.state.commits:
                differing = {change.path for change in call.repository.between(head, other)}
                theirs = tuple(change for change in theirs if change.path in differing)
            yield from call.written(theirs)
    call.require_known(revision)
    call.state.set_head(others)
    call.state.commits += _MAX_NEW_COMMITS


def _back_to(call: GitCall, revision: str) -> Iterator[str]:
    """Yield the files that a command restores from a commit: those that differ from it in the index."""
    for tree in call.trees(revision):
        for path, old, _ in call.repository.compared(tree):
            if call.repository.differs(path, old):
                yield path


def _pull(call: GitCall) -> Iterator[str]:
    opts = call.parse(
        "sXo",
        "strategy strategy-option depth upload-pack shallow-since server-option refmap rebase= recurse-submodules=",
    )
    words = [word.partition(":")[0].removeprefix("+") for word in opts.words]
    if words[:1] == ["."]:
        for revision in words[1:]:
            yield from _merged(call, revision)
        return
    known = [f"{words[0]}/{branch}" for branch in words[1:]] if words else ["@{upstream}"]
    for revision in known:
        yield from _merged(call, revision)
    raise NotKnown("what git pull brings from the remote is only known once it is fetched")


def _rebase(call: GitCall) -> Iterator[str]:
    opts = call.parse(
        "xsXC", "exec onto strategy strategy-option whitespace= empty= rebase-merges= gpg-sign=",
        f"{_STEPS} edit-todo show-current-patch interactive root keep-base fork-point autostash autosquash",
    )  # fmt: skip
    if opts.has("abort", "continue", "skip", "edit-todo"):
        yield from _resumed(call)
        return
    if opts.has("quit", "show-current-patch"):
        return
    for branch in opts.words[1:2]:
        yield from call.switch(branch)
    upstream = opts.words[0] if opts.words else "@{upstream}"
    onto = opts.value("onto")
    if opts.has("i", "interactive", "root") or onto is not None:
        yield from _replayed(call, onto or upstream)
    else:
        yield from _merged(call, upstream)


def _replayed(call: GitCall, revision: str) -> Iterator[str]:
    """Yield the files that differ in `revision`, the new base of a rebase, and record that it may be checked out.

    A file counts even if a rebased commit changes it back, because that commit may be dropped.
    """
    onto, _, _ = revision.partition("...")
    targets = call.commits(onto)
    for target in targets:
        for head in call.heads() or [call.repository.empty_tree(target)]:
            yield from call.written(call.repository.between(head, target))
    call.require_known(onto)
    call.state.set_head(targets)
    call.state.commits += _MAX_NEW_COMMITS


def _resumed(call: GitCall) -> Iterator[str]:
    original = call.repository.file("rebase-merge/orig-head", "rebase-apply/orig-head")
    for target in call.commits(original) if original else ():
        yield from call.from_tree(target, deletes=True)
    todo = call.repository.file("rebase-merge/git-rebase-todo") or ""
    if re.search(r"^\s*(?:x|exec)\s", todo, re.MULTILINE):
        raise NotKnown("which files the commands change that this rebase runs")


# -- cherry-pick, revert -------------------------------------------------------------------------------


def _cherry_pick(call: GitCall) -> Iterator[str]:
    opts = call.parse("mX", "mainline strategy strategy-option cleanup gpg-sign= empty=", f"{_STEPS} no-commit edit")
    if opts.has("abort", "skip"):
        yield from _back_to(call, call.repository.file("sequencer/head") or "HEAD")
    if opts.has("abort", "skip", "quit", "continue"):
        return
    reverted = call.command.name == "revert"
    parent = opts.value("m", "mainline") or "1"
    for commit in _picked(call, opts.words):
        old = call.repository.resolve([f"{commit}^{parent}"])[0] or call.repository.empty_tree(commit)
        first, second = (commit, old) if reverted else (old, commit)
        yield from call.written(call.repository.between(first, second))
    for revision in opts.words:
        call.require_known(revision)
    call.state.commits += _MAX_NEW_COMMITS


def _picked(call: GitCall, words: list[str]) -> list[str]:
    """Return the commits that the words name, alone or as a range. Raise `NotKnown` if a range is too long."""
    ranges = [word for word in words if ".." in word or word.startswith("^")]
    if not ranges:
        return [commit for word in words for commit in call.commits(word)]
    if any(word.startswith("-") for word in words):
        raise NotKnown("which commits git picks")
    for word in words:
        call.state.candidates(word)
    output = call.repository.process.run("rev-list", f"--max-count={_MAX_PICKED + 1}", *words, "--", may_fail=True)
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


def _apply(call: GitCall) -> Iterator[str]:
    flags = f"{_STEPS} stat numstat summary check cached index 3way reverse reject apply show-current-patch retry"
    opts = call.parse("pC", _APPLY_VALUES, flags)
    is_mail = call.command.name == "am"
    if opts.has("abort", "skip"):
        yield from _back_to(call, call.repository.file("rebase-apply/abort-safety") or "HEAD")
    if is_mail and opts.has("abort", "skip", "quit", "continue", "retry", "show-current-patch"):
        return
    if not opts.has("apply") and opts.has("stat", "numstat", "summary", "check", "cached"):
        return
    strip = int(opts.value("p") or 1) if (opts.value("p") or "1").isdigit() else 1
    folder = opts.value("directory") or ""
    here = os.path.relpath(os.path.realpath(call.repository.process.folder), call.repository.root)
    for text in _patches(call, opts.words):
        for name in patched_names(text, strip):
            for path in {os.path.normpath(f"{above}/{folder}/{name}").lstrip("/") for above in ("", here)}:
                if call.repository.wanted(path):
                    yield path


def _patches(call: GitCall, words: list[str]) -> Iterator[str]:
    command = call.command
    files = [word for word in words if word != "-"]
    if not files:
        if command.stdin is None:
            raise NotKnown(f"which files the patch changes that git {command.name} gets from another command")
        yield command.stdin
    for file in files:
        try:
            with open(os.path.join(call.repository.process.folder, file), encoding="utf-8", errors="replace") as patch:
                text = patch.read(_MAX_PATCH + 1)
        except OSError:
            raise NotKnown(f"which files the patch {file} changes: it cannot be read now") from None
        if len(text) > _MAX_PATCH:
            raise NotKnown(f"which files the patch {file} changes: it is too large to check")
        yield text


def patched_names(text: str, strip: int) -> Iterator[str]:
    """Yield the files that a patch names, without the first `strip` parts of their paths."""
    for match in PATCHED.finditer(text):
        if match["name"]:
            yield match["name"].strip().strip('"')
        for name in (match["file"], match["old"], match["new"]):
            if name and name.strip() != "/dev/null":
                parts = name.strip().strip('"').split("/")
                yield "/".join(parts[min(strip, len(parts) - 1) :])


# -- effects that are not known before the command runs ------------------------------------------------


def _unknown_if_tracked(call: GitCall) -> Iterator[str]:
    """Yield nothing. Raise `NotKnown` if git tracks a protected file, which the command may change."""
    args = [word for word in call.command.args if not word.startswith("-")]
    if call.command.name == "sparse-checkout" and args[:1] in (["list"], ["check-rules"], []):
        return
    for path in call.repository.index(()):
        raise NotKnown(f"whether git {call.command.name} changes {path}")
    yield from ()


def _bisect(call: GitCall) -> Iterator[str]:
    action = call.command.args[0] if call.command.args else ""
    if action in {"", "log", "view", "visualize", "terms", "help"}:
        return
    for path in call.repository.in_history(["--all"]):
        raise NotKnown(f"which version of {path} git bisect checks out")
    yield from ()


def _submodule(call: GitCall) -> Iterator[str]:
    """Yield nothing. Raise `NotKnown` if an updated submodule contains a protected file, which may change."""
    words = [word for word in call.command.args if not word.startswith("-")]
    if words[:1] != ["update"]:
        return
    listed = call.repository.process.lines("ls-files", "--stage", "-z", "--full-name", "--", *words[1:])
    for line in listed:
        module = line.partition("\t")[2]
        if line.startswith("160000 "):
            for path in filter(call.repository.wanted, _files_in(f"{call.repository.root}/{module}", module)):
                raise NotKnown(f"whether git submodule update changes {path}")
    yield from ()


def _files_in(folder: str, relative: str) -> Iterator[str]:
    """Yield the files of a submodule. Raise `NotKnown` if there are more than `_MAX_MODULE_FILES`."""
    left = _MAX_MODULE_FILES
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != ".git"]
        left -= len(files)
        if left < 0:
            raise NotKnown(f"which files git submodule update changes in {relative}")
        yield from (f"{relative}{above[len(folder) :]}/{name}" for name in files)


def _subtree(call: GitCall) -> Iterator[str]:
    if call.command.args[:1] not in ((), ("split",), ("push",)):
        raise NotKnown(f"which files git subtree {call.command.args[0]} changes")
    yield from ()


# -- calls that only change the state ------------------------------------------------------------------


def _commit(call: GitCall) -> Iterator[str]:
    # Protected files in the commit may differ from those on the disk and in the commit before.
    if not call.state.is_unpredictable and any(call.from_index()):
        call.state.is_unpredictable = True
    call.state.commits += 1
    call.state.changed = True
    yield from ()


def _add(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "chmod pathspec-from-file", "force update all dry-run patch interactive intent-to-add")
    if opts.has("n", "dry-run"):
        return
    call.state.changed = True
    if not opts.has("u", "update"):
        everything = opts.has("pathspec-from-file", "A", "all") and not opts.words
        call.state.added.append((opts.has("f", "force"), () if everything else tuple(opts.words)))
    yield from ()


def _fetch(call: GitCall) -> Iterator[str]:
    call.state.fetched = True
    for word in call.parse("o", "depth upload-pack refmap server-option shallow-since jobs").words[1:]:
        if ":" in word:
            call.state.is_unpredictable = True
    yield from ()


def _set_reference(call: GitCall) -> Iterator[str]:
    """Yield nothing. Record a branch or tag that is created, moved or renamed."""
    opts = call.parse(
        "umF", "set-upstream-to message file contains no-contains merged= no-merged= sort format points-at"
    )
    words = opts.words
    if opts.has("show-current"):
        yield from _print(call)
    elif opts.has("m", "M", "move", "c", "C", "copy") and call.command.name == "branch":
        renamed = opts.values("m") or words
        call.state.set_reference(renamed[-1] if renamed else "", words[0] if len(words) > 1 else "HEAD")
    elif words and not opts.has("d", "D", "delete", "l", "list", "u", "set-upstream-to"):
        call.state.set_reference(words[0], words[1] if len(words) > 1 else "HEAD")
    yield from ()


def _plumbing(call: GitCall) -> Iterator[str]:
    call.state.is_unpredictable = True
    yield from ()


def _symbolic_ref(call: GitCall) -> Iterator[str]:
    if len(call.parse("m").words) > 1:
        call.state.is_unpredictable = True
    else:
        yield from _print(call)


def _print(call: GitCall) -> Iterator[str]:
    """Yield nothing. Record the commits that a call prints."""
    opts = call.parse("", "short= abbrev-ref= abbrev= match exclude format= max-count")
    name, words = call.command.name, opts.words
    if name == "merge-base":
        heads = [commit for word in words for commit in call.commits(word)[:1]]
        for first, second in pairwise(heads):
            call.state.printed += call.repository.merge_bases(first, second)
        if call.state.commits:  # a merge may have made one of them the ancestor of the other
            call.state.printed += heads
    elif name == "describe":
        options = [word for word in call.command.args if _PLAIN_DESCRIBE.fullmatch(word)]
        tag = call.repository.process.run("describe", *options, may_fail=True)
        call.state.printed += os.fsdecode(tag or b"").split()
    else:
        for word in words if name == "rev-parse" else ["HEAD"]:
            call.state.printed += call.commits(word)
    yield from ()


CHANGE_FINDERS: Final[dict[str, Callable[[GitCall], Iterator[str]]]] = {
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
    "branch": _set_reference,
    "tag": _set_reference,
    **dict.fromkeys(REVISION_COMMANDS, _print),
    "symbolic-ref": _symbolic_ref,
    **dict.fromkeys(("sparse-checkout", "filter-branch", "filter-repo", "rerere", "merge-index"), _unknown_if_tracked),
    **dict.fromkeys(
        ("update-index", "update-ref", "replace", "fast-import", "merge-one-file", "unpack-objects"),
        _plumbing,
    ),
}
"""Subcommand → the function that yields the protected files that it would change."""
