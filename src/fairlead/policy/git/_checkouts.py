"""The protected files that git would change by checkouts, resets, stashes and removals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash.programs._git_arguments import GitArguments, parse_git
from fairlead.policy.bash.programs._outputs import HASH, NAME, NUMBER
from fairlead.policy.git._process import NotKnown
from fairlead.structs import replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fairlead.policy.bash.programs._calls import GitCommand
    from fairlead.policy.git._repository import Repository, TreeChange, TreeEntry
    from fairlead.policy.git._repository_state import RepositoryState

_EVERYTHING: Final = (":/",)


class GitCall:
    """One call of git, with the repository state that the earlier calls of the command leave.

    Methods raise `NotKnown` if their result is only known when the command runs.
    """

    def __init__(self, command: GitCommand, repository: Repository, state: RepositoryState) -> None:
        self.command = command
        self.repository = repository
        self.state = state

    def parse(self, letters: str = "", valued: str = "", flags: str = "", skip: int = 0) -> GitArguments:
        """Parse the arguments after the first `skip`, as `parse_git` does.

        If a path is only known when the command runs, the result has all paths.
        """
        opts = parse_git(self.command.args[skip:], letters, valued, flags)
        if self.command.unknown and opts.paths and any(map(_is_unknown, opts.paths)):
            return opts._replace(paths=list(_EVERYTHING))
        return opts

    # -- revisions -------------------------------------------------------------------------------------

    def commits(self, revision: str) -> list[str]:
        """Return the commits that a revision may refer to; empty if there is none."""
        candidates = self._candidates(revision)
        return [oid for oid in self.repository.resolve(candidates) if oid is not None]

    def trees(self, revision: str) -> list[str]:
        """Return the trees that a revision may refer to; empty if there is none."""
        candidates = self._candidates(revision)
        return [oid for oid in self.repository.resolve(candidates, "tree") if oid is not None]

    def _candidates(self, revision: str) -> list[str]:
        if is_pattern(revision) or (self.command.unknown and _is_unknown(revision)):
            raise NotKnown(f"which commit git {self.command.name} {revision} takes is only known when it runs")
        return self.state.candidates(revision)

    def variants(self) -> Iterator[GitCall]:
        """Yield the call once for each commit that an earlier call may print: `git show $(git rev-parse x)`.

        A call that uses no such commit is yielded unchanged.
        """
        args = self.command.args
        if not any(HASH in arg or NAME in arg for arg in args):
            yield self
            return
        for commit in dict.fromkeys(self.state.printed):
            filled = tuple(arg.replace(HASH, commit).replace(NAME, commit) for arg in args)
            yield GitCall(replace(self.command, args=filled), self.repository, self.state)
        if not self.state.printed:
            yield self

    def heads(self) -> list[str]:
        """Return the commits that may be checked out; empty before the first commit."""
        return [oid for oid in self.repository.resolve(self.state.heads) if oid is not None]

    def require_known(self, revision: str) -> None:
        """Raise `NotKnown` if an earlier call fetches the revision."""
        if self.state.needs_network(self.repository, revision):
            raise NotKnown(f"what git fetches for {revision} is only known once it is fetched")

    # -- what would change -----------------------------------------------------------------------------

    def written(self, changes: Sequence[TreeChange]) -> Iterator[str]:
        """Yield the changed files whose contents on the disk differ from the new version."""
        for path, _, new in changes:
            if self.repository.differs(path, new):
                yield path

    def from_index(self, paths: Sequence[str] = ()) -> Iterator[str]:
        """Yield the files that differ from the index."""
        if self.state.is_unpredictable:
            raise NotKnown("an earlier part of the command changes the index of git")
        for path, entries in self.repository.index(paths).items():
            if any(self.repository.differs(path, entry) for entry in entries):
                yield path
        for tree in self.state.index:
            yield from self.from_tree(tree, paths, deletes=False)

    def from_tree(self, tree: str, paths: Sequence[str] = (), *, deletes: bool) -> Iterator[str]:
        """Yield the files that differ from a tree, and with `deletes` also tracked files that it does not have."""
        targets: dict[str, TreeEntry | None] = {
            path: entries[0] for path, entries in self.repository.index(paths).items() if len(entries) == 1
        }
        targets |= {change.path: change.old for change in self.repository.compared(tree, paths or _EVERYTHING)}
        for path, entry in targets.items():
            if (deletes or entry is not None) and self.repository.differs(path, entry):
                yield path
        if deletes:
            yield from self.just_added()

    def just_added(self) -> Iterator[str]:
        """Yield the files that an earlier call added to the index: a reset removes them."""
        for ignored, paths in self.state.added:
            yield from self.repository.untracked(() if ignored else ("--exclude-standard",), paths or _EVERYTHING)

    def just_dropped(self) -> Iterator[str]:
        """Yield the files that an earlier call removed from the index, so that they are untracked."""
        for tree in self.state.index:
            yield from (change.path for change in self.repository.compared(tree) if change.old is None)

    def switch(self, revision: str, *, force: bool = False) -> Iterator[str]:
        """Yield the files that differ in another commit, and record that it is checked out.

        With `force`, also the files that only differ on the disk.
        """
        targets = self.commits(revision)
        heads = [] if force or self.state.changed or self.state.commits else self.heads()
        for target in targets:
            if not heads:
                yield from self.from_tree(target, deletes=True)
            for head in heads:
                yield from self.written(self.repository.between(head, target))
        self.require_known(revision)
        self.state.set_head(targets, revision)


def is_pattern(word: str) -> bool:
    """Return whether a word is `*`, or contains the pattern of a hash, name or number that another command prints."""
    return any(pattern in word for pattern in (HASH, NAME, NUMBER)) or word == "*"


def _is_unknown(word: str) -> bool:
    return "$" in word or "`" in word or word.startswith("(input")


# -- checkout, switch, restore, reset ------------------------------------------------------------------

_CHECKOUT_FLAGS: Final = (
    "quiet progress force ours theirs detach track no-track guess no-guess merge patch overlay no-overlay "
    "ignore-skip-worktree-bits recurse-submodules no-recurse-submodules overwrite-ignore ignore-other-worktrees "
    "pathspec-file-nul"
)


def _checkout(call: GitCall) -> Iterator[str]:
    opts = call.parse("bB", "orphan conflict pathspec-from-file", _CHECKOUT_FLAGS)
    force = opts.has("f", "force")
    created = opts.value("b", "B", "orphan")
    if created is not None:
        if opts.operands:
            yield from call.switch(opts.operands[0], force=force)
        call.state.set_reference(created)
        call.state.branches.add(created)
        call.state.is_unborn |= opts.has("orphan")
    elif opts.has("pathspec-from-file"):
        yield from _paths(call, opts.operands[:1], _EVERYTHING, opts)
    elif opts.paths:
        yield from _paths(call, opts.operands[:1], opts.paths, opts)
    elif opts.operands:
        yield from _branch_or_paths(call, opts, force=force)
    elif force:
        yield from call.switch("HEAD", force=True)


def _paths(call: GitCall, source: Sequence[str], paths: Sequence[str], opts: GitArguments) -> Iterator[str]:
    if not source:
        yield from call.from_index(paths)
    for revision in source:
        for tree in call.trees(revision):
            yield from call.from_tree(tree, paths, deletes=opts.has("no-overlay"))
        call.require_known(revision)


def _branch_or_paths(call: GitCall, opts: GitArguments, *, force: bool) -> Iterator[str]:
    """Yield the files that `checkout NAME` changes; the name is a commit, a path, or the branch of a remote."""
    first, rest = opts.operands[0], opts.operands[1:]
    if not call.trees(first):
        yield from call.from_index([word for word in opts.operands if not word.startswith("@{")])
        yield from _remote_branch(call, first)
        call.require_known(first)
        return
    if not rest:
        yield from call.switch(first, force=force)
        return
    yield from _paths(call, [first], rest, opts)
    for other in rest:  # the words of a loop: `for b in a c; do git checkout $b; done`
        if call.commits(other):
            yield from call.switch(first)
            yield from call.switch(other)


def _remote_branch(call: GitCall, name: str) -> Iterator[str]:
    """Yield the files that differ in the remote branch from which git would create a local one."""
    refs = call.repository.process.run("for-each-ref", "--format=%(refname)", f"refs/remotes/*/{name}") or b""
    for ref in os.fsdecode(refs).split():
        yield from call.switch(ref)


def _switch(call: GitCall) -> Iterator[str]:
    opts = call.parse("cC", "create force-create orphan conflict", _CHECKOUT_FLAGS + " discard-changes")
    force = opts.has("f", "force", "discard-changes")
    if opts.has("orphan"):
        yield from call.from_tree(call.repository.empty_tree("".join(call.heads()[:1])), deletes=True)
        return
    for name in opts.words[:1]:
        if call.commits(name):
            yield from call.switch(name, force=force)
        else:
            yield from _remote_branch(call, name)
            call.require_known(name)
    created = opts.value("c", "C", "create", "force-create")
    if created is not None:
        call.state.set_reference(created)
        call.state.branches.add(created)


def _restore(call: GitCall) -> Iterator[str]:
    opts = call.parse(
        "s", "source conflict pathspec-from-file", "staged worktree ours theirs merge patch " + _CHECKOUT_FLAGS
    )
    paths = _EVERYTHING if opts.has("pathspec-from-file") else opts.words
    source = opts.value("s", "source") or ("HEAD" if opts.has("S", "staged") else None)
    if opts.has("S", "staged"):
        call.state.changed = True
        call.state.index += call.trees(source or "HEAD")
        if not opts.has("W", "worktree"):
            return
    if source is None:
        yield from call.from_index(paths)
        return
    for tree in call.trees(source):
        yield from call.from_tree(tree, paths, deletes=not opts.has("overlay"))
    call.require_known(source)


def _reset(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "pathspec-from-file", "hard soft mixed merge keep patch quiet no-refresh intent-to-add")
    revision = opts.operands[0] if opts.operands else "HEAD"
    if opts.has("hard", "merge"):
        targets = call.commits(revision)
        if not opts.operands and (call.state.is_unborn or not targets):  # a branch without a commit has no files
            targets = [*targets, call.repository.empty_tree("".join(targets[:1]))]
        for target in targets:
            yield from call.from_tree(target, deletes=True)
        call.require_known(revision)
        call.state.set_head(call.commits(revision))
    elif opts.has("keep"):
        yield from call.switch(revision)
    else:
        call.state.changed = True
        if not opts.has("soft"):
            call.state.index += call.trees(revision) or call.trees("HEAD")
        if not opts.paths and len(opts.operands) == 1:
            call.state.set_head(call.commits(revision))


# -- stash ---------------------------------------------------------------------------------------------


def _stash(call: GitCall) -> Iterator[str]:
    args = call.command.args
    action = args[0] if args and not args[0].startswith("-") else "push"
    if action in {"push", "save"}:
        yield from _stash_push(call, skip=int(args[:1] == (action,)), has_paths=action == "push")
        call.state.stashed += 1
    elif action in {"pop", "apply"}:
        opts = call.parse(skip=1)
        yield from _stash_apply(call, opts.words[0] if opts.words else "0")
    elif action == "branch":
        word = args[2] if len(args) > 2 else "0"  # noqa: PLR2004 - branch NAME STASH
        for name in call.state.stashes(word):
            yield from call.switch(f"{name}^1")
        yield from _stash_apply(call, word)
        call.state.branches.update(args[1:2])
    elif action == "store":
        call.state.is_unpredictable = True
    call.state.unstashed += action in {"pop", "drop", "branch"}


def _stash_push(call: GitCall, *, skip: int, has_paths: bool) -> Iterator[str]:
    opts = call.parse("m", "message pathspec-from-file", "include-untracked all keep-index patch staged quiet", skip)
    paths = opts.words if has_paths and not opts.has("pathspec-from-file") else []
    for tree in call.trees("HEAD"):
        yield from call.from_tree(tree, paths, deletes=True)
    if opts.has("u", "include-untracked", "a", "all"):
        excluded = () if opts.has("a", "all") else ("--exclude-standard",)
        yield from call.repository.untracked(excluded, paths or _EVERYTHING)
        yield from call.just_dropped()


def _stash_apply(call: GitCall, word: str) -> Iterator[str]:
    """Yield the files that applying an existing stash changes. A stash made by this command changes none to check."""
    for name in call.state.stashes(word):
        stash, base, untracked = call.repository.resolve([name, f"{name}^1", f"{name}^3"])
        if stash is None or base is None:
            continue
        yield from call.written(call.repository.between(base, stash))
        if untracked is not None:
            yield from call.written(call.repository.between(call.repository.empty_tree(untracked), untracked))


# -- removal -------------------------------------------------------------------------------------------


def _remove(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "pathspec-from-file", "cached dry-run force quiet ignore-unmatch sparse")
    if opts.has("n", "dry-run"):
        return
    if opts.has("cached"):
        call.state.is_unpredictable = True
        return
    for path in call.repository.index(_EVERYTHING if opts.has("pathspec-from-file") else opts.words):
        if os.path.lexists(f"{call.repository.root}/{path}"):
            yield path
    yield from call.just_added()


def _clean(call: GitCall) -> Iterator[str]:
    opts = call.parse("e", "exclude", "dry-run force interactive quiet")
    if opts.has("n", "dry-run"):
        return
    options = [] if opts.has("x") else ["--exclude-standard"]
    if opts.has("X"):
        options = ["--ignored", "--exclude-standard"]
    options += [f"--exclude={pattern}" for pattern in opts.values("e", "exclude") if not opts.has("X")]
    if not opts.has("d") and not opts.words:
        options.append("--directory")
    here = os.path.realpath(call.repository.process.folder)
    for path in call.repository.untracked(options, opts.words):
        if not path.endswith("/") and f"{call.repository.root}/{path}".startswith(here):
            yield path
    yield from call.just_dropped()
    if call.state.is_unpredictable:
        yield from call.repository.index(opts.words)


def _checkout_index(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "prefix stage", "force all index stdin temp quiet no-create")
    if opts.has("n", "no-create", "temp", "prefix"):
        return
    yield from call.from_index(_EVERYTHING if opts.has("a", "all", "stdin") else opts.words)


def _read_tree(call: GitCall) -> Iterator[str]:
    opts = call.parse("", "prefix index-output exclude-per-directory", "reset empty dry-run trivial aggressive")
    if opts.has("n", "dry-run"):
        return
    if not opts.has("u"):
        call.state.is_unpredictable = True
        return
    if opts.has("prefix"):
        raise NotKnown(f"where git read-tree --prefix={opts.value('prefix')} writes")
    for revision in opts.operands[-1:]:
        for tree in call.trees(revision):
            yield from call.from_tree(tree, deletes=True)


CHECKOUTS: Final[dict[str, Callable[[GitCall], Iterator[str]]]] = {
    "checkout": _checkout,
    "switch": _switch,
    "restore": _restore,
    "reset": _reset,
    "stash": _stash,
    "rm": _remove,
    "clean": _clean,
    "checkout-index": _checkout_index,
    "read-tree": _read_tree,
}
