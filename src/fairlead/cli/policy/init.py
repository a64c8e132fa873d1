"""`fairlead init`: writes a policy file for a folder, from the template or from conclaude's file."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.policy.deleted import deleted_policy
from fairlead.cli.support.command import Command
from fairlead.cli.support.person import require_person, yes_option
from fairlead.errors import FairleadError, UsageError
from fairlead.policy import (
    MAX_POLICY_BYTES,
    SCHEMA_ID,
    PolicyError,
    conclaude_differences,
    conclaude_sections,
    detect_checks,
    detect_files,
    names_schema,
    read_document,
    render_policy,
    schema_text,
    with_schema_line,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairlead.policy import DetectedCheck, DetectedFiles

NAME = ".fairlead.yaml"
SCHEMA_NAME = "fairlead.schema.json"
_OURS = (NAME, ".fairlead.yml")
_CONCLAUDE = (".conclaude.yaml", ".conclaude.yml")
_MODE = 0o644
_PROTECTIONS = {"secret": "neither read nor edited", "locked": "not edited", "generated": "a warning if it is edited"}


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    folder: str = "."
    force: bool = False
    from_conclaude: bool = False
    dry_run: bool = False
    yes: bool = False
    install: bool = False
    schema: bool = False


class PolicyDraft(msgspec.Struct, frozen=True):
    """The file to write, and what to print about it."""

    text: str
    about: str
    """What the file contains, in a few words."""
    lines: tuple[str, ...]
    """Details to print: what was found or copied."""


def _refuse_to_replace(folder: Path, options: Options) -> None:
    """Raise `FairleadError` if the folder has a policy that a new file would replace, unless `--force` is given."""
    if options.force:
        return
    if own_file := _first(folder, _OURS):
        raise FairleadError(
            f"{own_file} exists already; edit it, or run init with --force, which keeps it as {own_file.name}.bak"
        )
    conclaude_file = _first(folder, _CONCLAUDE)
    if conclaude_file and not options.from_conclaude:
        raise FairleadError(
            f"{conclaude_file} works unchanged, so nothing was written; run init with --from-conclaude to make {NAME} "
            f"of it, or with --force to start from the template"
        )
    if deleted := _deleted(folder):
        raise FairleadError(
            f"{deleted} was deleted, and its last good version still applies; restore the file, or run init with "
            f"--force, which writes {NAME} in its place"
        )


def _deleted(folder: Path) -> str:
    """Return the policy file that was deleted from the folder and still applies: a new file would replace its rules.

    "" if there is none, or if the folders above cannot be searched.
    """
    try:
        return deleted_policy(str(folder))
    except PolicyError:
        return ""


def _first(folder: Path, names: Iterable[str]) -> Path | None:
    """Return the path of the first of these names that exists in the folder, even as a broken link; else `None`."""
    return next((folder / name for name in names if os.path.lexists(folder / name)), None)


# -- the draft -----------------------------------------------------------------------------------------


def _new_draft(folder: Path) -> PolicyDraft:
    checks, unreadable = detect_checks(folder)
    files = detect_files(folder)
    active = sum(check.disabled_reason is None for check in checks)
    rules = f"{len(files)} rule{'' if len(files) == 1 else 's'} on files, " if files else ""
    about = f"guards, {rules}and {active} check{'' if active == 1 else 's'} before the agent may stop"
    lines = [
        *_file_lines(files),
        *_check_lines(checks),
        *(f"{name} cannot be read, so it was skipped" for name in unreadable),
    ]
    if conclaude_file := _first(folder, _CONCLAUDE):
        lines.append(f"{conclaude_file.name} is no longer in force; its rules are not in {NAME}")
    return PolicyDraft(render_policy(checks, files), about, tuple(lines))


def _file_lines(files: Sequence[DetectedFiles]) -> Iterator[str]:
    width = max((len(detected.pattern) for detected in files), default=0)
    for detected in files:
        yield f"{detected.pattern:<{width}}  {_PROTECTIONS[detected.protection]}; there is {detected.source}"


def _check_lines(checks: Sequence[DetectedCheck]) -> Iterator[str]:
    width = max((len(check.run) for check in checks), default=0)
    for check in checks:
        off = f"; off: {check.disabled_reason}" if check.disabled_reason else ""
        yield f"{check.run:<{width}}  from {check.source}{off}"


def _draft_from_conclaude(folder: Path) -> PolicyDraft:
    source = _first(folder, _CONCLAUDE)
    if source is None:
        raise UsageError(f"there is no {' or '.join(_CONCLAUDE)} in {folder}; run init without --from-conclaude")
    if not source.resolve().is_relative_to(folder.resolve()):
        raise FairleadError(f"{source} is a link out of the folder; put the file itself there")
    content = _content(source)
    document = read_document(content, str(source))  # raises every mistake, with its line in that file
    text = content.decode("utf-8-sig")
    lines = (
        *(f"copied: {line}" for line in conclaude_sections(document)),
        *(("left out: the line that names the schema of conclaude for editors",) if names_schema(text) else ()),
        *(f"differs: {line}" for line in conclaude_differences(document)),
        f"{source.name} is no longer in force, and may be removed",
    )
    return PolicyDraft(with_schema_line(text), f"all of {source.name}", lines)


def _with_schema(folder: Path, draft: PolicyDraft) -> PolicyDraft:
    """Return the draft with a line that names the schema, a file in `folder`.

    Raise `FairleadError` if a file of that name exists and is no schema of Fairlead.
    """
    file = folder / SCHEMA_NAME
    if os.path.lexists(file) and not (file.is_file() and f'"{SCHEMA_ID}"' in file.read_text("utf-8", "replace")):
        raise FairleadError(f"{file} exists, and is no schema of Fairlead; rename it, or run init without --schema")
    line = f"{SCHEMA_NAME}  the schema for editors, which the policy names; commit both"
    return PolicyDraft(with_schema_line(draft.text, SCHEMA_NAME), draft.about, (*draft.lines, line))


def _content(source: Path) -> bytes:
    if not source.is_file():
        raise FairleadError(f"{source} is no regular file, so it cannot be copied")
    with source.open("rb") as file:
        return file.read(MAX_POLICY_BYTES + 1)


# -- writing -------------------------------------------------------------------------------------------


def _write(folder: Path, text: str) -> str | None:
    """Write the policy file. Return the name under which the previous one is kept; `None` if there was none.

    A previous file with another name, such as `.fairlead.yml`, is removed.
    """
    before = _first(folder, _OURS)
    kept = _keep(before) if before else None
    _put(folder / NAME, text.encode(), _MODE)
    if before and before.name != NAME:
        before.unlink()
    return kept


def _keep(before: Path) -> str:
    """Copy the previous file to one that ends with `.bak`, and return the name of the copy. A link is copied as a link.

    The file is not renamed, so that the folder is never without a policy.
    """
    kept = before.with_name(f"{before.name}.bak")
    if before.is_symlink():
        temporary = before.with_name(f"{before.name}.{os.getpid()}.tmp")
        temporary.symlink_to(before.readlink())
        temporary.replace(kept)
    else:
        _put(kept, before.read_bytes(), before.stat().st_mode & 0o777)
    return kept.name


def _put(file: Path, content: bytes, mode: int) -> None:
    """Write a file completely, or raise `OSError` and leave it as it was. A file or link of that name is replaced."""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f"{file.name}.", suffix=".tmp", dir=file.parent)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None  # not the name of the temporary file
    try:
        with open(descriptor, "wb") as stream:
            stream.write(content)
            os.fchmod(descriptor, mode)
            stream.flush()
            os.fsync(descriptor)
        Path(temporary).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(temporary).unlink()
        raise


# -- text ----------------------------------------------------------------------------------------------


def to_text(
    folder: Path, draft: PolicyDraft, *, kept: str | None = None, is_written: bool = True, is_installed: bool = False
) -> Iterator[str]:
    """Yield what was written, or would be (without `is_written`), and the next steps.

    `kept` is the name under which the previous file is kept. `is_installed` is whether the hooks are installed next.
    """
    yield f"{'wrote' if is_written else 'would write'} {folder / NAME}: {draft.about}"
    yield from (f"  {line}" for line in draft.lines)
    if kept:
        yield f"  the previous file is kept as {kept}"
    if is_written:
        where = "" if folder == Path() else f", in {folder}"
        yield from (
            f"next{where}:",
            "  fairlead validate",
            "  fairlead explain --tool Bash --command 'rm -rf build'",
            *(() if is_installed else ("  fairlead hooks install",)),
        )


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "init",
    cls=Command,
    arguments=(("FOLDER", "where to write it (default: the current folder)"),),
    examples=("fairlead init --dry-run",),
    exit_codes=((0, "written"), (1, "nothing was written; stderr says why")),
)
@click.argument("folder", metavar="[FOLDER]", default=".", type=click.Path())
@click.option("--force", is_flag=True, help=f"Replace the existing policy, and keep it as {NAME}.bak.")
@click.option(
    "--from-conclaude", is_flag=True, help="Copy .conclaude.yaml with its comments, and list what behaves differently."
)
@click.option("--dry-run", is_flag=True, help="Print the file instead of writing it.")
@click.option(
    "--schema",
    is_flag=True,
    help=f"Also write {SCHEMA_NAME}, and name it in the policy, for editors that use schemas.",
)
@click.option("--install", is_flag=True, help="Then install the hooks, as fairlead hooks install does.")
@yes_option
def init(**given: Any) -> int:
    """Write a policy file to start from.

    It writes .fairlead.yaml: a policy with comments and examples. Secrets, keys, lock files and the settings of CI that
    are in the folder become rules on files; linters and tests become checks that run before the agent may stop.
    """
    options = Options(**given)
    try:
        return _run(Path(options.folder), options)
    except OSError as error:
        raise FairleadError(f"{error.filename or options.folder}: {error.strerror}; nothing was changed") from None


def _run(folder: Path, options: Options) -> int:
    if not folder.is_dir():
        reason = "is a file; name its folder" if folder.exists() else "no such folder; make it first"
        raise UsageError(f"{folder}: {reason}")
    _refuse_to_replace(folder, options)
    draft = _draft_from_conclaude(folder) if options.from_conclaude else _new_draft(folder)
    if options.schema:
        draft = _with_schema(folder, draft)
    if options.dry_run:
        sys.stdout.write(draft.text)
        sys.stdout.flush()
        print("\n".join(to_text(folder, draft, is_written=False)), file=sys.stderr)
        return 0
    if options.force and (replaced := _first(folder, (*_OURS, *_CONCLAUDE)) or _deleted(folder)):
        require_person(f"replace the policy in {replaced}", assume_yes=options.yes)
    if options.schema:
        _put(folder / SCHEMA_NAME, schema_text().encode(), _MODE)
    print("\n".join(to_text(folder, draft, kept=_write(folder, draft.text), is_installed=options.install)))
    return _install() if options.install else 0


def _install() -> int:
    """Install the hooks, as `fairlead hooks install` does, and return its exit code."""
    from fairlead.cli.hooks.install import install

    print()
    code: int = install.main([], prog_name="fairlead hooks install", standalone_mode=False)
    return code
