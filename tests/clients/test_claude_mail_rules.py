"""The permission rules of the mail commands, in the client's settings: added, and taken out to the byte."""

from __future__ import annotations

import json

import pytest
from clients.generated_settings import settings_texts
from hypothesis import given, settings

from fairlead.cli.commands import COMMANDS
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude.settings._mail_rules import RULES, add_rules, has_rules, remove_rules


def test_every_rule_is_for_one_mail_command() -> None:
    names = {entry.name for entry in COMMANDS}

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
def test_any_settings_are_restored(text: str) -> None:
    after, _ = add_rules(text)

    assert has_rules(after)
    assert remove_rules(after, text)[0] == text
