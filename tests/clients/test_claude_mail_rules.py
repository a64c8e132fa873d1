"""The permission rules of the mail commands, in the client's settings: added, and taken out to the byte."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from clients.generated_settings import settings_texts
from hypothesis import given, settings

from fairlead.cli.commands import SECTIONS
from fairlead.clients import InstallRequest, Launcher
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude import settings as installer
from fairlead.clients.claude.settings._mail_rules import RULES, add_rules, has_rules, remove_rules

if TYPE_CHECKING:
    from pathlib import Path


def test_every_rule_is_for_one_mail_command() -> None:
    names = {entry.name for section in SECTIONS for entry in section.entries}

    assert all(rule.startswith("Bash(fairlead ") and rule.endswith(":*)") for rule in RULES)
    assert {rule[len("Bash(fairlead ") : -len(":*)")] for rule in RULES} <= names
    assert not any(word in rule for rule in RULES for word in ("daemon", "hooks", "heartbeat", "trust", "init"))


@pytest.mark.parametrize(
    "before",
    [
        "{}\n",
        '{"permissions": null}',
        '{"permissions": {}}',
        '{\n  "permissions": {\n    "deny": ["Bash(rm:*)"]\n  }\n}\n',
        '{"permissions": {"allow": []}, "model": "x"}',
        '{"permissions": {"allow": null}}',
        '{\n\t"permissions": {"allow": ["Bash(make:*)", "Bash(fairlead send:*)"]}\n}',
    ],
)
def test_they_are_added_once_and_taken_out_to_the_byte(before: str) -> None:
    after, added = add_rules(before)

    assert has_rules(after)
    assert set(RULES) <= set(json.loads(after)["permissions"]["allow"])
    assert add_rules(after) == (after, ())
    assert remove_rules(after, before) == (before, added)


def test_a_rule_of_the_users_own_stays() -> None:
    before = '{"permissions": {"allow": ["Bash(fairlead send:*)"]}}'

    after, added = add_rules(before)

    assert "Bash(fairlead send:*)" not in added
    assert remove_rules(after, before)[0] == before


def test_what_the_user_added_since_stays() -> None:
    after, _ = add_rules("{}\n")
    edited = after.replace('"Bash(fairlead agents:*)"', '"Bash(ls:*)", "Bash(fairlead agents:*)"')

    left = json.loads(remove_rules(edited, "{}\n")[0])

    assert left == {"permissions": {"allow": ["Bash(ls:*)"]}}


@pytest.mark.parametrize("section", ['["a"]', '{"allow": {"a": 1}}', '{"allow": "all"}'])
def test_a_section_that_the_client_would_not_read_is_refused(section: str) -> None:
    with pytest.raises(SettingsError, match="permissions"):
        add_rules(f'{{"permissions": {section}}}')


@settings(max_examples=60, deadline=None)
@given(settings_texts())
def test_no_settings_are_changed_beside_them(text: str) -> None:
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    after, _ = add_rules(text)

    assert has_rules(after)
    assert json.loads(remove_rules(after, text)[0].lstrip("\ufeff")) == json.loads(text.lstrip("\ufeff"))


@pytest.mark.parametrize("before", ["", "{ }\n", '{"permissions": {"allow": [ ]}}', None])
def test_an_uninstall_restores_the_same_bytes(tmp_path: Path, before: str | None) -> None:
    file, state = tmp_path / "settings.json", tmp_path / "state"
    (state / "installs").mkdir(parents=True)
    if before is not None:
        file.write_text(before)
    request = InstallRequest(Launcher("/opt/fairlead-hook", "/opt/python"), (2, 1, 325), stay="wake", allows_mail=True)

    installer.carry_out(installer.plan_install(file, request, state), state)
    assert has_rules(file.read_text())
    again = installer.plan_install(file, InstallRequest(request.launcher, (2, 1, 325)), state)
    assert not again.changes
    installer.carry_out(installer.plan_uninstall(file, state), state)

    assert (file.read_text() if file.exists() else None) == before


def test_they_are_taken_out_although_the_user_has_deleted_the_hooks(tmp_path: Path) -> None:
    file, state = tmp_path / "settings.json", tmp_path / "state"
    (state / "installs").mkdir(parents=True)
    file.write_text('{"permissions": {"allow": ["Bash(make:*)"]}}')
    request = InstallRequest(Launcher("/opt/fairlead-hook", "/opt/python"), (2, 1, 325), stay="wake", allows_mail=True)
    installer.carry_out(installer.plan_install(file, request, state), state)
    left = json.loads(file.read_text())
    file.write_text(json.dumps({"permissions": left["permissions"]}))

    plan = installer.plan_uninstall(file, state)
    installer.carry_out(plan, state)

    assert plan.result.had_ours
    assert json.loads(file.read_text()) == {"permissions": {"allow": ["Bash(make:*)"]}}
