"""The effects of programs that change, copy, move or remove the files that they are given."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mode,
    ParsedOptions,
    Program,
    ProgramCall,
    RunScript,
    UnknownEffect,
    accesses,
    basename,
    parse_options,
)
from fairlead.policy.bash.programs._unknown_programs import mentions

if TYPE_CHECKING:
    from collections.abc import Iterator

_WRITERS: Final[dict[str, tuple[str, Mode]]] = {
    "tee": ("", "write"), "shred": ("ns", "delete"), "rmdir": ("", "delete"), "unlink": ("", "delete"),
    "touch": ("drt", "write"), "truncate": ("sr", "write"), "mkdir": ("mZ", "create"), "mkfifo": ("m", "create"),
    "sponge": ("", "write"), "dos2unix": ("", "write"), "unix2dos": ("", "write"), "trash": ("", "delete"),
    "trash-put": ("", "delete"), "gio": ("", "delete"), "srm": ("", "delete"), "rename": ("", "move"),
    "fallocate": ("lo", "write"), "mknod": ("m", "create"), "setfacl": ("mx", "write"), "chattr": ("", "write"),
    "chcon": ("urtl", "write"), "setfattr": ("nvx", "write"), "xattr": ("", "write"), "vipe": ("", "write"),
    "rimraf": ("", "delete"), "del-cli": ("", "delete"), "rip": ("", "delete"), "dotenv-vault": ("", "write"),
}  # fmt: skip
"""Programs that access each of their operands → the letters of their options that take a value, and the mode."""
_RECURSIVE: Final = frozenset({"rimraf", "del-cli", "trash", "trash-put", "rip", "gio"})
_EDITORS: Final = (
    *("ed", "ex", "vi", "vim", "nvim", "red", "nano", "emacs", "emacsclient", "code", "micro", "pico", "joe", "hx"),
    *("kak", "subl", "gedit"),
)
_LONG: Final = "reference size date mode suffix iterations glob"


def _write(call: ProgramCall) -> list[Effect]:
    letters, mode = _WRITERS[call.program]
    opts = parse_options(call.args, letters, _LONG)
    return accesses(mode, opts.operands, below=call.program in _RECURSIVE)


def _remove(call: ProgramCall) -> list[Effect]:
    opts = parse_options(call.args)
    return accesses("delete", opts.operands, below=opts.has("r", "R", "recursive"))


# -- copies --------------------------------------------------------------------------------------------


def _copy(call: ProgramCall) -> list[Effect]:
    """Return the effects of cp, mv, install and ln."""
    program = call.program.removeprefix("g")
    opts = parse_options(
        call.args, "tSgmo" if program == "install" else "tS", "target-directory suffix mode owner group"
    )
    if program == "install" and opts.has("d", "directory"):
        return accesses("create", opts.operands)
    deep = program == "mv" or opts.has("r", "R", "a", "recursive", "archive")
    sources, targets = _sources_and_targets(opts)
    effects: list[Effect] = []
    for source in sources:
        effects.append(Access("move" if program == "mv" else "read", source, deep or program == "ln"))
        if program == "ln":  # a hard link: a write to the link changes the file
            effects.append(Access("write", source, below=True))
            effects += _linked(source, targets) if opts.has("s", "symbolic") else []
    return effects + _copied(opts, sources, targets, deep=deep)


def _linked(source: str, targets: list[str]) -> list[Effect]:
    """Return the effects of a symbolic link, whose target is relative to the folder of the link."""
    effects: list[Effect] = []
    for target in targets if source[:1] not in {"/", "~"} else ():
        for folder in {target.rpartition("/")[0] or ".", target.rstrip("/")}:
            effects += accesses("read", [f"{folder}/{source}"], below=True)
            effects += accesses("write", [f"{folder}/{source}"], below=True)
    return effects


def _sources_and_targets(opts: ParsedOptions) -> tuple[list[str], list[str]]:
    folders = opts.values("t", "target-directory")
    if folders:
        return opts.operands, folders
    if len(opts.operands) == 1:
        return opts.operands, ["."]
    return opts.operands[:-1], opts.operands[-1:]


def _copied(opts: ParsedOptions, sources: list[str], targets: list[str], *, deep: bool) -> list[Effect]:
    effects: list[Effect] = []
    into = opts.has("t", "target-directory") or len(sources) > 1
    for target in targets:
        folder = into or target.endswith("/") or basename(target) in {".", "..", "~"}
        if not folder:
            effects.append(Access("write", target, deep, copy_of=sources[0] if sources else None))
        if opts.has("T", "no-target-directory"):
            continue
        for source in sources:
            name = basename(source)
            if name not in {"", ".", ".."}:
                below = f"{target.rstrip('/')}/{name}"
                effects.append(Access("write", below, deep, None if folder else target, copy_of=source))
            elif deep:
                effects.append(Access("write", target, below=True, makes_folder=True))
    return effects


def _dd(call: ProgramCall) -> Iterator[Effect]:
    for arg in call.args:
        name, _, value = arg.partition("=")
        if name in {"if", "of"}:
            yield Access("read" if name == "if" else "write", value)
        elif is_unknown(name):
            yield UnknownEffect(f"which file dd uses is only known when it runs: {plain(arg)}")


def _mode(call: ProgramCall) -> list[Effect]:
    """Return the effects of chmod, chown and chgrp, whose first operand is not a file."""
    args = [arg for arg in call.args if not re.fullmatch(r"-[rwxXst,]+", arg)]
    opts = parse_options(args, "", "reference from")
    skipped = 0 if opts.has("reference") or len(args) < len(call.args) else 1
    return accesses("write", opts.operands[skipped:], below=opts.has("R", "recursive"))


def _split(call: ProgramCall) -> Iterator[Effect]:
    if call.program == "csplit":
        opts = parse_options(call.args, "bfn", "suffix-format prefix digits")
        prefix = next(iter(opts.values("f", "prefix")), "xx")
    else:
        opts = parse_options(
            call.args, "abClnt", "suffix-length bytes line-bytes lines number additional-suffix filter"
        )
        prefix = opts.operands[1] if len(opts.operands) > 1 else "x"
        for text in opts.values("filter"):
            yield UnknownEffect(f"split runs a command for each part: {plain(text)}")
    yield from accesses("read", opts.operands[:1])
    yield Access("write", prefix + "*")


# -- editors and patches -------------------------------------------------------------------------------


def _editor(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of an editor, which may read and write the files that it opens or that its commands name."""
    opts = parse_options(call.args, "cSTuUw", "cmd eval execute load")
    files = [word for word in opts.operands if not word.startswith("+")]
    for word in files:
        yield Access("write", word)
        yield Access("read", word)
    yield from accesses("read", opts.values("S", "load"))
    yield from mentions(opts.values("eval", "execute"))
    commands = [plain(word) for word in [*opts.values("c", "cmd"), *opts.operands]] + [call.stdin or ""]
    for text in commands:
        for command in re.findall(r"(?:^|[\n|:+])\s*\d*(?:w|wq|sav|saveas|e|edit|r|write)!?\s+([^\s|!]+)", text):
            yield Access("write", quote(command))
            yield Access("read", quote(command))
        for shell in re.findall(r"!\s*([^\n|]+)", text):
            yield RunScript(shell)
    if call.piped and call.program in {"ed", "ex"}:
        yield UnknownEffect(f"{call.program} gets its commands from another command")


def _envsubst(call: ProgramCall) -> list[Effect]:
    del call
    return []


WRITERS: Final[dict[str, Program]] = {
    **dict.fromkeys(_WRITERS, _write),
    **dict.fromkeys(("cp", "mv", "install", "ln", "gcp", "gmv", "ginstall", "gln"), _copy),
    **dict.fromkeys(("chmod", "chown", "chgrp"), _mode),
    **dict.fromkeys(_EDITORS, _editor),
    **dict.fromkeys(("split", "csplit"), _split),
    **dict.fromkeys(("rm", "grm"), _remove),
    "envsubst": _envsubst,
    "dd": _dd,
}
