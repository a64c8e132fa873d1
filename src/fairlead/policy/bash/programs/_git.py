"""The effects of git on the files that its command line names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    ProgramCall,
    RunCommand,
    RunScript,
    UnknownEffect,
    accesses,
    basename,
    parse_options,
)

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


def git(call: ProgramCall) -> Iterable[Effect]:
    """Return the effects of a call of git."""
    args = call.args
    if args and args[0][:1] != "-":
        return _command(plain(args[0]), ProgramCall("git", args[1:], call.stdin, call.piped))
    return _with_options(call)


def _with_options(call: ProgramCall) -> Iterator[Effect]:
    folder, args = None, list(call.args)
    while args and args[0].startswith("-"):
        option = args.pop(0)
        value = args.pop(0) if option in _GLOBAL_VALUES and args else ""
        if option in {"-C", "--work-tree"}:
            folder = value
        elif option == "-c" and "=!" in plain(value):
            yield RunScript(plain(value).partition("=!")[2])
    if folder is not None:
        yield RunCommand(["git", *args], folder)
    elif args:
        yield from _command(plain(args[0]), ProgramCall("git", args[1:], call.stdin, call.piped))


def _command(name: str, call: ProgramCall) -> Iterable[Effect]:
    if name in _READS:
        return _read(call)
    if name == "checkout":
        return _checkout(call.args)
    command = _COMMANDS.get(name)
    return command(call) if command else ()


def _read(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, _VALUED, "output format pretty author since until")
    yield from accesses("read", [word.partition(":")[2] or word for word in opts.operands], below=True)
    yield from accesses("write", [*opts.values("output")])


def _checkout(args: list[str]) -> Iterator[Effect]:
    if "--" in args:
        yield from accesses("write", args[args.index("--") + 1 :], below=True)
        return
    opts = parse_options(args, "bB", "orphan conflict pathspec-from-file")
    if opts.has("b", "B", "orphan"):
        return
    if len(opts.operands) == 1:
        yield Access("write", opts.operands[0], below=True, if_exists=True)
    yield from accesses("write", opts.operands[1:], below=True)


def _restore(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "s", "source conflict pathspec-from-file")
    only_index = opts.has("S", "staged") and not opts.has("W", "worktree")
    return iter([] if only_index else accesses("write", opts.operands, below=True))


def _remove(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args)
    keeps_files = opts.has("cached", "n", "dry-run")
    return iter([] if keeps_files else accesses("delete", opts.operands, below=opts.has("r")))


def _move(call: ProgramCall) -> Iterator[Effect]:
    operands = parse_options(call.args).operands
    yield from accesses("move", operands[:-1], below=True)
    for target in operands[-1:]:
        yield Access("write", target)
        for source in operands[:-1]:
            yield Access("write", f"{target.rstrip('/')}/{basename(source)}", if_folder=target)


def _apply(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "pC", "directory exclude include whitespace")
    if opts.has("stat", "numstat", "summary", "check", "cached"):
        return
    if call.stdin is None or [word for word in opts.operands if word != "-"]:
        yield from accesses("read", opts.operands)
        yield UnknownEffect("git apply writes the files that the patch names")
        return
    for old, new in _PATCHED.findall(call.stdin):
        yield from accesses("write", {quote(old or new)} - {"/dev/null"})


def _clean(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "e", "exclude")
    if opts.has("f", "force") and not opts.has("n", "dry-run"):
        yield from accesses("delete", opts.operands or ["."], below=True)


def _stash(call: ProgramCall) -> Iterator[Effect]:
    if call.args[:1] in (["push"], ["save"]):
        opts = parse_options(call.args[1:], "m", "message")
        yield from accesses("write", opts.operands if call.args[0] == "push" else (), below=True)


def _clone(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "bocju", "branch origin config depth jobs reference template")
    yield from accesses("create", opts.operands[1:])


def _worktree(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "bB", "reason")
    if opts.operands[:1] == ["add"]:
        yield from accesses("create", opts.operands[1:2])
    elif opts.operands[:1] == ["remove"]:
        yield from accesses("delete", opts.operands[1:2], below=True)


def _config(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "f", "file")
    yield from accesses("write", opts.values("f", "file"))
    for word in opts.operands[1:]:
        if plain(word).startswith("!"):
            yield RunScript(plain(word)[1:])


def _checkout_index(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "", "prefix stage")
    yield from accesses("write", opts.operands or ["."], below=True)


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
    "checkout-index": _checkout_index,
}
