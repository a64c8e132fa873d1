"""The unreadable files whose contents a git command would show. File names are not contents."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._checkouts import GitCall, is_pattern
from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairlead.policy.bash.programs._git_arguments import GitArguments

_LETTERS: Final = "SGnUOlLIX"
_VALUED: Final = (
    "output format= pretty= author committer grep since until after before max-count skip diff-filter= unified "
    "inter-hunk-context= word-diff= stat= find-object src-prefix dst-prefix relative= color= branches= tags= remotes="
)
_FLAGS: Final = "patch no-patch name-only name-status numstat shortstat summary raw quiet cached staged all"
_PATCH: Final = (
    *("p", "u", "patch", "U", "unified", "patch-with-stat", "patch-with-raw", "c", "cc", "word-diff", "color-words"),
    *("remerge-diff", "W", "function-context", "L", "binary", "full-diff", "ext-diff", "textconv"),
)
_NO_PATCH: Final = (
    *("stat", "numstat", "shortstat", "dirstat", "X", "summary", "name-only", "name-status", "raw", "s", "no-patch"),
    *("quiet", "compact-summary", "cumulative"),
)
_LIMITS: Final = (
    *("max-count", "since", "until", "after", "before", "author", "committer", "grep", "skip", "all", "branches"),
    *("tags", "remotes", "first-parent", "merges", "no-merges", "reflog", "walk-reflogs"),
)


def _parse(call: GitCall, skip: int = 0) -> GitArguments:
    return call.parse(_LETTERS, _VALUED, _FLAGS, skip)


def _shows_patch(opts: GitArguments, *, default: bool) -> bool:
    if opts.has(*_PATCH):
        return True
    return default and not opts.has(*_NO_PATCH)


# -- objects -------------------------------------------------------------------------------------------


def _object_path(call: GitCall, word: str) -> str | None:
    """Return the path of `REVISION:path` or `:path`, relative to the root; `None` if the word is a revision.

    Empty for `REVISION:`, the root itself.
    """
    if word.startswith((":/", ":(", ":!", ":^")) or ":" not in word or "@{" in word.rpartition(":")[2]:
        return None
    path = word.partition(":")[2]
    if word.startswith(":") and path[1:2] == ":" and path[:1].isdigit():
        path = path[2:]
    if path.startswith(("./", "../")) or path in {".", ".."}:
        here = os.path.realpath(call.repository.process.folder)
        path = os.path.relpath(os.path.join(here, path), call.repository.root)
    return os.path.normpath(path) if path else ""


def _objects(call: GitCall, words: Sequence[str]) -> Iterator[str]:
    """Yield the files that git shows for the objects in `words`: the contents of blobs, the diffs of commits."""
    for word in words:
        path = _object_path(call, word)
        if path is not None:
            if path and call.repository.wanted(path):
                yield path
            continue
        blob, commit = (call.repository.resolve([word], kind)[0] for kind in ("blob", "commit"))
        if blob is not None:
            yield from _names_of(call, blob)
        elif commit is not None:
            yield from _shown_commit(call, commit)


def _shown_commit(call: GitCall, commit: str, paths: Sequence[str] = ()) -> Iterator[str]:
    options = ("--no-commit-id", "-r", "--root", "--cc", "--name-only", "-z", "--no-ext-diff", "--no-textconv")
    for path in call.repository.process.lines("diff-tree", *options, commit, "--", *paths):
        if call.repository.wanted(path):
            yield path


def _names_of(call: GitCall, blob: str) -> Iterator[str]:
    """Yield the files to check that have a blob as their contents, in the index or in any commit.

    Raise `NotKnown` if the blob belongs to no file.
    """
    repository = call.repository
    yield from (path for path, entries in repository.index().items() if any(entry.oid == blob for entry in entries))
    names = repository.process.lines("log", "--all", "--format=", "--name-only", "-z", "-m", f"--find-object={blob}")
    listed = repository.process.run("ls-files", "--stage", "--full-name", "--", ":/") or b""
    if not any(names) and blob.encode() not in listed:
        raise NotKnown(f"which file the object {blob[:12]} of git is")
    yield from (path for path in dict.fromkeys(names) if path and repository.wanted(path))


def _show(call: GitCall) -> Iterator[str]:
    opts = _parse(call)
    if not _shows_patch(opts, default=True):
        yield from _objects(call, [word for word in opts.operands if _object_path(call, word) is not None])
        return
    revisions = opts.operands or ["HEAD"]
    if opts.paths:
        for commit in filter(None, call.repository.resolve(revisions)):
            yield from _shown_commit(call, commit, opts.paths)
        return
    yield from _objects(call, revisions)


def _cat_file(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "batch= batch-check= batch-command= filter", "textconv filters batch-all-objects")
    if opts.has("t", "s", "e") or (opts.has("batch-check") and not opts.has("batch", "batch-command")):
        return
    if opts.has("batch", "batch-command"):
        if call.command.stdin is None or opts.has("batch-all-objects"):
            yield from _all_history(call, "git cat-file --batch")
            return
        lines = call.command.stdin.split("\n")
        yield from _objects(call, [line.removeprefix("contents ") for line in lines if line])
        return
    yield from _objects(call, opts.words[-1:])


def _all_history(call: GitCall, what: str) -> Iterator[str]:
    """Yield nothing; raise `NotKnown` if an unreadable file is in the index or in a commit. `what` is the call."""
    for path in (*call.repository.index(), *call.repository.in_history(["--all"])):
        raise NotKnown(f"whether {what} shows the contents of {path}")
    yield from ()


# -- differences ---------------------------------------------------------------------------------------


def _log(call: GitCall) -> Iterator[str]:
    opts = _parse(call, skip=1 if call.command.args[:1] in (("show",), ("list",)) else 0)
    for text in opts.values("L"):
        path = text.rpartition(":")[2]
        yield from (name for name in call.repository.index([path]) if name)
    whole = [option for option in _PATCH if option != "L"] if opts.has("L") else _PATCH
    if opts.has(*whole):
        yield from _history(call, opts)


def _history(call: GitCall, opts: GitArguments) -> Iterator[str]:
    limits = [f"--{name}={value}" if value else f"--{name}" for name in _LIMITS for value in opts.given.get(name, ())]
    limits += [f"--max-count={value}" for value in opts.values("n")]
    revisions, paths = _split_revisions(call, opts)
    if opts.has("g"):
        limits.append("--walk-reflogs")
    yield from call.repository.in_history([*limits, *revisions], paths)


def _split_revisions(call: GitCall, opts: GitArguments) -> tuple[list[str], list[str]]:
    """Split the operands of a call into revisions and paths; no `--` is needed between the two."""
    if opts.paths is not None:
        return opts.operands, opts.paths
    count = 0
    for word in opts.operands:
        parts = [part for part in word.removeprefix("^").replace("...", "..").split("..") if part] or ["HEAD"]
        if _object_path(call, word) is None and not call.repository.all_exist(parts):
            break
        count += 1
    return opts.operands[:count], opts.operands[count:]


def _diff(call: GitCall) -> Iterator[str]:
    opts = _parse(call)
    plumbing = call.command.name.startswith("diff-")
    if opts.has("no-index") or not _shows_patch(opts, default=not plumbing):
        return
    if call.command.name == "diff-tree" and len(opts.operands) == 1 and not opts.has("stdin"):
        yield from _objects(call, opts.operands)
        return
    revisions, paths = _split_revisions(call, opts)
    yield from _difference(call, revisions, paths, cached=opts.has("cached", "staged"))


def _difference(call: GitCall, revisions: list[str], paths: list[str], *, cached: bool) -> Iterator[str]:
    objects = [word for word in revisions if _object_path(call, word) is not None]
    if objects:
        yield from _objects(call, objects)
        return
    if len(revisions) == 1 and ".." in revisions[0]:
        yield from _range(call, revisions[0], paths)
    elif len(revisions) > 1:
        trees = [tree for tree in call.repository.resolve(revisions, "tree") if tree is not None]
        for first, second in pairwise(trees):
            yield from (change.path for change in call.repository.between(first, second, paths))
    elif cached:
        for tree in call.trees(revisions[0] if revisions else "HEAD"):
            yield from (change.path for change in call.repository.compared(tree, paths))
    elif revisions:
        for tree in call.trees(revisions[0]):
            yield from call.from_tree(tree, paths, deletes=True)
    else:
        yield from call.from_index(paths)


def _range(call: GitCall, word: str, paths: list[str]) -> Iterator[str]:
    first, dots, second = word.partition("...") if "..." in word else word.partition("..")
    start, end = call.repository.resolve([first or "HEAD", second or "HEAD"])
    if start is None or end is None:
        return
    if len(dots) > len(".."):
        start = (*call.repository.merge_bases(start, end), start)[0]
    yield from (change.path for change in call.repository.between(start, end, paths))


def _status(call: GitCall) -> Iterator[str]:
    verbose = len(_parse(call).given.get("v", ())) + len(_parse(call).given.get("verbose", ()))
    if verbose:
        yield from _difference(call, [], [], cached=True)
    if verbose > 1:
        yield from call.from_index()


def _interactive(call: GitCall) -> Iterator[str]:
    """Yield the files whose differences `add -p`, `checkout -p` and others show."""
    opts = call.parse("", "", "patch interactive edit")
    if opts.has("p", "patch", "e", "edit", "i", "interactive"):
        yield from call.from_index(opts.paths or ())


def _stash(call: GitCall) -> Iterator[str]:
    args = call.command.args
    if args[:1] == ("list",):
        yield from _log(call)
    if args[:1] != ("show",):
        return
    opts = _parse(call, skip=1)
    if not opts.has(*_PATCH):
        return
    name = opts.words[0] if opts.words else "stash@{0}"
    name = f"stash@{{{name}}}" if name.isdigit() else name
    stash, base, untracked = call.repository.resolve([name, f"{name}^1", f"{name}^3"])
    if stash is not None and base is not None:
        yield from (change.path for change in call.repository.between(base, stash))
    if untracked is not None:
        yield from _whole(call, untracked)


def _format_patch(call: GitCall) -> Iterator[str]:
    opts = call.parse("ovn", "output-directory start-number subject-prefix to cc from cover-letter= base signature")
    revisions = opts.operands
    if len(revisions) == 1 and ".." not in revisions[0] and not opts.has("n"):
        revisions = [f"{revisions[0]}..HEAD"]
    count = opts.value("n") or ""
    limits = [f"--max-count={count}"] if count.isdigit() else []
    yield from call.repository.in_history([*limits, *revisions], opts.paths or ())


# -- whole files ---------------------------------------------------------------------------------------


def _whole(call: GitCall, tree: str, paths: Sequence[str] = ()) -> Iterator[str]:
    """Yield the unreadable files of a tree, whose contents are shown."""
    yield from (change.path for change in call.repository.between(call.repository.empty_tree(tree), tree, paths))


def _archive(call: GitCall) -> Iterator[str]:
    opts = call.parse("o", "output prefix add-file add-virtual-file format remote exec mtime", "list verbose")
    if opts.has("l", "list"):
        return
    for revision in opts.operands[:1]:
        for tree in filter(None, call.repository.resolve([revision], "tree")):
            yield from _whole(call, tree, [*opts.operands[1:], *(opts.paths or ())])


_GREP_LISTS: Final = ("l", "L", "q", "c", "files-with-matches", "name-only", "files-without-match", "quiet", "count")


def _grep(call: GitCall) -> Iterator[str]:
    opts = call.parse(
        "eABCmfO", "max-depth threads context after-context before-context max-count open-files-in-pager=",
        "untracked no-index cached files-with-matches name-only files-without-match quiet count exclude-standard",
    )  # fmt: skip
    if opts.has(*_GREP_LISTS):
        return
    words = opts.operands if opts.has("e", "f") else opts.operands[1:]
    revisions, paths = _split_revisions(call, opts._replace(operands=words))
    for tree in filter(None, call.repository.resolve(revisions, "tree") if revisions else ()):
        yield from _whole(call, tree, paths)
    if not revisions:
        yield from call.repository.index(paths)
        if opts.has("untracked", "no-index"):
            yield from call.repository.untracked(["--exclude-standard"] if opts.has("untracked") else [], paths)


def _whole_history(call: GitCall) -> Iterator[str]:
    args = call.command.args[2:] if call.command.name == "bundle" else call.command.args
    if call.command.name == "bundle" and call.command.args[:1] != ("create",):
        return
    revisions = [word for word in args if not word.startswith("-")] or ["--all"]
    yield from call.repository.in_history(["--all"] if "--all" in args else revisions)


def _checkout_index(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "prefix stage", "temp all stdin")
    if opts.has("prefix", "temp"):
        yield from call.repository.index(opts.words)


_INTERACTIVE: Final = ("add", "stage", "checkout", "reset", "restore")
SHOW_FINDERS: Final[dict[str, Callable[[GitCall], Iterator[str]]]] = {
    "show": _show,
    "cat-file": _cat_file,
    "unpack-file": _cat_file,
    **dict.fromkeys(("log", "whatchanged", "reflog"), _log),
    **dict.fromkeys(("diff", "difftool", "diff-tree", "diff-index", "diff-files"), _diff),
    **dict.fromkeys(("range-diff", "fast-export", "bundle", "request-pull", "merge-tree"), _whole_history),
    **dict.fromkeys(_INTERACTIVE, _interactive),
    "stash": _stash,
    "status": _status,
    "format-patch": _format_patch,
    "send-email": _format_patch,
    "archive": _archive,
    "grep": _grep,
    "checkout-index": _checkout_index,
}
"""Subcommand → the function that yields the unreadable files whose contents it would show."""


def shown_files(call: GitCall) -> Iterator[str]:
    """Yield the unreadable files whose contents a call shows."""
    patterns = [arg for arg in call.command.args if is_pattern(arg) and arg != "*"]
    if (patterns or call.command.unknown) and call.command.name not in _INTERACTIVE:
        yield from _all_history(call, f"git {call.command.name} {' '.join(call.command.unknown or ['…'])}")
        return
    yield from SHOW_FINDERS[call.command.name](call)
