"""What known programs do to the files they are given: a table, from the program's name to its effects.

It reads nothing from the disk: where the answer depends on what is there, the use says on what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Call,
    Doubt,
    Effect,
    Options,
    Program,
    Script,
    Use,
    basename,
    options,
    uses,
)
from fairlead.policy.bash.programs._downloads import ARRIVALS
from fairlead.policy.bash.programs._git import git
from fairlead.policy.bash.programs._wrappers import RUNNERS

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
"""Programs that read their operands, with the letters of their options that take a value."""

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
"""Programs that do one thing to each of their operands."""

_OUTPUTS: Final = {"-o", "-out", "--out", "--output", "--outfile", "--out-file", "--output-file"}
_LONG: Final = "reference size date mode suffix iterations"


def _read(call: Call) -> list[Effect]:
    program = call.program
    found = options(call.args, _READERS[program], "lines bytes")
    effects = uses("read", found.operands, below=program in {"diff", "ls", "tree"})
    if program == "tree":
        effects += uses("write", found.values("o"))
    elif program == "xxd" and len(found.operands) > 1:
        effects.append(Use("write", found.operands[1]))
    elif program in {"source", "."} and found.operands and plain(found.operands[0]).startswith("/dev/"):
        effects.append(Doubt(f"{program} runs what another command prints"))
    return effects


def _search(call: Call) -> list[Effect]:
    found = options(call.args, _SEARCHERS[call.program], _SEARCH_LONG)
    has_pattern = found.has("e", "f", "regexp", "file", "files")
    recursive = found.has("r", "R", "recursive") or call.program in {"rg", "ag", "ack"}
    files = found.operands if has_pattern else found.operands[1:]
    in_place = call.program == "yq" and found.has("i", "inplace")
    effects = uses("write" if in_place else "read", files, below=recursive)
    if has_pattern and call.program.endswith("grep"):
        effects += uses("read", found.values("f", "file"))
    return effects


def _write(call: Call) -> Iterator[Effect]:
    letters, mode = _WRITERS[call.program]
    found = options(call.args, letters, _LONG)
    for word in found.operands:
        yield Use(mode, word)  # type: ignore[arg-type]  # the table's second column is a mode


def _remove(call: Call) -> Iterator[Effect]:
    found = options(call.args)
    return iter(uses("delete", found.operands, below=found.has("r", "R", "recursive")))


def _copy(call: Call) -> list[Effect]:
    """Cover cp, mv, install and ln: sources, then where they go."""
    program = call.program
    found = options(call.args, "tSgmo" if program == "install" else "tS", "target-directory suffix mode owner group")
    if program == "install" and found.has("d", "directory"):
        return uses("create", found.operands)
    deep = program == "mv" or found.has("r", "R", "a", "recursive", "archive")
    sources, targets = _ends(found)
    effects: list[Effect] = []
    for source in sources:
        effects.append(Use("move" if program == "mv" else "read", source, deep))
        if program == "ln":  # a second name of the file: what is written there is written here
            effects.append(Use("write", source, below=True))
    return effects + _arrivals(found, sources, targets, deep=deep)


def _ends(found: Options) -> tuple[list[str], list[str]]:
    folders = found.values("t", "target-directory")
    if folders:
        return found.operands, folders
    if len(found.operands) == 1:
        return found.operands, ["."]
    return found.operands[:-1], found.operands[-1:]


def _arrivals(found: Options, sources: list[str], targets: list[str], *, deep: bool) -> list[Effect]:
    effects: list[Effect] = []
    into = found.has("t", "target-directory") or len(sources) > 1
    for target in targets:
        folder = into or target.endswith("/") or basename(target) in {".", "..", "~"}
        if not folder:
            effects.append(Use("write", target, deep))
        if found.has("T", "no-target-directory"):
            continue
        for source in sources:
            name = basename(source)
            if name not in {"", ".", ".."}:
                effects.append(Use("write", f"{target.rstrip('/')}/{name}", deep, None if folder else target))
            elif deep:
                effects.append(Use("write", target, below=True))
    return effects


def _rsync(call: Call) -> Iterator[Effect]:
    found = options(
        call.args, "efTBM", "rsh filter exclude include exclude-from include-from files-from log-file backup-dir"
    )
    for source in found.operands[:-1]:
        yield Use("move" if found.has("remove-source-files") else "read", source, below=True)
    for target in found.operands[-1:]:
        if ":" in target:
            continue
        yield Use("write", target, below=True)
        for source in found.operands[:-1]:
            if basename(source) and not source.endswith("/"):
                yield Use("write", f"{target.rstrip('/')}/{basename(source)}", below=True, if_folder=target)
    yield from uses("write", found.values("log-file"))


def _dd(call: Call) -> Iterator[Effect]:
    for arg in call.args:
        name, _, value = arg.partition("=")
        if name in {"if", "of"}:
            yield Use("read" if name == "if" else "write", value)
        elif is_unknown(name):
            yield Doubt(f"dd: only known when it runs: {plain(arg)}")


def _mode(call: Call) -> Iterator[Effect]:
    """Cover chmod, chown and chgrp: the first operand is no file."""
    args = [arg for arg in call.args if not re.fullmatch(r"-[rwxXst,]+", arg)]
    found = options(args, "", "reference from")
    skipped = 0 if found.has("reference") or len(args) < len(call.args) else 1
    return iter(uses("write", found.operands[skipped:], below=found.has("R", "recursive")))


def _sort(call: Call) -> Iterator[Effect]:
    found = options(
        call.args, "koStT", "output key field-separator buffer-size temporary-directory parallel files0-from"
    )
    yield from uses("read", found.operands)
    yield from uses("write", found.values("o", "output"))


def _split(call: Call) -> Iterator[Effect]:
    found = options(call.args, "abClnt", "suffix-length bytes line-bytes lines number additional-suffix")
    yield from uses("read", found.operands[:1])
    prefix = found.operands[1] if len(found.operands) > 1 else "x"
    yield Use("write", prefix + "*")


def _editor(call: Call) -> Iterator[Effect]:
    """Cover ed, ex and vi: they may write what they open, and what their commands name."""
    found = options(call.args, "cSTuUw", "cmd")
    files = [word for word in found.operands if not word.startswith("+")]
    yield from uses("write", files)
    commands = [plain(word) for word in [*found.values("c", "cmd"), *found.operands]] + [call.stdin or ""]
    for text in commands:
        for command in re.findall(r"(?:^|[\n|:+])\s*\d*(?:w|wq|sav|saveas|e|edit|r|write)!?\s+([^\s|!]+)", text):
            yield Use("write", quote(command))
        for shell in re.findall(r"!\s*([^\n|]+)", text):
            yield Script(shell)
    if call.piped and call.program in {"ed", "ex"}:
        yield Doubt(f"{call.program} is told by another command what to write")


def any_program(call: Call) -> Iterator[Effect]:
    """A program that is not in the table: what it is told to put out to, if there is such a file."""
    for at, arg in enumerate(call.args):
        name, equals, value = arg.partition("=")
        if name in _OUTPUTS:
            yield Use("write", value if equals else "".join(call.args[at + 1 : at + 2]), if_exists=True)


GIVEN_CODE: Final = (
    *("python", "pypy", "perl", "ruby", "node", "nodejs", "bun", "php", "lua", "osascript", "Rscript"),
    *("sed", "gsed", "awk", "gawk", "mawk", "nawk"),
)


def _code(call: Call) -> Iterable[Effect]:
    from fairlead.policy.bash.programs._inline_code import CODE

    return CODE[call.program](call)


PROGRAMS: Final[dict[str, Program]] = {
    **dict.fromkeys(_READERS, _read),
    **dict.fromkeys(_SEARCHERS, _search),
    **dict.fromkeys(_WRITERS, _write),
    **dict.fromkeys(("cp", "mv", "install", "ln", "gcp", "gmv"), _copy),
    **dict.fromkeys(("chmod", "chown", "chgrp"), _mode),
    **dict.fromkeys(("ed", "ex", "vi", "vim", "nvim", "red"), _editor),
    **ARRIVALS,
    **dict.fromkeys(GIVEN_CODE, _code),
    **RUNNERS,
    "rm": _remove,
    "rsync": _rsync,
    "dd": _dd,
    "sort": _sort,
    "split": _split,
    "git": git,
}
"""Program → what a call of it does; see `any_program` for the rest."""
