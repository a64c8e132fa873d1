"""The skill that teaches an agent to use the mail: put beside the settings, and taken away if it is still ours.

A receipt in our own folder has the hash of what was written, so that a newer version knows an older one's text.
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

Done = Literal["written", "unchanged", "kept", "removed", "absent"]
"""kept: somebody has changed it, so that it is not ours any more."""


class Receipt(msgspec.Struct, frozen=True):
    """What uninstall needs to know."""

    file: str
    written: str
    """The SHA-256 of what we wrote."""
    folders: tuple[str, ...] = ()
    """The folders that we made for it, outermost first."""


def skill_file(settings: Path) -> Path:
    """Say where the client looks for the skill, beside that file of settings."""
    return settings.parent / "skills/fairlead-mail/SKILL.md"


def skill_text() -> bytes:
    """Give what we teach."""
    return resources("fairlead.clients").joinpath("skill.md").read_bytes()


def put_skill(file: Path, state: Path) -> Done:
    """Write it, in place of an earlier one of ours."""
    seen, receipt = files.look(file), _receipt(file, state)
    text = skill_text()
    if seen.content == text:
        return "unchanged"
    if seen.content is not None and (receipt is None or _hash(seen.content) != receipt.written):
        return "kept"
    folders = [folder for folder in reversed(file.parents) if not folder.exists()]
    made = receipt.folders if receipt else tuple(map(str, folders))
    with files.told(file):
        files.put_own(_receipt_file(file, state), msgspec.json.encode(Receipt(str(file), _hash(text), made)))
        file.parent.mkdir(parents=True, exist_ok=True)
        files.put(seen, text)
    return "written"


def take_skill_away(file: Path, state: Path) -> Done:
    """Remove it, with the folders that came with it, unless somebody has changed it."""
    seen, receipt = files.look(file), _receipt(file, state)
    with files.told(file):
        if seen.content is not None:
            if seen.content != skill_text() and (receipt is None or _hash(seen.content) != receipt.written):
                return "kept"
            file.unlink()
        _receipt_file(file, state).unlink(missing_ok=True)
    for folder in reversed(receipt.folders if receipt else (str(file.parent),)):
        with suppress(OSError):  # somebody has put something into it
            Path(folder).rmdir()
    return "absent" if seen.content is None else "removed"


def _receipt(file: Path, state: Path) -> Receipt | None:
    try:
        receipt = msgspec.json.decode(_receipt_file(file, state).read_bytes(), type=Receipt)
    except (OSError, msgspec.DecodeError):
        return None
    return receipt if receipt.file == str(file) else None


def _receipt_file(file: Path, state: Path) -> Path:
    return state / "installs" / f"skill-{_hash(os.fsencode(file))[:16]}.json"


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()
