"""Settings that `fairlead hooks install` of version 0.1.0 wrote are recognized, updated and removed."""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest
from compat.stage import FAIRLEAD, LAUNCHER, SAMPLES

if TYPE_CHECKING:
    from pathlib import Path

    from compat.stage import Home

CASES = ("plain", "own", "wake", "always")
"""A new file; a file of the user's; `--stay wake --status-line --skill`; `--persistent --replace conclaude`."""
VERSION = ("--client-version", "2.1.325")


def sample(case: str, name: str) -> bytes | None:
    file = SAMPLES / "settings" / case / name
    return file.read_bytes() if file.exists() else None


def settings_of(home: Home) -> Path:
    return home.folder / ".claude/settings.json"


def skill_of(home: Home) -> Path:
    return home.folder / ".claude/skills/fairlead-mail/SKILL.md"


def put(home: Home, case: str, *, receipts: bool = True) -> None:
    """Put the settings of a case into a home, with the receipts that uninstall reads."""
    installed = [(settings_of(home), "settings.json", "receipt.json", "claude")]
    if sample(case, "SKILL.md"):
        installed.append((skill_of(home), "SKILL.md", "skill-receipt.json", "skill"))
    for file, name, receipt, kind in installed:
        content, kept = sample(case, name), sample(case, receipt)
        assert content is not None
        assert kept is not None
        assert json.loads(kept)["written"] == sha256(content).hexdigest()
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if receipts:
            place = home.state / f"installs/{kind}-{sha256(str(file).encode()).hexdigest()[:16]}.json"
            place.parent.mkdir(mode=0o700, exist_ok=True)
            place.write_bytes(kept.replace(b"/home/user", str(home.folder).encode()))


def hooks(home: Home, *words: str) -> str:
    return home.fairlead("hooks", *words, cwd=home.project()).out


def ours(document: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return our hooks by their events."""
    by_event: dict[str, list[dict[str, Any]]] = {}
    for event, entries in document["hooks"].items():
        for entry in entries:
            by_event.setdefault(event, []).extend(h for h in entry["hooks"] if h["command"].endswith("/fairlead-hook"))
    return {event: hooks for event, hooks in by_event.items() if hooks}


@pytest.mark.parametrize("case", CASES)
def test_uninstall_restores_the_original(home: Home, case: str) -> None:
    """With an old receipt, uninstall restores the original byte for byte, or removes the file and its folders."""
    put(home, case)

    hooks(home, "uninstall", "--yes")

    before = sample(case, "before.json")
    assert (settings_of(home).read_bytes() if settings_of(home).exists() else None) == before
    assert settings_of(home).parent.exists() is (before is not None)
    assert not list((home.state / "installs").glob("*.json"))


@pytest.mark.parametrize("case", CASES)
def test_uninstall_after_a_change_removes_only_ours(home: Home, case: str) -> None:
    """From a file that was edited later, uninstall removes our hooks, status line and variables, and nothing else."""
    put(home, case)
    document = json.loads(settings_of(home).read_bytes())
    settings_of(home).write_text(json.dumps({**document, "added": "since"}), encoding="utf-8")

    hooks(home, "uninstall", "--yes")

    left = json.loads(settings_of(home).read_bytes())
    before = json.loads(sample(case, "before.json") or b"{}")
    assert left == {**before, "added": "since"}


@pytest.mark.parametrize("case", CASES)
def test_uninstall_works_without_a_receipt(home: Home, case: str) -> None:
    """Uninstall recognizes each old hook, the status line and the skill without a receipt."""
    put(home, case, receipts=False)

    hooks(home, "uninstall", "--yes")

    left = settings_of(home).read_text(encoding="utf-8") if settings_of(home).exists() else ""
    assert "fairlead" not in left
    assert "FAIRLEAD" not in left
    assert not skill_of(home).exists()


@pytest.mark.parametrize("case", CASES)
def test_install_updates_an_old_install(home: Home, case: str) -> None:
    """Install updates the paths and keeps the old options; uninstall still restores the original."""
    put(home, case)
    old = json.loads(sample(case, "settings.json") or b"{}")

    hooks(home, "install", *VERSION)

    new = json.loads(settings_of(home).read_bytes())
    assert ours(new).keys() == ours(old).keys()
    assert {hook["command"] for hooks in ours(new).values() for hook in hooks} == {str(LAUNCHER)}
    assert new.get("env") == old.get("env")
    assert ("statusLine" in new) is ("statusLine" in old)
    assert "/opt/fairlead" not in json.dumps(new)
    assert "--wake" in json.dumps(new) or case != "wake"

    hooks(home, "uninstall", "--yes")
    assert (settings_of(home).read_bytes() if settings_of(home).exists() else None) == sample(case, "before.json")


@pytest.mark.parametrize(
    ("case", "stay", "line"),
    [("plain", "", "none"), ("own", "", "chained"), ("always", "always", "chained")],
)
def test_an_upgrade_in_place_has_nothing_to_do(home: Home, case: str, stay: str, line: str) -> None:
    """If only the package was upgraded, status reports the old install as complete, and install changes nothing."""
    put(home, case)
    text = settings_of(home).read_text(encoding="utf-8")
    for before, after in (("/opt/fairlead/bin/fairlead-hook", LAUNCHER), ("/opt/fairlead/bin/python", sys.executable)):
        text = text.replace(before, str(after))
    settings_of(home).write_text(text, encoding="utf-8")

    (status,) = json.loads(hooks(home, "status", "--scope", "user", "--json", *VERSION))["scopes"]
    assert (status["state"], status["stay"], status["status_line"]) == ("installed", stay, line)
    assert len(status["events"]) == (30 if case == "always" else 29)

    hooks(home, "install", *VERSION)
    assert settings_of(home).read_text(encoding="utf-8") == text


def test_an_old_install_that_wakes_agents_is_completed(home: Home) -> None:
    """It woke agents at the end of a turn only. Status says so, and install adds the hooks that listen before it."""
    put(home, "wake")
    text = settings_of(home).read_text(encoding="utf-8").replace("/opt/fairlead/bin/fairlead-hook", str(LAUNCHER))
    settings_of(home).write_text(text.replace("/opt/fairlead/bin/python", sys.executable), encoding="utf-8")
    status = ("status", "--scope", "user", "--json", *VERSION)

    outdated = home.run([str(FAIRLEAD), "hooks", *status], cwd=home.project())
    (before,) = json.loads(outdated.out)["scopes"]
    hooks(home, "install", *VERSION)
    (after,) = json.loads(hooks(home, *status))["scopes"]

    assert (before["state"], before["stay"]) == ("outdated", "wake")
    assert (after["state"], after["stay"]) == ("installed", "wake")
    assert settings_of(home).read_text(encoding="utf-8").count("--wake") == 3


def test_a_skill_that_was_edited_is_kept(home: Home) -> None:
    """With an old receipt, uninstall keeps a skill that the user has changed."""
    put(home, "wake")
    skill_of(home).write_text("mine\n", encoding="utf-8")

    output = hooks(home, "uninstall", "--yes")

    assert skill_of(home).read_text(encoding="utf-8") == "mine\n"
    assert str(skill_of(home)) in output
