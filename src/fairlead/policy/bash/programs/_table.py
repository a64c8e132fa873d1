"""The table of programs: from the name of a program to the effects of a call.

Reads nothing from the disk: an access that depends on the disk says on what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Options,
    Program,
    ProgramCall,
    RunFile,
    RunScript,
    UnknownEffect,
    accesses,
    basename,
    parse_options,
)
from fairlead.policy.bash.programs._downloads import DOWNLOADS
from fairlead.policy.bash.programs._git import git
from fairlead.policy.bash.programs._task_runners import TASK_RUNNERS
from fairlead.policy.bash.programs._wrappers import WRAPPERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_READERS: Final = {
    "base32": "w", "base64": "w", "bat": "lHr", "cat": "", "cksum": "", "cmp": "n", "column": "tsco", "comm": "",
    "csplit": "fbn", "cut": "bcdf", "diff": "ULFIWx", "egrep": "", "expand": "t", "file": "fm", "fmt": "wp",
    "fold": "w", "head": "nc", "hexdump": "nsefC", "hd": "ns", "join": "12jtoae", "jless": "", "less": "pPjxy",
    "ls": "wIT", "md5sum": "", "more": "n", "nl": "bdfhilnsvw", "od": "AjNStw", "paste": "d", "pr": "lowh",
    "rev": "", "sha1sum": "", "sha256sum": "", "sha512sum": "", "source": "", ".": "", "stat": "cf", "strings": "nt",
    "tac": "s", "tail": "ncs", "tree": "LPIo", "unexpand": "t", "uniq": "fsw", "view": "c", "wc": "", "xxd": "lcsgo",
    "zcat": "", "zless": "", "bzcat": "", "xzcat": "",
}  # fmt: skip
"""Programs that read their operands → the letters of their options that take a value."""

_SEARCHERS: Final = {
    "grep": "eABCmfdD", "egrep": "eABCmfdD", "fgrep": "eABCmfdD", "zgrep": "eABCmf", "rg": "eABCmgftTjMdr",
    "ag": "ABCmgG", "ack": "ABCm", "jq": "", "yq": "",
}  # fmt: skip
_SEARCH_LONG: Final = "regexp file after-context before-context context max-count include exclude exclude-dir glob type"

_WRITERS: Final[dict[str, tuple[str, str]]] = {
    "tee": ("", "write"), "shred": ("ns", "delete"), "rmdir": ("", "delete"), "unlink": ("", "delete"),
    "touch": ("drt", "write"), "truncate": ("sr", "write"), "mkdir": ("mZ", "create"), "mkfifo": ("m", "create"),
    "nano": ("", "write"), "emacs": ("", "write"), "code": ("", "write"), "micro": ("", "write"), "pico": ("", "write"),
    "gzip": ("S", "write"), "gunzip": ("S", "write"), "bzip2": ("", "write"), "xz": ("T", "write"),
    "sponge": ("", "write"),
    "dos2unix": ("", "write"), "unix2dos": ("", "write"), "trash": ("", "delete"), "trash-put": ("", "delete"),
    "srm": ("", "delete"), "rename": ("", "move"), "fallocate": ("lo", "write"), "mknod": ("m", "create"),
    "setfacl": ("mx", "write"), "chattr": ("", "write"),
}  # fmt: skip
"""Programs that access each of their operands → the letters of their options that take a value, and the mode."""

_LONG: Final = "reference size date mode suffix iterations"


def _read(call: ProgramCall) -> list[Effect]:
    program = call.program
    opts = parse_options(call.args, _READERS[program], "lines bytes")
    effects = accesses("read", opts.operands, below=program in {"diff", "ls", "tree"})
    if program == "tree":
        effects += accesses("write", opts.values("o"))
    elif program == "xxd" and len(opts.operands) > 1:
        effects.append(Access("write", opts.operands[1]))
    elif program in {"source", "."} and opts.operands:
        return _source(call)
    return effects


def _source(call: ProgramCall) -> list[Effect]:
    word, *args = call.args
    if plain(word).startswith("/dev/"):
        return [UnknownEffect(f"{call.program} runs the output of another command")]
    return [Access("read", word), RunFile(word, "sh", args)]


def _search(call: ProgramCall) -> list[Effect]:
    opts = parse_options(call.args, _SEARCHERS[call.program], _SEARCH_LONG)
    has_pattern = opts.has("e", "f", "regexp", "file", "files")
    recursive = opts.has("r", "R", "recursive") or call.program in {"rg", "ag", "ack"}
    files = opts.operands if has_pattern else opts.operands[1:]
    in_place = call.program == "yq" and opts.has("i", "inplace")
    effects = accesses("write" if in_place else "read", files, below=recursive)
    if has_pattern and call.program.endswith("grep"):
        effects += accesses("read", opts.values("f", "file"))
    return effects


def _write(call: ProgramCall) -> Iterator[Effect]:
    letters, mode = _WRITERS[call.program]
    opts = parse_options(call.args, letters, _LONG)
    for word in opts.operands:
        yield Access(mode, word)  # type: ignore[arg-type]  # the table's second column is a mode


def _remove(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args)
    return iter(accesses("delete", opts.operands, below=opts.has("r", "R", "recursive")))


def _copy(call: ProgramCall) -> list[Effect]:
    """Return the effects of cp, mv, install and ln."""
    program = call.program
    opts = parse_options(
        call.args, "tSgmo" if program == "install" else "tS", "target-directory suffix mode owner group"
    )
    if program == "install" and opts.has("d", "directory"):
        return accesses("create", opts.operands)
    deep = program == "mv" or opts.has("r", "R", "a", "recursive", "archive")
    sources, targets = _sources_and_targets(opts)
    effects: list[Effect] = []
    for source in sources:
        effects.append(Access("move" if program == "mv" else "read", source, deep))
        if program == "ln":  # a hard link: a write to the link changes the file
            effects.append(Access("write", source, below=True))
    return effects + _copied(opts, sources, targets, deep=deep)


def _sources_and_targets(opts: Options) -> tuple[list[str], list[str]]:
    folders = opts.values("t", "target-directory")
    if folders:
        return opts.operands, folders
    if len(opts.operands) == 1:
        return opts.operands, ["."]
    return opts.operands[:-1], opts.operands[-1:]


def _copied(opts: Options, sources: list[str], targets: list[str], *, deep: bool) -> list[Effect]:
    effects: list[Effect] = []
    into = opts.has("t", "target-directory") or len(sources) > 1
    for target in targets:
        folder = into or target.endswith("/") or basename(target) in {".", "..", "~"}
        if not folder:
            effects.append(Access("write", target, deep, copy_of=sources[0] if deep and sources else None))
        if opts.has("T", "no-target-directory"):
            continue
        for source in sources:
            name = basename(source)
            if name not in {"", ".", ".."}:
                inside = f"{target.rstrip('/')}/{name}"
                effects.append(
                    Access("write", inside, deep, None if folder else target, copy_of=source if deep else None)
                )
            elif deep:
                effects.append(Access("write", target, below=True))
    return effects


def _rsync(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(
        call.args, "efTBM", "rsh filter exclude include exclude-from include-from files-from log-file backup-dir"
    )
    for source in opts.operands[:-1]:
        yield Access("move" if opts.has("remove-source-files") else "read", source, below=True)
    for target in opts.operands[-1:]:
        if ":" in target:
            continue
        folder = target.endswith("/") or any(word.endswith("/") for word in opts.operands[:-1])
        yield Access("write", target, below=True, makes_folder=folder, copy_of=opts.operands[0])
        for source in opts.operands[:-1]:
            if basename(source) and not source.endswith("/"):
                yield Access(
                    "write", f"{target.rstrip('/')}/{basename(source)}", below=True, if_folder=target, copy_of=source
                )
    yield from accesses("write", opts.values("log-file"))


def _dd(call: ProgramCall) -> Iterator[Effect]:
    for arg in call.args:
        name, _, value = arg.partition("=")
        if name in {"if", "of"}:
            yield Access("read" if name == "if" else "write", value)
        elif is_unknown(name):
            yield UnknownEffect(f"which file dd uses is only known when it runs: {plain(arg)}")


def _mode(call: ProgramCall) -> Iterator[Effect]:
    """Return the effects of chmod, chown and chgrp, whose first operand is not a file."""
    args = [arg for arg in call.args if not re.fullmatch(r"-[rwxXst,]+", arg)]
    opts = parse_options(args, "", "reference from")
    skipped = 0 if opts.has("reference") or len(args) < len(call.args) else 1
    return iter(accesses("write", opts.operands[skipped:], below=opts.has("R", "recursive")))


def _sort(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(
        call.args, "koStT", "output key field-separator buffer-size temporary-directory parallel files0-from"
    )
    yield from accesses("read", opts.operands)
    yield from accesses("write", opts.values("o", "output"))


def _split(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "abClnt", "suffix-length bytes line-bytes lines number additional-suffix")
    yield from accesses("read", opts.operands[:1])
    prefix = opts.operands[1] if len(opts.operands) > 1 else "x"
    yield Access("write", prefix + "*")


def _editor(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of ed, ex and vi: they may write what they open, and what their commands name."""
    opts = parse_options(call.args, "cSTuUw", "cmd")
    files = [word for word in opts.operands if not word.startswith("+")]
    yield from accesses("write", files)
    commands = [plain(word) for word in [*opts.values("c", "cmd"), *opts.operands]] + [call.stdin or ""]
    for text in commands:
        for command in re.findall(r"(?:^|[\n|:+])\s*\d*(?:w|wq|sav|saveas|e|edit|r|write)!?\s+([^\s|!]+)", text):
            yield Access("write", quote(command))
        for shell in re.findall(r"!\s*([^\n|]+)", text):
            yield RunScript(shell)
    if call.piped and call.program in {"ed", "ex"}:
        yield UnknownEffect(f"{call.program} gets its commands from another command")


INLINE_CODE_PROGRAMS: Final = (
    *("python", "pypy", "perl", "ruby", "node", "nodejs", "bun", "php", "lua", "osascript", "Rscript"),
    *("sed", "gsed", "awk", "gawk", "mawk", "nawk"),
)


def _inline_code(call: ProgramCall) -> Iterable[Effect]:
    from fairlead.policy.bash.programs._inline_code import INLINE_CODE

    return INLINE_CODE[call.program](call)


PROGRAMS: Final[dict[str, Program]] = {
    **dict.fromkeys(_READERS, _read),
    **dict.fromkeys(_SEARCHERS, _search),
    **dict.fromkeys(_WRITERS, _write),
    **dict.fromkeys(("cp", "mv", "install", "ln", "gcp", "gmv"), _copy),
    **dict.fromkeys(("chmod", "chown", "chgrp"), _mode),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "red"), _editor),
    **DOWNLOADS,
    **dict.fromkeys(INLINE_CODE_PROGRAMS, _inline_code),
    **WRAPPERS,
    **TASK_RUNNERS,
    "rm": _remove,
    "rsync": _rsync,
    "dd": _dd,
    "sort": _sort,
    "split": _split,
    "git": git,
}
"""Program → its effects; `_unknown_programs` has those of all others."""
