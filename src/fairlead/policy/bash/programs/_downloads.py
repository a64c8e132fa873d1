"""Programs that bring files from elsewhere: archives, downloads, patches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import quote
from fairlead.policy.bash.programs._calls import Call, Doubt, Effect, Program, Use, basename, options, script, uses

if TYPE_CHECKING:
    from collections.abc import Iterator


_TAR_RUNS: Final = ("to-command", "checkpoint-action", "use-compress-program", "I")


def _tar(call: Call) -> Iterator[Effect]:
    args = call.args
    if args and not args[0].startswith("-") and "=" not in args[0]:
        args = ["-" + args[0], *args[1:]]  # the old style: `tar xf a.tar`
    found = options(
        args,
        "fCTXbIKNVgHLF",
        "file directory files-from exclude exclude-from transform strip-components "
        "to-command checkpoint-action use-compress-program",
    )
    yield from (script(word.removeprefix("exec="), "tar") for word in found.values(*_TAR_RUNS))
    archives = found.values("f", "file")
    folder = next(iter(found.values("C", "directory")), ".")
    if found.has("x", "extract", "get"):
        yield from uses("read", archives)
        yield from _extracted(folder, found.operands)
    elif found.has("c", "r", "u", "create", "append"):
        yield from uses("write", archives)
        yield from uses("read", [_inside(folder, word) for word in found.operands], below=True)
        yield from uses("delete", found.operands if found.has("remove-files") else (), below=True)


def _extracted(folder: str, members: list[str]) -> Iterator[Effect]:
    if members:
        yield from uses("write", [_inside(folder, word) for word in members], below=True)
    else:
        yield Use("write", folder, below=True)


def _inside(folder: str, word: str) -> str:
    return word if folder == "." or word.startswith(("/", "~")) else f"{folder.rstrip('/')}/{word}"


def _unzip(call: Call) -> Iterator[Effect]:
    found = options([arg for arg in call.args if arg != "-x"], "dP")
    yield from uses("read", found.operands[:1])
    if not found.has("l", "t", "p", "Z", "v", "c"):
        yield from _extracted(next(iter(found.values("d")), "."), found.operands[1:])


def _zip(call: Call) -> Iterator[Effect]:
    found = options(call.args, "ixnbtO")
    yield from uses("write", found.operands[:1])
    yield from uses("move" if found.has("m") else "read", found.operands[1:], below=found.has("r"))


def _download(call: Call) -> Iterator[Effect]:
    """Cover curl and wget."""
    if call.program == "curl":
        found = options(
            call.args,
            "oHXdFuAeTbcDKmUwxyYzECrtP",
            "output header request data data-raw data-binary form user user-agent upload-file cookie cookie-jar "
            "dump-header config max-time proxy url output-dir retry connect-timeout cacert cert key write-out",
        )
        written = found.values("o", "output", "D", "dump-header", "c", "cookie-jar")
        folder = next(iter(found.values("output-dir")), ".")
        names = [basename(url) for url in found.operands] if found.has("O", "remote-name") else []
    else:
        found = options(call.args, "OoaPUtTwQeiBDIXA", "output-document output-file directory-prefix header user-agent")
        written = found.values("O", "output-document", "o", "output-file", "a")
        folder = next(iter(found.values("P", "directory-prefix")), ".")
        names = [] if written else [basename(url) for url in found.operands]
    yield from uses("write", [_inside(folder, word) for word in [*written, *names] if word not in {"-", ""}])
    sent = found.values("d", "data", "data-binary", "F", "form") if call.program == "curl" else []
    yield from uses("read", [value.rpartition("@")[2] for value in sent if "@" in value])
    yield from uses("read", found.values("T", "upload-file") if call.program == "curl" else [])


def _patch(call: Call) -> Iterator[Effect]:
    found = options(call.args, "dioprBDFVYz", "directory input output reject-file strip")
    yield from uses("write", [*found.operands[:1], *found.values("o", "output", "r", "reject-file")])
    if not found.operands and not found.has("dry-run"):
        yield from _patched(call, next(iter(found.values("d", "directory")), "."))


def _patched(call: Call, folder: str = ".") -> Iterator[Effect]:
    """The files that a patch in a here-document names; any other patch is a doubt."""
    if call.stdin is None:
        yield Doubt(f"{call.program} writes the files that the patch names")
        return
    for name in re.findall(r"^(?:\+\+\+|---|rename to|copy to) (\S+)", call.stdin, re.MULTILINE):
        for path in {name, name.partition("/")[2] or name} - {"/dev/null"}:
            yield Use("write", _inside(folder, quote(path)))


ARRIVALS: Final[dict[str, Program]] = {
    **dict.fromkeys(("curl", "wget"), _download),
    **dict.fromkeys(("tar", "bsdtar", "gtar"), _tar),
    "unzip": _unzip,
    "zip": _zip,
    "patch": _patch,
}
