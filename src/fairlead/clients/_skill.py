"""The skill that teaches agents to use the mail: written beside the settings, and removed unless the user changed it.

A receipt in our own folder has the hash of the written text, so that a newer version recognizes an older text as ours.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import sha256
from importlib.resources import files as resources
from pathlib import Path
from typing import Literal

import msgspec

from fairlead.clients import _settings_file as files
from fairlead.files import write_private

_EARLIER_TEXTS = frozenset({"0dc512ad316f8205f7844fd21d771df1b7b43eaaa788e723b7b9acc082870a59"})
"""The SHA-256 of the texts of earlier versions, for an installation whose receipt is lost."""

SkillChange = Literal["written", "unchanged", "kept", "removed", "absent"]
"""What has been done with the skill.

written    it was created, or replaces the text of an earlier version
unchanged  the file already has the current text
kept       the user has changed the skill, so it is left alone
removed    it was deleted
absent     there was no file to delete
"""


class SkillReceipt(msgspec.Struct, frozen=True):
    """What an uninstall needs to remove the skill. Stored as JSON."""

    file: str
    written: str
    """The SHA-256 of the written text."""
    folders: tuple[str, ...] = ()
    """The folders that were created for the skill, outermost first."""


def skill_text() -> bytes:
    """Return the text of the skill."""
    return resources("fairlead.clients").joinpath("skill.md").read_bytes()


def put_skill(file: Path, state: Path) -> SkillChange:
    """Write the skill, unless the user has changed it. An earlier version is replaced. `state` is our state folder."""
    before, receipt = files.read(file), _receipt(file, state)
    text = skill_text()
    if before.content == text:
        return "unchanged"
    if before.content is not None and not _is_ours(before.content, receipt):
        return "kept"
    created = receipt.folders if receipt else tuple(map(str, files.missing_folders(file)))
    with files.translate_os_errors(file):
        new = SkillReceipt(str(file), _hash(text), created)
        write_private(str(_receipt_file(file, state)), msgspec.json.encode(new), durable=True)
        file.parent.mkdir(parents=True, exist_ok=True)
        files.write(before, text)
    return "written"


def remove_skill(file: Path, state: Path) -> SkillChange:
    """Remove the skill and the folders that were created for it, unless the user has changed the skill.

    `state` is our state folder, which has the receipt.
    """
    before, receipt = files.read(file), _receipt(file, state)
    with files.translate_os_errors(file):
        if before.content is not None:
            if before.content != skill_text() and not _is_ours(before.content, receipt):
                return "kept"
            file.unlink()
        _receipt_file(file, state).unlink(missing_ok=True)
    for folder in reversed(receipt.folders if receipt else (str(file.parent),)):
        with suppress(OSError):  # not empty
            Path(folder).rmdir()
    return "absent" if before.content is None else "removed"


def _is_ours(content: bytes, receipt: SkillReceipt | None) -> bool:
    """Return whether a text was written by this or an earlier version, and has not been changed since."""
    return _hash(content) in ({receipt.written} if receipt else _EARLIER_TEXTS)


def _receipt(file: Path, state: Path) -> SkillReceipt | None:
    try:
        receipt = msgspec.json.decode(_receipt_file(file, state).read_bytes(), type=SkillReceipt)
    except (OSError, msgspec.DecodeError):
        return None
    return receipt if receipt.file == str(file) else None


def _receipt_file(file: Path, state: Path) -> Path:
    return state / "installs" / f"skill-{_hash(os.fsencode(file))[:16]}.json"


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
