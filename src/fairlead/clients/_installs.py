"""Installs hooks in a settings file, completely or not at all, and uninstalls them without a trace. Knows no client.

Nothing is stored beside the settings file. A receipt in our own folder has the original content and the hash of the
written content. If the file has not been changed since the install, an uninstall restores the original bytes.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import _settings_file as files
from fairlead.clients._install_types import InstallPlan, InstallReceipt, InstallResult
from fairlead.clients._json_text import JsonTextError
from fairlead.clients._settings_file import InstallError, SettingsError
from fairlead.files import write_private

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.clients._install_types import InstallRequest, RemovedEntry, SettingsEditor
    from fairlead.clients._settings_file import FileVersion

# -- planning ------------------------------------------------------------------------------------------


def plan_install(client: str, editor: SettingsEditor, file: Path, request: InstallRequest, state: Path) -> InstallPlan:
    """Return the plan of an install in a settings file. Raise `InstallError` if the file cannot be edited safely.

    `state` is our state folder, which has the receipts.
    """
    before = files.read(file)
    with _errors_with_file(before):
        text = files.text_of(before)
        receipt = _read_receipt(client, before, state)
        original, taken = _original(editor, before, text, receipt)
        result = editor.install(text, request, _text(original))
    after = result.text.encode()
    new_receipt = InstallReceipt(
        file=str(before.target),
        original=original,
        written=_hash(after),
        folders=receipt.folders if receipt else tuple(map(str, files.missing_folders(before.target))),
        taken=(*taken, *result.taken),
    )
    return InstallPlan(before, after, result, new_receipt)


def plan_uninstall(client: str, editor: SettingsEditor, file: Path, state: Path) -> InstallPlan:
    """Return the plan of an uninstall from a settings file; without changes if the file has nothing of ours.

    `state` is our state folder, which has the receipts. Raise `InstallError` if the file cannot be edited safely.
    """
    before = files.read(file)
    receipt = _read_receipt(client, before, state)
    if before.content is None:
        return InstallPlan(before, None, InstallResult(""), None)
    with _errors_with_file(before):
        text = files.text_of(before)
        original = _text(receipt.original) if receipt else None
        result = editor.uninstall(text, original, receipt.taken if receipt else ())
        if not result.had_ours:
            return InstallPlan(before, before.content, result, None)
        is_exact = receipt is not None and _hash(before.content) == receipt.written
        after = receipt.original if receipt and is_exact else result.text.encode()
        is_created_by_us = receipt is not None and receipt.original is None
        if is_created_by_us and not is_exact and editor.is_empty(result.text):
            after = None
    folders = receipt.folders if receipt and after is None else ()
    return InstallPlan(before, after, result, None, folders, is_exact)


def _original(
    editor: SettingsEditor, before: FileVersion, text: str, receipt: InstallReceipt | None
) -> tuple[bytes | None, tuple[RemovedEntry, ...]]:
    """Return what an uninstall has to restore: the content (`None`: no file), and the entries of other programs.

    If the file has changed since the last install, or has no receipt, the content is its text without our hooks.
    """
    if before.content is None or receipt is None:
        bare = editor.uninstall(text, None, ()) if before.content else None
        return (bare.text.encode() if bare and bare.had_ours else before.content), ()
    if _hash(before.content) == receipt.written:
        return receipt.original, receipt.taken
    bare = editor.uninstall(text, _text(receipt.original), receipt.taken)
    if not bare.had_ours:
        return before.content, ()
    if receipt.original is None and editor.is_empty(bare.text):
        return None, receipt.taken
    return bare.text.encode(), receipt.taken


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode()


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()


@contextmanager
def _errors_with_file(snapshot: FileVersion) -> Iterator[None]:
    """Turn errors in the text of a file into an `InstallError` that names the file."""
    try:
        yield
    except (JsonTextError, SettingsError) as error:
        raise InstallError(f"{snapshot.target}:{error}; nothing was changed") from None


# -- doing ---------------------------------------------------------------------------------------------


def carry_out(client: str, plan: InstallPlan, state: Path) -> Path | None:
    """Carry out a plan completely, or not at all. Return the path of a copy of the previous file.

    `None`: no copy was made, because the plan changes nothing or uninstalls, or there was no file. Raise
    `InstallError` if the file has changed since it was read, or cannot be written.
    """
    kept = None
    receipt = _receipt_file(client, plan.before, state)
    with files.translate_os_errors(plan.before.target):
        if plan.changes:
            if plan.receipt is not None:
                kept = _write_receipt(plan, receipt)
            if plan.after is None:
                _delete(plan)
            else:
                _write(plan, plan.after)
        if plan.receipt is None:
            for file in (receipt, receipt.with_suffix(".before")):
                file.unlink(missing_ok=True)
    return kept


def install_lock(state: Path) -> files.Lock:
    """Return the lock that allows one installer of this user at a time, and create its folder in `state`."""
    folder = state / "installs"
    with files.translate_os_errors(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return files.Lock(folder / "lock")


def _write_receipt(plan: InstallPlan, receipt: Path) -> Path | None:
    """Write the receipt, before the settings file is written: without a receipt an install cannot be undone.

    Return the path of a copy of the previous file; `None` if there was no file.
    """
    kept = None
    if plan.before.content is not None:
        kept = receipt.with_suffix(".before")
        write_private(str(kept), plan.before.content, durable=True)
    write_private(str(receipt), msgspec.json.encode(plan.receipt), durable=True)
    return kept


def _write(plan: InstallPlan, content: bytes) -> None:
    created = files.missing_folders(plan.before.target)
    try:
        plan.before.target.parent.mkdir(parents=True, exist_ok=True)
        files.write(plan.before, content)
    except BaseException:
        _remove_empty(created)
        raise


def _delete(plan: InstallPlan) -> None:
    files.refuse_changed(plan.before)
    plan.before.target.unlink(missing_ok=True)
    _remove_empty([Path(folder) for folder in plan.folders])


def _remove_empty(folders: Sequence[Path]) -> None:
    for folder in reversed(folders):
        with suppress(OSError):  # not empty
            folder.rmdir()


def _receipt_file(client: str, snapshot: FileVersion, state: Path) -> Path:
    name = sha256(os.fsencode(snapshot.target)).hexdigest()[:16]
    return state / "installs" / f"{client}-{name}.json"


def _read_receipt(client: str, snapshot: FileVersion, state: Path) -> InstallReceipt | None:
    """Return the receipt of a settings file; `None` if it is missing, cannot be read, or is that of another file."""
    try:
        receipt = msgspec.json.decode(_receipt_file(client, snapshot, state).read_bytes(), type=InstallReceipt)
    except (OSError, msgspec.DecodeError):
        return None
    return receipt if receipt.file == str(snapshot.target) else None
