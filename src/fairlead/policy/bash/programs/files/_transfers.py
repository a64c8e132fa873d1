"""The effects of programs that send files elsewhere or fetch them: curl, wget, rsync, scp, gh."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import plain
from fairlead.policy.bash.programs._calls import (
    Access,
    Effect,
    Mention,
    Program,
    ProgramCall,
    accesses,
    basename,
    parse_options,
    run_script,
)
from fairlead.policy.paths._selection import Selection

if TYPE_CHECKING:
    from collections.abc import Iterator

_CURL_LONG: Final = (
    "output header request data data-raw data-binary data-urlencode data-ascii json form form-string user user-agent "
    "upload-file cookie cookie-jar dump-header config max-time proxy url output-dir retry retry-delay connect-timeout "
    "cacert cert key write-out trace trace-ascii stderr netrc-file range referer limit-rate resolve variable "
    "url-query etag-save etag-compare libcurl max-filesize interface"
)
_WGET_LONG: Final = (
    "output-document output-file append-output directory-prefix header user-agent post-file post-data body-file "
    "body-data input-file config load-cookies save-cookies tries timeout wait quota execute user password method"
)
_CURL_SENDS: Final = (
    "d",
    "data",
    "data-binary",
    "data-ascii",
    "data-urlencode",
    "json",
    "F",
    "form",
    "url-query",
    "variable",
    "H",
    "header",
)
_WGET_READS: Final = ("post-file", "body-file", "i", "input-file", "config", "load-cookies")
_GH_LONG: Final = "body title notes body-file field notes-file template input env-file filename add"
_RSYNC_LONG: Final = (
    "rsh rsync-path filter exclude include exclude-from include-from files-from log-file backup-dir temp-dir "
    "compare-dest copy-dest link-dest partial-dir password-file suffix chmod chown bwlimit timeout port max-size "
    "min-size out-format info"
)


def _curl(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "oHXdFuAeTbcDKmUwxyYzECrtPQ", _CURL_LONG)
    written = opts.values("o", "output", "D", "dump-header", "c", "cookie-jar", "trace", "trace-ascii", "stderr")
    written += opts.values("etag-save", "libcurl")
    folder = next(iter(opts.values("output-dir")), ".")
    names = [basename(url) for url in opts.operands] if opts.has("O", "remote-name", "remote-name-all") else []
    yield from accesses("write", [_inside(folder, word) for word in [*written, *names] if word not in {"-", ""}])
    yield from accesses("read", map(_sent, opts.values(*_CURL_SENDS)))
    yield from accesses(
        "read", opts.values("T", "upload-file", "K", "config", "netrc-file", "etag-compare", "key", "E")
    )
    yield from accesses("read", [word for word in opts.values("b", "cookie") if "=" not in word])
    yield from accesses(
        "read", [url[len("file://") :] for url in [*opts.operands, *opts.values("url")] if url[:7] == "file://"]
    )


def _sent(value: str) -> str:
    """Return the file in `@file`, `name=@file;type=…`, `name=<file` or `name@file`; "" if the value is text."""
    head, sign, file = value.partition("@")
    if not sign:
        head, sign, file = value.partition("=<")
    is_file = sign and (head == "" or head.endswith("=") or sign == "=<" or head.replace("%", "").isidentifier())
    return file.partition(";")[0] if is_file else ""


def _wget(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "OoaPUtTwQeiBDIXA", _WGET_LONG)
    written = opts.values("O", "output-document", "o", "output-file", "a", "append-output", "save-cookies")
    folder = next(iter(opts.values("P", "directory-prefix")), ".")
    names = [] if opts.has("O", "output-document") else [basename(url) for url in opts.operands]
    yield from accesses("write", [_inside(folder, word) for word in [*written, *names] if word not in {"-", ""}])
    yield from accesses("read", opts.values(*_WGET_READS))


def _inside(folder: str, word: str) -> str:
    return word if folder == "." or word.startswith(("/", "~")) else f"{folder.rstrip('/')}/{word}"


def _rsync(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "efTBM", _RSYNC_LONG)
    without = tuple(plain(word).removeprefix("- ") for word in opts.values("exclude"))
    selection = Selection((), without) if not opts.has("include", "f", "filter", "include-from") else Selection()
    sources = opts.operands[:-1] or opts.operands
    yield from (run_script(word, "rsync") for word in opts.values("e", "rsh") if "ssh" not in word)
    for source in sources:
        if not _is_remote(source):
            yield Access("move" if opts.has("remove-source-files") else "read", source, below=True, selection=selection)
    for target in opts.operands[1:][-1:]:
        if not _is_remote(target) and not opts.has("n", "dry-run", "list-only"):
            yield from _rsynced(sources, target, deletes=any(name.startswith("del") for name in opts.given))
    yield from accesses("read", opts.values("files-from", "exclude-from", "include-from", "password-file"))
    yield from accesses("write", opts.values("log-file"))


def _rsynced(sources: list[str], target: str, *, deletes: bool) -> Iterator[Effect]:
    """Yield the files that rsync writes: the target, or files in a target folder.

    `deletes`: whether it also removes other files there.
    """
    whole = deletes or any(
        source.endswith("/") or basename(source) in {".", ".."} or _is_remote(source) for source in sources
    )
    folder = target.endswith("/") or any(source.endswith("/") for source in sources)
    yield Access("write", target, below=whole, makes_folder=folder, copy_of=sources[0])
    for source in sources:
        if basename(source) and not source.endswith("/"):
            yield Access(
                "write", f"{target.rstrip('/')}/{basename(source)}", below=True, if_folder=target, copy_of=source
            )


def _is_remote(word: str) -> bool:
    return ":" in word.partition("/")[0] or "://" in word


def _scp(call: ProgramCall) -> Iterator[Effect]:
    opts = parse_options(call.args, "cFiJloPSDX")
    deep = opts.has("r")
    for source in opts.operands[:-1]:
        if not _is_remote(source):
            yield Access("read", source, deep)
    for target in opts.operands[-1:]:
        if not _is_remote(target):
            yield Access("write", target, deep, copy_of=opts.operands[0])
            for source in opts.operands[:-1]:
                yield Access(
                    "write", f"{target.rstrip('/')}/{basename(source)}", deep, if_folder=target, copy_of=source
                )
    yield from (run_script(word, "scp") for word in opts.values("S"))


def _gh(call: ProgramCall) -> Iterator[Effect]:
    """Yield the effects of `gh`: some of its commands upload files, and some options read files."""
    words = [word for word in call.args if word[:1] != "-"]
    if words[:2] in (["gist", "create"], ["gist", "edit"], ["release", "upload"], ["release", "create"]):
        yield from (Mention(word, reads_only=True, below=False) for word in words[2:])
    opts = parse_options(call.args, "FfTHXRbtBln", _GH_LONG)
    files = opts.values("body-file", "notes-file", "template", "input", "env-file", "filename", "a", "add")
    files += [word for word in opts.values("F") if "=" not in word]
    files += [word.partition("=@")[2] for word in opts.values("F", "field") if "=@" in word]
    yield from (Access("read", word, if_exists=True) for word in files)
    if words[:2] == ["release", "download"]:
        yield from accesses("write", opts.values("O", "output"))


TRANSFERS: Final[dict[str, Program]] = {
    "curl": _curl,
    "wget": _wget,
    "rsync": _rsync,
    "scp": _scp,
    "gh": _gh,
}
