"""Claude Code's settings files, changed all or not at all: installs our hooks, and leaves no trace when they go.

Beside the file nothing is kept. A receipt in our own folder has what was there before and the hash of what was written,
so that uninstall gives back the same bytes if nobody has touched the file since.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from fairlead.clients import _settings_file as files
from fairlead.clients._json_text import JsonTextError, parse
from fairlead.clients._settings_file import InstallError, Seen
from fairlead.clients.claude import _status_line_entry as status_line
from fairlead.clients.claude import _stay_entries as stays
from fairlead.clients.claude._hook_entries import Asked, Installed, Taken, install, uninstall
from fairlead.clients.claude._settings_rules import SettingsError
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SCOPES = ("user", "project", "local")


class Receipt(msgspec.Struct, frozen=True):
    """What uninstall needs to know."""

    file: str
    original: bytes | None
    """What was there before us; `None` if there was no file."""
    written: str
    """The SHA-256 of what we wrote."""
    folders: tuple[str, ...] = ()
    """The folders that we made for it, outermost first."""
    taken: tuple[Taken, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """What would be done to a file. Nothing is, until `carry_out`."""

    seen: Seen
    after: bytes | None
    """`None`: the file goes, as it came."""
    done: Installed
    receipt: Receipt | None
    """What to keep from then on."""
    folders: tuple[str, ...] = ()
    """The folders to remove if they are empty, outermost first."""
    is_exact: bool = False
    """Whether uninstall gives back what was there, byte for byte."""

    @property
    def changes(self) -> bool:
        """Whether anything would be different."""
        return self.after != self.seen.content


def settings_file(scope: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """Say where the client looks for the settings of a scope."""
    if scope == "user":
        moved = environ.get("CLAUDE_CONFIG_DIR")
        return Path(moved or Path(environ.get("HOME") or Path.home(), ".claude"), "settings.json").absolute()
    if scope == "project":
        return folder.absolute() / ".claude/settings.json"
    if scope == "local":
        return folder.absolute() / ".claude/settings.local.json"
    raise UsageError(f"--scope: expected one of {', '.join(SCOPES)}, got {scope!r}")


# -- planning ------------------------------------------------------------------------------------------


def plan_install(file: Path, asked: Asked, state: Path) -> Plan:
    """Say what an install would write."""
    seen = files.look(file)
    with _named(seen):
        text = files.text_of(seen)
        before = _receipt(seen, state)
        original, taken = _original(seen, text, before)
        done = _put_in(text, asked, _text(original))
    after = done.text.encode()
    receipt = Receipt(
        file=str(seen.target),
        original=original,
        written=_hash(after),
        folders=before.folders if before else tuple(map(str, _missing_folders(seen.target))),
        taken=(*taken, *done.taken),
    )
    return Plan(seen, after, done, receipt)


def plan_uninstall(file: Path, state: Path) -> Plan:
    """Say what an uninstall would leave."""
    seen = files.look(file)
    receipt = _receipt(seen, state)
    if seen.content is None:
        return Plan(seen, None, Installed(""), None)
    with _named(seen):
        text = files.text_of(seen)
        original = _text(receipt.original) if receipt else None
        done = _taken_out(text, original, receipt.taken if receipt else ())
        if not done.found:
            return Plan(seen, seen.content, done, None)
        is_exact = receipt is not None and _hash(seen.content) == receipt.written
        after = receipt.original if receipt and is_exact else done.text.encode()
        came_with_us = receipt is not None and receipt.original is None
        if came_with_us and not is_exact and not parse(done.text).items:
            after = None
    folders = receipt.folders if receipt and after is None else ()
    return Plan(seen, after, done, None, folders, is_exact)


def _put_in(text: str, asked: Asked, original: str | None) -> Installed:
    done = install(text, asked)
    text, line = status_line.put_in(done.text, asked.launcher, asked.status_line)
    text, stay = stays.put_in(text, asked.launcher, asked.stay, original)
    return replace(done, text=text, status_line=line, stay=stay)


def _taken_out(text: str, original: str | None = None, taken: Sequence[Taken] = ()) -> Installed:
    done = uninstall(text, original, taken)
    text, line = status_line.take_out(done.text, original)
    text, stay = stays.take_out(text, original)
    return replace(done, text=text, status_line=line, stay=stay)


def _original(seen: Seen, text: str, before: Receipt | None) -> tuple[bytes | None, tuple[Taken, ...]]:
    """Say what uninstall is to give back, now that the file may have been changed since the last install."""
    if seen.content is None or before is None:
        bare = _taken_out(text) if seen.content else None
        return (bare.text.encode() if bare and bare.found else seen.content), ()
    if _hash(seen.content) == before.written:
        return before.original, before.taken
    bare = _taken_out(text, _text(before.original), before.taken)
    if not bare.found:
        return seen.content, ()
    if before.original is None and not parse(bare.text).items:
        return None, before.taken
    return bare.text.encode(), before.taken


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _missing_folders(target: Path) -> list[Path]:
    """List the folders that must be made for the file, outermost first."""
    return [folder for folder in reversed(target.parents) if not folder.exists()]


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


@contextmanager
def _named(seen: Seen) -> Iterator[None]:
    """Say of which file a mistake is."""
    try:
        yield
    except (JsonTextError, SettingsError) as error:
        raise InstallError(f"{seen.target}:{error}; nothing was changed") from None


# -- doing ---------------------------------------------------------------------------------------------


def carry_out(plan: Plan, state: Path) -> Path | None:
    """Do it, or nothing; give the place where the file as it was before is kept."""
    kept = None
    receipt = _receipt_file(plan.seen, state)
    with files.told(plan.seen.target):
        if plan.changes:
            if plan.receipt is not None:
                kept = _keep(plan, receipt)
            if plan.after is None:
                _delete(plan)
            else:
                _write(plan, plan.after)
        if plan.receipt is None:
            for file in (receipt, receipt.with_suffix(".before")):
                file.unlink(missing_ok=True)
    return kept


def locked(state: Path) -> files.Lock:
    """Keep other installers of this user away."""
    return files.Lock(_folder(state) / "lock")


def _keep(plan: Plan, receipt: Path) -> Path | None:
    """Write the receipt first: one without an install is found to be so, an install without one could not be undone."""
    kept = None
    if plan.seen.content is not None:
        kept = receipt.with_suffix(".before")
        files.put_own(kept, plan.seen.content)
    files.put_own(receipt, msgspec.json.encode(plan.receipt))
    return kept


def _write(plan: Plan, content: bytes) -> None:
    made = _missing_folders(plan.seen.target)
    try:
        plan.seen.target.parent.mkdir(parents=True, exist_ok=True)
        files.put(plan.seen, content)
    except BaseException:
        _remove_empty(made)
        raise


def _delete(plan: Plan) -> None:
    files.refuse_changed(plan.seen)
    plan.seen.target.unlink(missing_ok=True)
    _remove_empty([Path(folder) for folder in plan.folders])


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # somebody has put something into it
            folder.rmdir()


def _folder(state: Path) -> Path:
    folder = state / "installs"
    with files.told(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def _receipt_file(seen: Seen, state: Path) -> Path:
    name = sha256(os.fsencode(seen.target)).hexdigest()[:16]
    return state / "installs" / f"claude-{name}.json"


def _receipt(seen: Seen, state: Path) -> Receipt | None:
    """Read the receipt; without one that can be read, our hooks are taken out one by one."""
    try:
        receipt = msgspec.json.decode(_receipt_file(seen, state).read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError):
        return None
    return receipt if receipt.file == str(seen.target) else None
