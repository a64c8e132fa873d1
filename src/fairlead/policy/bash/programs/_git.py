"""What git does to the files that its command line names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain, quote
from fairlead.policy.bash.programs._calls import Call, Doubt, Effect, Run, Script, Use, basename, options, uses

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_GLOBAL_VALUES: Final = {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--super-prefix"}
_READS: Final = {
    "blame",
    "annotate",
    "diff",
    "grep",
    "log",
    "show",
    "whatchanged",
    "hash-object",
    "archive",
    "cat-file",
}
_VALUED: Final = "SGnUeABCLO"
_PATCHED: Final = re.compile(r"^(?:\+\+\+|---) (?:[ab]/)?(\S+)|^rename to (\S+)", re.MULTILINE)


def git(call: Call) -> Iterable[Effect]:
    """The effects of one git command."""
    args = call.args
    if args and args[0][:1] != "-":
        return _command(plain(args[0]), Call("git", args[1:], call.stdin, call.piped))
    return _with_options(call)


def _with_options(call: Call) -> Iterator[Effect]:
    folder, args = None, list(call.args)
    while args and args[0].startswith("-"):
        option = args.pop(0)
        value = args.pop(0) if option in _GLOBAL_VALUES and args else ""
        if option in {"-C", "--work-tree"}:
            folder = value
        elif option == "-c" and "=!" in plain(value):
            yield Script(plain(value).partition("=!")[2])
    if folder is not None:
        yield Run(["git", *args], folder)
    elif args:
        yield from _command(plain(args[0]), Call("git", args[1:], call.stdin, call.piped))


def _command(name: str, call: Call) -> Iterable[Effect]:
    if name in _READS:
        return _read(call)
    if name == "checkout":
        return _checkout(call.args)
    command = _COMMANDS.get(name)
    return command(call) if command else ()


def _read(call: Call) -> Iterator[Effect]:
    found = options(call.args, _VALUED, "output format pretty author since until")
    yield from uses("read", [word.partition(":")[2] or word for word in found.operands], below=True)
    yield from uses("write", [*found.values("output")])


def _checkout(args: list[str]) -> Iterator[Effect]:
    if "--" in args:
        yield from uses("write", args[args.index("--") + 1 :], below=True)
        return
    found = options(args, "bB", "orphan conflict pathspec-from-file")
    if found.has("b", "B", "orphan"):
        return
    if len(found.operands) == 1:
        yield Use("write", found.operands[0], below=True, if_exists=True)
    yield from uses("write", found.operands[1:], below=True)


def _restore(call: Call) -> Iterator[Effect]:
    found = options(call.args, "s", "source conflict pathspec-from-file")
    only_index = found.has("S", "staged") and not found.has("W", "worktree")
    return iter([] if only_index else uses("write", found.operands, below=True))


def _remove(call: Call) -> Iterator[Effect]:
    found = options(call.args)
    kept = found.has("cached", "n", "dry-run")
    return iter([] if kept else uses("delete", found.operands, below=found.has("r")))


def _move(call: Call) -> Iterator[Effect]:
    operands = options(call.args).operands
    yield from uses("move", operands[:-1], below=True)
    for target in operands[-1:]:
        yield Use("write", target)
        for source in operands[:-1]:
            yield Use("write", f"{target.rstrip('/')}/{basename(source)}", if_folder=target)


def _apply(call: Call) -> Iterator[Effect]:
    found = options(call.args, "pC", "directory exclude include whitespace")
    if found.has("stat", "numstat", "summary", "check", "cached"):
        return
    if call.stdin is None or [word for word in found.operands if word != "-"]:
        yield from uses("read", found.operands)
        yield Doubt("git apply writes the files that the patch names")
        return
    for old, new in _PATCHED.findall(call.stdin):
        yield from uses("write", {quote(old or new)} - {"/dev/null"})


def _clean(call: Call) -> Iterator[Effect]:
    found = options(call.args, "e", "exclude")
    if found.has("f", "force") and not found.has("n", "dry-run"):
        yield from uses("delete", found.operands or ["."], below=True)


def _stash(call: Call) -> Iterator[Effect]:
    if call.args[:1] in (["push"], ["save"]):
        found = options(call.args[1:], "m", "message")
        yield from uses("write", found.operands if call.args[0] == "push" else (), below=True)


def _clone(call: Call) -> Iterator[Effect]:
    found = options(call.args, "bocju", "branch origin config depth jobs reference template")
    yield from uses("create", found.operands[1:])


def _worktree(call: Call) -> Iterator[Effect]:
    found = options(call.args, "bB", "reason")
    if found.operands[:1] == ["add"]:
        yield from uses("create", found.operands[1:2])
    elif found.operands[:1] == ["remove"]:
        yield from uses("delete", found.operands[1:2], below=True)


def _config(call: Call) -> Iterator[Effect]:
    found = options(call.args, "f", "file")
    yield from uses("write", found.values("f", "file"))
    for word in found.operands[1:]:
        if plain(word).startswith("!"):
            yield Script(plain(word)[1:])


def _branch_files(call: Call) -> Iterator[Effect]:
    """`git reset <commit> -- files` leaves the files alone; `checkout-index` does not."""
    found = options(call.args, "", "prefix stage")
    yield from uses("write", found.operands or ["."], below=True)


_COMMANDS: Final = {
    "restore": _restore,
    "rm": _remove,
    "mv": _move,
    "apply": _apply,
    "am": _apply,
    "clean": _clean,
    "stash": _stash,
    "clone": _clone,
    "worktree": _worktree,
    "config": _config,
    "checkout-index": _branch_files,
}
