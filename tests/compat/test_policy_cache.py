"""The last good versions of policies that version 0.1.0 kept are used, or ignored without an error."""

from __future__ import annotations

import json
import os
import sys
from binascii import crc32
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from compat.stage import FAIRLEAD, LAUNCHER, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from compat.stage import Done, Home

GOOD = 'preToolUse: {uneditableFiles: ["*.toml"]}\n'
BROKEN = "preToolUse: {uneditableFile: [\n"


def entry(name: str, file: Path) -> list[Any]:
    """Return the entry that version 0.1.0 would keep of a file under this Python."""
    kept: list[Any] = json.loads((SAMPLES / f"policies/{name}.json").read_bytes())
    version, _, stamp, document, tried = kept
    version = version.replace("(3, 11)", str(sys.version_info[:2]))
    return [version, str(file.resolve()), stamp, document, tried]


def keep(home: Home, file: Path, data: bytes) -> Path:
    """Write an entry to the file that version 0.1.0 used."""
    path = os.fsencode(file.resolve())
    place = home.state / f"policies/{crc32(path):08x}{crc32(path[::-1], 1):08x}.msgpack"
    place.parent.mkdir(mode=0o700, exist_ok=True)
    place.write_bytes(data)
    place.chmod(0o600)
    return place


def edit(home: Home, name: str, program: Path = FAIRLEAD) -> Done:
    """Run the hook before an edit of a file of the project."""
    folder = home.project()
    (folder / name).touch()
    fields = {"session_id": "s1", "cwd": str(folder), "hook_event_name": "PreToolUse", "tool_name": "Edit"}
    payload = {**fields, "tool_input": {"file_path": str(folder / name), "old_string": "a", "new_string": "b"}}
    return home.run([str(program), "PreToolUse"], json.dumps(payload).encode(), folder)


def decision(done: Done) -> str:
    document = json.loads(done.out or "{}")
    return str(document.get("hookSpecificOutput", {}).get("permissionDecision", "none"))


@pytest.mark.parametrize("text", [BROKEN, None], ids=["broken", "gone"])
def test_a_policy_falls_back_to_an_old_entry(home: Home, text: str | None) -> None:
    """The rules of the old entry apply, without a daemon and with one, and the user is warned."""
    file = home.project() / ".fairlead.yaml"
    keep(home, file, msgspec.msgpack.encode(entry("project", file)))
    if text is not None:
        file.write_text(text, encoding="utf-8")

    with home.daemon():
        for program in (FAIRLEAD, LAUNCHER):
            blocked, passed = edit(home, "uv.lock", program), edit(home, "main.py", program)
            assert (decision(blocked), blocked.code) == ("deny", 2)
            assert (decision(passed), passed.code) == ("none", 0)
            assert str(file) in passed.json["systemMessage"]


def test_the_user_wide_policy_falls_back_to_an_old_entry(home: Home) -> None:
    """A broken `config.yaml` with an old entry blocks nothing."""
    file = home.state / "config.yaml"
    keep(home, file, msgspec.msgpack.encode(entry("user-wide", file)))
    file.write_text("attention: [\n", encoding="utf-8")

    assert edit(home, "main.py").code == 0


def test_without_an_entry_a_broken_policy_blocks(home: Home) -> None:
    """Without an entry a broken policy blocks every tool call, so the tests above depend on the entry."""
    (home.project() / ".fairlead.yaml").write_text(BROKEN, encoding="utf-8")
    assert edit(home, "main.py").code == 2


@pytest.mark.parametrize("kind", ["another version", "no entry", "of another file", "cut off", "empty"])
def test_an_entry_that_is_not_understood_is_ignored(home: Home, kind: str) -> None:
    """An entry that cannot be used is ignored: the policy file is read, and a new entry replaces the old one."""
    file = home.project() / ".fairlead.yaml"
    file.write_text(GOOD, encoding="utf-8")
    good = entry("project", file)
    whole = msgspec.msgpack.encode(good)
    data = {
        "another version": msgspec.msgpack.encode(["0.0.1 (3, 8)", *good[1:], "more"]),
        "no entry": msgspec.msgpack.encode({"what": "else"}),
        "of another file": msgspec.msgpack.encode([good[0], "/elsewhere/.fairlead.yaml", *good[2:]]),
        "cut off": whole[: len(whole) // 2],
        "empty": b"",
    }
    place = keep(home, file, data[kind])

    assert edit(home, "uv.lock") == (0, "", "")
    assert edit(home, "pyproject.toml").code == 2
    assert place.read_bytes() != data[kind]
