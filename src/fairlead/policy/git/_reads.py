"""Of which unreadable files a command of git would show the contents. Names alone are not contents."""

from __future__ import annotations

import os
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from fairlead.policy.git._moves import Move, is_pattern
from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Sequence as Words

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


def _parse(move: Move, skip: int = 0) -> GitArguments:
    return move.parse(_LETTERS, _VALUED, _FLAGS, skip)


def _shows_patch(opts: GitArguments, *, default: bool) -> bool:
    if opts.has(*_PATCH):
        return True
    return default and not opts.has(*_NO_PATCH)


# -- objects -------------------------------------------------------------------------------------------


def _object_path(move: Move, word: str) -> str | None:
    """Return the path of `REVISION:path` or `:path`; `None` if the word is a revision."""
    if word.startswith((":/", ":(", ":!", ":^")) or ":" not in word or "@{" in word.rpartition(":")[2]:
        return None
    path = word.partition(":")[2]
    if word.startswith(":") and path[1:2] == ":" and path[:1].isdigit():
        path = path[2:]
    if path.startswith(("./", "../")) or path in {".", ".."}:
        here = os.path.realpath(move.repository.process.folder)
        path = os.path.relpath(os.path.join(here, path), move.repository.root)
    return os.path.normpath(path) if path else ""


def _objects(move: Move, words: Words[str]) -> Iterator[str]:
    """Yield the files whose contents objects have: blobs as they are, commits as a difference."""
    for word in words:
        path = _object_path(move, word)
        if path is not None:
            if path and move.repository.wanted(path):
                yield path
            continue
        blob, commit = (move.repository.resolve([word], kind)[0] for kind in ("blob", "commit"))
        if blob is not None:
            yield from _names_of(move, blob)
        elif commit is not None:
            yield from _shown_commit(move, commit)


def _shown_commit(move: Move, commit: str, paths: Words[str] = ()) -> Iterator[str]:
    options = ("--no-commit-id", "-r", "--root", "--cc", "--name-only", "-z", "--no-ext-diff", "--no-textconv")
    for path in move.repository.process.lines("diff-tree", *options, commit, "--", *paths):
        if move.repository.wanted(path):
            yield path


def _names_of(move: Move, blob: str) -> Iterator[str]:
    """Yield the wanted names that a blob has in the index or in any commit. Raise `NotKnown` if it has no name."""
    repository = move.repository
    yield from (path for path, entries in repository.index().items() if any(entry.oid == blob for entry in entries))
    names = repository.process.lines("log", "--all", "--format=", "--name-only", "-z", "-m", f"--find-object={blob}")
    listed = repository.process.ask("ls-files", "--stage", "--full-name", "--", ":/") or b""
    if not any(names) and blob.encode() not in listed:
        raise NotKnown(f"which file the object {blob[:12]} of git is")
    yield from (path for path in dict.fromkeys(names) if path and repository.wanted(path))


def _show(move: Move) -> Iterator[str]:
    opts = _parse(move)
    if not _shows_patch(opts, default=True):
        yield from _objects(move, [word for word in opts.operands if _object_path(move, word) is not None])
        return
    revisions = opts.operands or ["HEAD"]
    if opts.paths:
        for commit in filter(None, move.repository.resolve(revisions)):
            yield from _shown_commit(move, commit, opts.paths)
        return
    yield from _objects(move, revisions)


def _cat_file(move: Move) -> Iterator[str]:
    opts = move.parse("", "batch= batch-check= batch-command= filter", "textconv filters batch-all-objects")
    if opts.has("t", "s", "e") or (opts.has("batch-check") and not opts.has("batch", "batch-command")):
        return
    if opts.has("batch", "batch-command"):
        if move.command.stdin is None or opts.has("batch-all-objects"):
            yield from _all_history(move, "git cat-file --batch")
            return
        lines = move.command.stdin.split("\n")
        yield from _objects(move, [line.removeprefix("contents ") for line in lines if line])
        return
    yield from _objects(move, opts.words[-1:])


def _all_history(move: Move, what: str) -> Iterator[str]:
    """Yield nothing; raise `NotKnown` if an unreadable file is in the index or in a commit."""
    for path in (*move.repository.index(), *move.repository.in_history(["--all"])):
        raise NotKnown(f"whether {what} shows the contents of {path}")
    yield from ()


# -- differences ---------------------------------------------------------------------------------------


def _log(move: Move) -> Iterator[str]:
    opts = _parse(move, skip=1 if move.command.args[:1] in (("show",), ("list",)) else 0)
    for text in opts.values("L"):
        path = text.rpartition(":")[2]
        yield from (name for name in move.repository.index([path]) if name)
    whole = [option for option in _PATCH if option != "L"] if opts.has("L") else _PATCH
    if opts.has(*whole):
        yield from _history(move, opts)


def _history(move: Move, opts: GitArguments) -> Iterator[str]:
    limits = [f"--{name}={value}" if value else f"--{name}" for name in _LIMITS for value in opts.given.get(name, ())]
    limits += [f"--max-count={value}" for value in opts.values("n")]
    revisions, paths = _split_revisions(move, opts)
    if opts.has("g"):
        limits.append("--walk-reflogs")
    yield from move.repository.in_history([*limits, *revisions], paths)


def _split_revisions(move: Move, opts: GitArguments) -> tuple[list[str], list[str]]:
    """Return the revisions, and the paths, which may follow without `--`."""
    if opts.paths is not None:
        return opts.operands, opts.paths
    count = 0
    for word in opts.operands:
        parts = [part for part in word.removeprefix("^").replace("...", "..").split("..") if part] or ["HEAD"]
        if _object_path(move, word) is None and not move.repository.exist(parts):
            break
        count += 1
    return opts.operands[:count], opts.operands[count:]


def _diff(move: Move) -> Iterator[str]:
    opts = _parse(move)
    plumbing = move.command.name.startswith("diff-")
    if opts.has("no-index") or not _shows_patch(opts, default=not plumbing):
        return
    if move.command.name == "diff-tree" and len(opts.operands) == 1 and not opts.has("stdin"):
        yield from _objects(move, opts.operands)
        return
    revisions, paths = _split_revisions(move, opts)
    yield from _difference(move, revisions, paths, cached=opts.has("cached", "staged"))


def _difference(move: Move, revisions: list[str], paths: list[str], *, cached: bool) -> Iterator[str]:
    objects = [word for word in revisions if _object_path(move, word) is not None]
    if objects:
        yield from _objects(move, objects)
        return
    if len(revisions) == 1 and ".." in revisions[0]:
        yield from _range(move, revisions[0], paths)
    elif len(revisions) > 1:
        trees = [tree for tree in move.repository.resolve(revisions, "tree") if tree is not None]
        for first, second in pairwise(trees):
            yield from (change.path for change in move.repository.between(first, second, paths))
    elif cached:
        for tree in move.trees(revisions[0] if revisions else "HEAD"):
            yield from (change.path for change in move.repository.compared(tree, paths))
    elif revisions:
        for tree in move.trees(revisions[0]):
            yield from move.from_tree(tree, paths, deletes=True)
    else:
        yield from move.from_index(paths)


def _range(move: Move, word: str, paths: list[str]) -> Iterator[str]:
    first, dots, second = word.partition("...") if "..." in word else word.partition("..")
    start, end = move.repository.resolve([first or "HEAD", second or "HEAD"])
    if start is None or end is None:
        return
    if len(dots) > len(".."):
        start = (*move.repository.merge_bases(start, end), start)[0]
    yield from (change.path for change in move.repository.between(start, end, paths))


def _status(move: Move) -> Iterator[str]:
    verbose = len(_parse(move).given.get("v", ())) + len(_parse(move).given.get("verbose", ()))
    if verbose:
        yield from _difference(move, [], [], cached=True)
    if verbose > 1:
        yield from move.from_index()


def _interactive(move: Move) -> Iterator[str]:
    """Yield the files whose differences `add -p`, `checkout -p` and others show."""
    opts = move.parse("", "", "patch interactive edit")
    if opts.has("p", "patch", "e", "edit", "i", "interactive"):
        yield from move.from_index(opts.paths or ())


def _stash(move: Move) -> Iterator[str]:
    args = move.command.args
    if args[:1] == ("list",):
        yield from _log(move)
    if args[:1] != ("show",):
        return
    opts = _parse(move, skip=1)
    if not opts.has(*_PATCH):
        return
    name = opts.words[0] if opts.words else "stash@{0}"
    name = f"stash@{{{name}}}" if name.isdigit() else name
    stash, base, untracked = move.repository.resolve([name, f"{name}^1", f"{name}^3"])
    if stash is not None and base is not None:
        yield from (change.path for change in move.repository.between(base, stash))
    if untracked is not None:
        yield from _whole(move, untracked)


def _format_patch(move: Move) -> Iterator[str]:
    opts = move.parse("ovn", "output-directory start-number subject-prefix to cc from cover-letter= base signature")
    revisions = opts.operands
    if len(revisions) == 1 and ".." not in revisions[0] and not opts.has("n"):
        revisions = [f"{revisions[0]}..HEAD"]
    count = opts.value("n") or ""
    limits = [f"--max-count={count}"] if count.isdigit() else []
    yield from move.repository.in_history([*limits, *revisions], opts.paths or ())


# -- whole files ---------------------------------------------------------------------------------------


def _whole(move: Move, tree: str, paths: Words[str] = ()) -> Iterator[str]:
    """Yield the files of a tree."""
    yield from (change.path for change in move.repository.between(move.repository.empty_tree(tree), tree, paths))


def _archive(move: Move) -> Iterator[str]:
    opts = move.parse("o", "output prefix add-file add-virtual-file format remote exec mtime", "list verbose")
    if opts.has("l", "list"):
        return
    for revision in opts.operands[:1]:
        for tree in filter(None, move.repository.resolve([revision], "tree")):
            yield from _whole(move, tree, [*opts.operands[1:], *(opts.paths or ())])


_GREP_LISTS: Final = ("l", "L", "q", "c", "files-with-matches", "name-only", "files-without-match", "quiet", "count")


def _grep(move: Move) -> Iterator[str]:
    opts = move.parse(
        "eABCmfO", "max-depth threads context after-context before-context max-count open-files-in-pager=",
        "untracked no-index cached files-with-matches name-only files-without-match quiet count exclude-standard",
    )  # fmt: skip
    if opts.has(*_GREP_LISTS):
        return
    words = opts.operands if opts.has("e", "f") else opts.operands[1:]
    revisions, paths = _split_revisions(move, opts._replace(operands=words))
    for tree in filter(None, move.repository.resolve(revisions, "tree") if revisions else ()):
        yield from _whole(move, tree, paths)
    if not revisions:
        yield from move.repository.index(paths)
        if opts.has("untracked", "no-index"):
            yield from move.repository.untracked(["--exclude-standard"] if opts.has("untracked") else [], paths)


def _whole_history(move: Move) -> Iterator[str]:
    args = move.command.args[2:] if move.command.name == "bundle" else move.command.args
    if move.command.name == "bundle" and move.command.args[:1] != ("create",):
        return
    revisions = [word for word in args if not word.startswith("-")] or ["--all"]
    yield from move.repository.in_history(["--all"] if "--all" in args else revisions)


def _checkout_index(move: Move) -> Iterator[str]:
    opts = move.parse("", "prefix stage", "temp all stdin")
    if opts.has("prefix", "temp"):
        yield from move.repository.index(opts.words)


_INTERACTIVE: Final = ("add", "stage", "checkout", "reset", "restore")
READS: Final[dict[str, Callable[[Move], Iterator[str]]]] = {
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
"""Subcommand → the unreadable files whose contents it would show."""


def shown_files(move: Move) -> Iterator[str]:
    """Yield the unreadable files whose contents a call shows."""
    patterns = [arg for arg in move.command.args if is_pattern(arg) and arg != "*"]
    if (patterns or move.command.unknown) and move.command.name not in _INTERACTIVE:
        yield from _all_history(move, f"git {move.command.name} {' '.join(move.command.unknown or ['…'])}")
        return
    yield from READS[move.command.name](move)
