"""The effects of programs that write files from another source: archives, downloads, patches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Program,
    ProgramCall,
    UnknownEffect,
    accesses,
    basename,
    parse_options,
    run_script,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


_TAR_RUNS: Final = ("to-command", "checkpoint-action", "use-compress-program", "I")


def _tar(call: ProgramCall) -> Iterator[Effect]:
    args = call.args
    if args and not args[0].startswith("-") and "=" not in args[0]:
        args = ["-" + args[0], *args[1:]]  # the traditional style: `tar xf a.tar`
    opts = parse_options(
        args,
        "fCTXbIKNVgHLF",
        "file directory files-from exclude exclude-from transform strip-components "
        "to-command checkpoint-action use-compress-program",
    )
    yield from (run_script(word.removeprefix("exec="), "tar") for word in opts.values(*_TAR_RUNS))
    archives = opts.values("f", "file")
    folder = next(iter(opts.values("C", "directory")), ".")
    if opts.has("x", "extract", "get"):
        yield from accesses("read", archives)
        yield from _extracted(folder, opts.operands)
    elif opts.has("c", "r", "u", "create", "append"):
        yield from accesses("write", archives)
        yield from accesses("read", [_inside(folder, word) for word in opts.operands], below=True)
        yield from accesses("delete", opts.operands if opts.has("remove-files") else (), below=True)


def _extracted(folder: str, members: list[str]) -> Iterator[Effect]:
    if members:
        yield from accesses("write", [_inside(folder, word) for word in members], below=True)
    else:
        yield Access("write", folder, below=True, makes_folder=True)


def _inside(folder: str, word: str) -> str:
    return word if folder == "." or word.startswith(("/", "~")) else f"{folder.rstrip('/')}/{word}"


def _unzip(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options([arg for arg in call.args if arg != "-x"], "dP")
    yield from accesses("read", opts.operands[:1])
    if not opts.has("l", "t", "p", "Z", "v", "c"):
        yield from _extracted(next(iter(opts.values("d")), "."), opts.operands[1:])


def _zip(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "ixnbtO")
    yield from accesses("write", opts.operands[:1])
    yield from accesses("move" if opts.has("m") else "read", opts.operands[1:], below=opts.has("r"))


def _download(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of curl and wget."""
    if call.program == "curl":
        opts = parse_options(
            call.args,
            "oHXdFuAeTbcDKmUwxyYzECrtP",
            "output header request data data-raw data-binary form user user-agent upload-file cookie cookie-jar "
            "dump-header config max-time proxy url output-dir retry connect-timeout cacert cert key write-out",
        )
        written = opts.values("o", "output", "D", "dump-header", "c", "cookie-jar")
        folder = next(iter(opts.values("output-dir")), ".")
        names = [basename(url) for url in opts.operands] if opts.has("O", "remote-name") else []
    else:
        opts = parse_options(
            call.args, "OoaPUtTwQeiBDIXA", "output-document output-file directory-prefix header user-agent"
        )
        written = opts.values("O", "output-document", "o", "output-file", "a")
        folder = next(iter(opts.values("P", "directory-prefix")), ".")
        names = [] if written else [basename(url) for url in opts.operands]
    yield from accesses("write", [_inside(folder, word) for word in [*written, *names] if word not in {"-", ""}])
    sent = opts.values("d", "data", "data-binary", "F", "form") if call.program == "curl" else []
    yield from accesses("read", [value.rpartition("@")[2] for value in sent if "@" in value])
    yield from accesses("read", opts.values("T", "upload-file") if call.program == "curl" else [])


def _patch(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "dioprBDFVYz", "directory input output reject-file strip")
    yield from accesses("write", [*opts.operands[:1], *opts.values("o", "output", "r", "reject-file")])
    if not opts.operands and not opts.has("dry-run"):
        yield from _patched(call, next(iter(opts.values("d", "directory")), "."))


def _patched(call: ProgramCall, folder: str = ".") -> Iterator[Effect]:
    """Yield the files that a patch in a here-document names; the files of any other patch are not known."""
    if call.stdin is None:
        yield UnknownEffect(f"{call.program} writes the files that the patch names")
        return
    for name in re.findall(r"^(?:\+\+\+|---|rename to|copy to) (\S+)", call.stdin, re.MULTILINE):
        for path in {name, name.partition("/")[2] or name} - {"/dev/null"}:
            yield Access("write", _inside(folder, quote(path)))


DOWNLOADS: Final[dict[str, Program]] = {
    **dict.fromkeys(("curl", "wget"), _download),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _tar),
    "unzip": _unzip,
    "zip": _zip,
    "patch": _patch,
}
