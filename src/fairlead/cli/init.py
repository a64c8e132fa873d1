"""`fairlead init`: writes a policy file for a folder, new from the template or taken over from conclaude's."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import msgspec

from fairlead.errors import FairleadError, UsageError
from fairlead.policy import (
    MAX_POLICY_BYTES,
    conclaude_differences,
    conclaude_sections,
    detect_checks,
    read_document,
    render_policy,
    with_schema_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairlead.policy import DetectedCheck

USAGE = """\
usage: fairlead init [FOLDER] [--force] [--from-conclaude] [--dry-run]

Writes .fairlead.yaml in that folder (by default this one): a policy with comments and examples, and with the linters
and tests that the folder's files tell of as checks before the agent may stop.

  --force             replace the policy that is there; it is kept as .fairlead.yaml.bak
  --from-conclaude    take over .conclaude.yaml, comments and all, and say what behaves differently
  --dry-run           print the file instead of writing it

example:
  fairlead init --dry-run

exit codes: 0 written; 1 not
"""

NAME = ".fairlead.yaml"
_OURS = (NAME, ".fairlead.yml")
_CONCLAUDE = (".conclaude.yaml", ".conclaude.yml")
_FLAGS = ("--force", "--from-conclaude", "--dry-run")
_MODE = 0o644


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    folder: str = "."
    force: bool = False
    from_conclaude: bool = False
    dry_run: bool = False


class Draft(msgspec.Struct, frozen=True):
    """The file to write, and what to say about it."""

    text: str
    about: str
    lines: tuple[str, ...]


def run(args: Sequence[str]) -> int:
    """Write a policy and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    options = _options(args)
    try:
        return _init(Path(options.folder), options)
    except OSError as error:
        raise FairleadError(f"{error.filename or options.folder}: {error.strerror}; nothing was changed") from None


def _init(folder: Path, options: Options) -> int:
    if not folder.is_dir():
        reason = "is a file; name its folder" if folder.exists() else "no such folder; make it first"
        raise UsageError(f"{folder}: {reason}")
    _refuse_to_replace(folder, options)
    draft = _taken_over(folder) if options.from_conclaude else _fresh(folder)
    if options.dry_run:
        sys.stdout.write(draft.text)
        sys.stdout.flush()
        _say(folder, draft, "would write", sys.stderr)
        return 0
    kept = _written(folder, draft.text)
    _say(folder, draft, "wrote", sys.stdout, kept)
    return 0


def _options(args: Sequence[str]) -> Options:
    folders = [word for word in args if not word.startswith("-")]
    unknown = next((word for word in args if word.startswith("-") and word not in _FLAGS), None)
    if unknown is not None:
        raise UsageError(f"unknown option {unknown!r}; options are {', '.join(_FLAGS)}")
    if len(folders) > 1:
        raise UsageError(f"init takes one folder, got {len(folders)}")
    force, from_conclaude, dry_run = (flag in args for flag in _FLAGS)
    return Options(folders[0] if folders else ".", force, from_conclaude, dry_run)


def _refuse_to_replace(folder: Path, options: Options) -> None:
    """Keep what is there, unless told otherwise; also what a new file would put out of force."""
    if options.force:
        return
    if ours := _first(folder, _OURS):
        raise FairleadError(
            f"{ours} exists already; edit it, or run init with --force, which keeps it as {ours.name}.bak"
        )
    theirs = _first(folder, _CONCLAUDE)
    if theirs and not options.from_conclaude:
        raise FairleadError(
            f"{theirs} works unchanged, so nothing was written; run init with --from-conclaude to make {NAME} of it, "
            f"or with --force to begin anew"
        )


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    """Find the first that is there; a link that leads nowhere is there too."""
    return next((folder / name for name in names if os.path.lexists(folder / name)), None)


# -- what to write -------------------------------------------------------------------------------------


def _fresh(folder: Path) -> Draft:
    checks, unreadable = detect_checks(folder)
    active = sum(check.disabled_reason is None for check in checks)
    about = f"guards, and {active} check{'' if active == 1 else 's'} before the agent may stop"
    lines = [*_shown(checks), *(f"{name} cannot be read, so it was not looked at" for name in unreadable)]
    if theirs := _first(folder, _CONCLAUDE):
        lines.append(f"{theirs.name} is no longer in force; what it said is not in {NAME}")
    return Draft(render_policy(checks, folder), about, tuple(lines))


def _shown(checks: Sequence[DetectedCheck]) -> Iterator[str]:
    width = max((len(check.run) for check in checks), default=0)
    for check in checks:
        off = f"; off: {check.disabled_reason}" if check.disabled_reason else ""
        yield f"{check.run:<{width}}  from {check.source}{off}"


def _taken_over(folder: Path) -> Draft:
    source = _first(folder, _CONCLAUDE)
    if source is None:
        raise UsageError(f"there is no {' or '.join(_CONCLAUDE)} in {folder}; run init without --from-conclaude")
    if not source.resolve().is_relative_to(folder.resolve()):
        raise FairleadError(f"{source} is a link out of the folder; put the file itself there")
    content = _content(source)
    document = read_document(content, str(source))  # raises with every mistake, at its place in their file
    lines = (
        *(f"taken over: {line}" for line in conclaude_sections(document)),
        *(f"differs: {line}" for line in conclaude_differences(document)),
        f"{source.name} is no longer in force, and may be removed",
    )
    return Draft(with_schema_header(content.decode("utf-8-sig"), folder), f"all of {source.name}", lines)


def _content(source: Path) -> bytes:
    if not source.is_file():
        raise FairleadError(f"{source} is no regular file, so it cannot be taken over")
    with source.open("rb") as file:
        return file.read(MAX_POLICY_BYTES + 1)


# -- writing -------------------------------------------------------------------------------------------


def _written(folder: Path, text: str) -> str | None:
    """Write the file; give the name under which the one before is kept."""
    before = _first(folder, _OURS)
    kept = _keep(before) if before else None
    _put(folder / NAME, text.encode(), _MODE)
    if before and before.name != NAME:
        before.unlink()
    return kept


def _keep(before: Path) -> str:
    """Copy what is there, so that the folder is never without a policy; of a link the link, not what it leads to."""
    kept = before.with_name(f"{before.name}.bak")
    if before.is_symlink():
        spare = before.with_name(f"{before.name}.{os.getpid()}.tmp")
        spare.symlink_to(before.readlink())
        spare.replace(kept)
    else:
        _put(kept, before.read_bytes(), before.stat().st_mode & 0o777)
    return kept.name


def _put(file: Path, content: bytes, mode: int) -> None:
    """Write all of a file or nothing. What has its name is replaced, and a link is not followed."""
    try:
        descriptor, spare = tempfile.mkstemp(prefix=f"{file.name}.", suffix=".tmp", dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None  # not the name of a file that never was
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            os.fchmod(descriptor, mode)
            stream.flush()
            os.fsync(descriptor)
        Path(spare).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(spare).unlink()
        raise


# -- saying --------------------------------------------------------------------------------------------


def _say(folder: Path, draft: Draft, verb: str, stream: TextIO, kept: str | None = None) -> None:
    lines = [f"{verb} {folder / NAME}: {draft.about}", *(f"  {line}" for line in draft.lines)]
    if kept:
        lines.append(f"  the file before is kept as {kept}")
    if verb == "wrote":
        where = "" if folder == Path() else f", in {folder}"
        lines += [f"next{where}:", "  fairlead validate", "  fairlead explain --tool Bash --command 'rm -rf build'"]
    print("\n".join(lines), file=stream)
