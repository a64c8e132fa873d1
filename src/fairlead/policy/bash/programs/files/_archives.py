"""The effects of programs that pack and unpack files: tar, zip, 7z, cpio, gzip; and of patch."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mention,
    ParsedOptions,
    Program,
    ProgramCall,
    UnknownEffect,
    Unpack,
    accesses,
    parse_options,
    run_script,
)
from fairlead.policy.paths._selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

_TAR_RUNS: Final = ("to-command", "checkpoint-action", "use-compress-program", "I", "F", "info-script")
_TAR_LONG: Final = (
    "file directory files-from exclude exclude-from transform xform strip-components one-top-level "
    "to-command checkpoint-action use-compress-program info-script owner group mode"
)
_COMPRESSORS: Final = (
    *("gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz", "lzma", "zstd", "unzstd", "lz4", "compress", "uncompress"),
    *("pigz", "brotli"),
)
_STDIN: Final = frozenset({"-", "/dev/stdin"})


def _tar(call: ProgramCall) -> Iterator[Effect]:
    args = call.args
    if args and not args[0].startswith("-") and "=" not in args[0]:
        args = _traditional(args)
    opts = parse_options(args, "fCTXbIKNVgHLFs", _TAR_LONG)
    yield from (run_script(word.removeprefix("exec="), "tar") for word in opts.values(*_TAR_RUNS))
    archives = opts.values("f", "file")
    folder = next(iter(opts.values("C", "directory")), ".")
    yield from accesses("read", opts.values("T", "files-from", "X", "exclude-from"))
    if opts.has("x", "extract", "get"):
        yield from accesses("read", archives)
        yield from () if opts.has("O", "to-stdout") else _untar(opts, archives, folder)
    elif opts.has("c", "r", "u", "create", "append", "update"):
        yield from accesses("write", archives)
        yield from _packed(opts, folder)
    else:
        yield from accesses("read", archives)


def _traditional(args: list[str]) -> list[str]:
    """Split a leading group of options without a dash: `xfC a.tar folder` into `-x -f a.tar -C folder`."""
    rest, options = list(args[1:]), []
    for letter in args[0]:
        options.append(f"-{letter}")
        if letter in "fCTXbIKNVgHLF" and rest:
            options.append(rest.pop(0))
    return [*options, *rest]


def _packed(opts: ParsedOptions, folder: str) -> Iterator[Effect]:
    without = tuple(plain(word).removeprefix("./") for word in opts.values("exclude"))
    skips = Selection((), (*without, ".git/") if opts.has("exclude-vcs") else without)
    for word in opts.operands:
        yield Access("read", _inside(folder, word), below=True, selection=skips)
    if opts.has("T", "files-from"):
        yield UnknownEffect("which files tar packs is only known when it runs")
    yield from accesses("delete", opts.operands if opts.has("remove-files") else (), below=True)


def _untar(opts: ParsedOptions, archives: list[str], folder: str) -> Iterator[Effect]:
    members, strip = opts.operands, next(iter(opts.values("strip-components")), "0")
    renames = opts.has("transform", "xform", "s", "one-top-level")
    if members and not renames:
        yield from accesses("write", [_inside(folder, word) for word in members], below=True)
    elif archives and archives[0] not in _STDIN and strip.isdigit() and not renames:
        yield Unpack(archives[0], folder, "tar", int(strip))
    else:
        yield Mention(folder)


def _inside(folder: str, word: str) -> str:
    return word if folder == "." or word.startswith(("/", "~")) else f"{folder.rstrip('/')}/{word}"


def _unzip(call: ProgramCall) -> Iterator[Effect]:
    args = call.args[: call.args.index("-x")] if "-x" in call.args else call.args
    opts = parse_options(args, "dP")
    folder = next(iter(opts.values("d")), call.args[call.args.index("-d") + 1] if "-d" in call.args[:-1] else ".")
    yield from accesses("read", opts.operands[:1])
    if opts.has("l", "t", "p", "Z", "v", "c", "z") or not opts.operands:
        return
    if opts.operands[1:]:
        yield from accesses("write", [_inside(folder, word) for word in opts.operands[1:]], below=True)
    else:
        yield Unpack(opts.operands[0], folder, "zip", 0)


def _zip(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "xnbtOTU", "exclude include")
    without = tuple(plain(word).removeprefix("./") for word in opts.values("x", "exclude"))
    included = tuple(plain(word) for word in opts.values("i", "include") if word)
    files, operands = opts.operands[:1], opts.operands[1:]
    for index, arg in enumerate(call.args):
        if arg in {"-x", "--exclude", "-i", "--include"}:
            following = [plain(word) for word in call.args[index + 1 :] if word[:1] != "-"]
            operands = [word for word in operands if plain(word) not in following[1:]]
            without += tuple(following) if arg in {"-x", "--exclude"} else ()
    yield from accesses("write", files)
    for word in operands or (["."] if opts.has("R") else []):
        mode = "move" if opts.has("m") else "read"
        yield Access(mode, word, opts.has("r", "R"), selection=Selection(included, without))  # type: ignore[arg-type]
    if opts.has("@"):
        yield UnknownEffect("which files zip packs is only known when it runs")


def _seven_zip(call: ProgramCall) -> Iterator[Effect]:
    words = [word for word in call.args if word[:1] != "-"]
    if len(words) < 2:  # noqa: PLR2004 - a command and an archive
        return
    command, archive, *files = words
    folder = next((word[2:] for word in call.args if word.startswith("-o")), ".")
    if command in {"a", "u"}:
        yield Access("write", archive)
        yield from accesses("delete" if "-sdel" in call.args else "read", files or ["."], below=True)
    elif command in {"x", "e"}:
        yield Access("read", archive)
        yield Unpack(archive, folder, "zip", 0) if archive.endswith(".zip") else Mention(folder)
    elif command not in {"l", "t", "h", "i"}:
        yield Access("write", archive)


def _cpio(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "FOIDEHC", "file directory pattern-file format")
    folder = next(iter(opts.values("D", "directory")), ".")
    archives = opts.values("F", "file", "I", "O")
    if opts.has("i", "extract"):
        yield from accesses("read", archives)
        yield from () if opts.has("t", "list") else (Mention(folder),)
    elif opts.has("p", "pass-through"):
        yield from (Access("write", word, below=True) for word in opts.operands)
        yield from _names_from_input(call)
    elif opts.has("o", "create"):
        yield from accesses("write", archives)
        yield from _names_from_input(call)


def _names_from_input(call: ProgramCall) -> Iterator[Effect]:
    if call.stdin is None:
        yield Mention(".", reads_only=True)
    else:
        yield from accesses("read", map(quote, call.stdin.split("\n")))


def _ar(call: ProgramCall) -> Iterator[Effect]:
    if len(call.args) > 1:
        reads = call.args[0].lstrip("-")[:1] in {"t", "p", "x"}
        yield Access("read" if reads else "write", call.args[1])
        yield from accesses("read", call.args[2:] if not reads else ())


def _compress(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of gzip and similar programs, which replace a file unless an option keeps it."""
    opts = parse_options(call.args, "STBoM", "suffix threads output")
    keeps = opts.has("c", "stdout", "to-stdout", "l", "list", "t", "test", "k", "keep") or call.program == "zstd"
    for word in opts.operands:
        yield Access("read", word, opts.has("r"))
        if not keeps:
            yield Access("delete", word, opts.has("r"))
        if not opts.has("c", "stdout", "to-stdout", "l", "list", "t", "test"):
            yield Access(
                "write", re.sub(r"\.(?:gz|bz2|xz|zst|lzma|Z|lz4)$", "", word) if _unpacks(call, opts) else f"{word}.gz"
            )
    yield from accesses("write", opts.values("o", "output"))


def _unpacks(call: ProgramCall, opts: ParsedOptions) -> bool:
    return (
        call.program.startswith("un")
        or call.program in {"gunzip", "bunzip2"}
        or opts.has("d", "decompress", "uncompress")
    )


# -- patches -------------------------------------------------------------------------------------------


def _patch(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "dioprBDFVYz", "directory input output reject-file strip")
    folder = next(iter(opts.values("d", "directory")), ".")
    yield from accesses("write", [*opts.operands[:1], *opts.values("o", "output", "r", "reject-file")])
    patches = [*opts.operands[1:2], *opts.values("i", "input")]
    yield from accesses("read", patches)
    if opts.operands or opts.has("dry-run"):
        return
    if patches:
        yield Unpack(patches[0], folder, "patch", 0)
    elif call.file is not None:
        yield Unpack(call.file, folder, "patch", 0)
    elif call.stdin is None:
        yield UnknownEffect("patch writes the files that the patch names")
    else:
        yield from accesses("write", [_inside(folder, quote(name)) for name in patched_files(call.stdin)])


def patched_files(text: str) -> list[str]:
    """Return the names of the files that a patch changes, each also without its first folder: `a/x.py`, `x.py`."""
    names: dict[str, None] = {}
    for name in re.findall(
        r"^(?:\+\+\+|---|\*\*\*|Index:|rename to|rename from|copy to) ([^\t\n]+)", text, re.MULTILINE
    ):
        path = name.strip().strip('"')
        if path != "/dev/null" and not path.endswith("****"):
            names |= {path: None, path.partition("/")[2] or path: None}
    return list(names)


def _apply_patch(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `apply_patch`, which is also a tool of agents. The patch is an argument or stdin."""
    from fairlead.clients import patch_paths

    texts = [*map(plain, call.args), *([] if call.stdin is None else [call.stdin])]
    if not texts or any(map(is_unknown, call.args)):
        yield UnknownEffect(f"{call.program} writes the files that the patch names")
    for change in (change for text in texts for change in patch_paths(text)):
        yield Access("delete" if change.mode == "delete" else "write", quote(change.path))


ARCHIVES: Final[dict[str, Program]] = {
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _tar),
    **dict.fromkeys(_COMPRESSORS, _compress),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _seven_zip),
    "unzip": _unzip,
    "zip": _zip,
    "cpio": _cpio,
    "ar": _ar,
    "patch": _patch,
    **dict.fromkeys(("apply_patch", "applypatch"), _apply_patch),
}
