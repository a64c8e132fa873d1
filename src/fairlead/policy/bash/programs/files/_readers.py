"""The effects of programs that show the contents or the properties of files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Program,
    ProgramCall,
    RunCommand,
    RunFile,
    UnknownEffect,
    accesses,
    options_before_operand,
    parse_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

_READERS: Final = {
    "base32": "w", "base64": "w", "basenc": "w", "bat": "lHr", "batcat": "lHr", "cat": "", "cksum": "", "cmp": "n",
    "column": "scoNHRTEWO", "comm": "", "cut": "bcdf", "expand": "t", "fmt": "wp", "fold": "w", "head": "nc",
    "hexdump": "nsef", "hd": "ns", "hexyl": "ncs", "join": "12jtoae", "jless": "", "less": "pPjxy", "look": "t",
    "md5sum": "", "more": "n", "most": "", "nl": "bdfhilnsvw", "od": "AjNStw", "paste": "d", "pr": "lowh", "rev": "",
    "sha1sum": "", "sha224sum": "", "sha256sum": "", "sha384sum": "", "sha512sum": "", "b2sum": "l", "shasum": "a",
    "md5": "s", "sum": "", "strings": "nt", "tac": "s", "tail": "ncs", "unexpand": "t", "uniq": "fsw", "ul": "t",
    "view": "c", "wc": "", "zcat": "", "zless": "", "zmore": "", "bzcat": "", "xzcat": "", "lzcat": "", "zstdcat": "",
    "zdiff": "", "uuencode": "", "glow": "sw", "pygmentize": "lfOPF", "lolcat": "", "vimdiff": "", "sdiff": "wo",
    "diff3": "", "colordiff": "ULFIWx", "delta": "", "difft": "", "wdiff": "", "xmllint": "", "tidy": "",
    "dotenv-linter": "", "gron": "", "msgcat": "o", "iconv": "fto", "bc": "", "dc": "ef",
}  # fmt: skip
"""Programs that read their operands → the letters of their options that take a value."""

_OPENSSL_INPUTS: Final = frozenset(
    {"-in", "-inkey", "-key", "-cert", "-certfile", "-CAfile", "-config", "-kfile", "-pass", "-passin"}
)
_LISTERS: Final = {
    "ls": "wIT", "dir": "wIT", "vdir": "wIT", "tree": "LPIo", "stat": "cf", "file": "fm", "du": "dBX", "exa": "LIst",
    "eza": "LIst", "lsd": "I", "lsattr": "", "getfacl": "", "namei": "", "ncdu": "fo", "dust": "dX",
}  # fmt: skip
"""Programs that show names and properties, but no contents → the letters of their options that take a value."""


def _read(call: ProgramCall) -> list[Effect]:
    program = call.program
    opts = parse_options(call.args, _READERS[program], "lines bytes files0-from output width language")
    if program == "uuencode":
        return accesses("read", opts.operands[: len(opts.operands) - 1])
    effects = accesses("read", opts.operands)
    if program == "uniq":  # `uniq INPUT OUTPUT`
        effects += accesses("write", opts.operands[1:2])
    if opts.given:
        effects += accesses("write", opts.values("output", *("o" if program in {"iconv", "msgcat"} else ())))
        effects += accesses("read", opts.values("files0-from"))
    return effects


def _list(call: ProgramCall) -> list[Effect]:
    opts = parse_options(call.args, _LISTERS[call.program], "time-style block-size max-depth exclude-from ignore")
    effects = accesses("list", opts.operands, below=True)
    if call.program == "tree":
        effects += accesses("write", opts.values("o"))
    return effects + accesses("read", opts.values("X", "exclude-from", "files0-from"))


def _diff(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "ULFIWxX", "unified context exclude exclude-from from-file to-file label")
    yield from accesses("read", [*opts.operands, *opts.values("from-file", "to-file")], below=True)


def _xxd(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "lcsgo")
    yield from accesses("read", opts.operands[:1])
    yield from accesses("write", opts.operands[1:2])


def _json_tool(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `python -m json.tool INPUT OUTPUT`."""
    operands = parse_options(call.args, "", "indent").operands
    yield from accesses("read", operands[:1])
    yield from accesses("write", operands[1:2])


def _sort(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(
        call.args, "koStT", "output key field-separator buffer-size temporary-directory parallel files0-from "
        "compress-program"
    )  # fmt: skip
    yield from accesses("read", [*opts.operands, *opts.values("files0-from")])
    yield from accesses("write", opts.values("o", "output"))


def _source(call: ProgramCall) -> Iterator[Effect]:
    if not call.args:
        return
    word, *args = call.args
    if plain(word).startswith("/dev/"):
        yield UnknownEffect(f"{call.program} runs the output of another command", runs=True)
        return
    yield Access("read", word)
    yield RunFile(word, "sh", args)


def _dotenv(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `dotenv -f .env run command` and `dotenv list`."""
    opts, words = options_before_operand(call.args, "fqe", "file export path")
    yield from accesses("read", opts.values("f", "file", "e", "path") or [".env"])
    command = words[1:] if words[:1] == ["run"] else words
    if words[:1] in (["set"], ["unset"]):
        yield from accesses("write", opts.values("f", "file") or [".env"])
    elif command and words[:1] not in (["list"], ["get"]):
        yield RunCommand(command[1:] if command[:1] == ["--"] else command)


def _mapfile(call: ProgramCall) -> Iterator[Effect]:
    """Yield an unknown effect for the callback of `mapfile -C`."""
    opts = parse_options(call.args, "dnOsuCc")
    yield from (UnknownEffect(f"{call.program} runs a command for the lines that it reads") for _ in opts.values("C"))


def _openssl(call: ProgramCall) -> Iterator[Effect]:
    """Yield the files that openssl accesses. Its options have one dash."""
    rest = iter(call.args[1:])
    for arg in rest:
        if arg in _OPENSSL_INPUTS:
            yield from accesses("read", [next(rest, "").removeprefix("file:")])
        elif arg in {"-out", "-keyout", "-writerand"}:
            yield from accesses("write", [next(rest, "")])
        elif arg[:1] != "-" and call.args[0] in {"dgst", "sha256", "md5", "sha1", "sha512", "prime"}:
            yield Access("read", arg)


READERS: Final[dict[str, Program]] = {
    **dict.fromkeys(_READERS, _read),
    **dict.fromkeys(_LISTERS, _list),
    **dict.fromkeys(("diff", "colordiff", "sdiff", "vimdiff"), _diff),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(("mapfile", "readarray"), _mapfile),
    "json.tool": _json_tool,
    "xxd": _xxd,
    "sort": _sort,
    "openssl": _openssl,
    "dotenv": _dotenv,
}
