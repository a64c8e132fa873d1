"""The section `team` of the user-wide policy: what is copied for the history of a team, and when mail is given up."""

from __future__ import annotations

import pytest

from fairlead.policy import PolicyError, Team, read_policy


def test_by_default_nothing_is_copied() -> None:
    assert read_policy("", "config.yaml").team == Team(events="off", keep_days=30, give_up_days=14)


def test_off_needs_no_quotes() -> None:
    given = "team: {events: off, keepDays: 7, giveUpDays: 3}"
    assert read_policy(given, "config.yaml").team == Team(events="off", keep_days=7, give_up_days=3)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("events: some", 'the text "some" for `team.events`; expected `all`, `blocked` or `off`'),
        ("giveUpDays: 0", "the number 0 for `team.giveUpDays`; expected a whole number from 1 to 365"),
        ("keepDays: soon", 'the text "soon" for `team.keepDays`; expected a whole number from 1 to 3650'),
        ("event: all", "unknown key `event` in `team`; did you mean `events`"),
    ],
)
def test_mistakes_are_named(given: str, message: str) -> None:
    with pytest.raises(PolicyError, match=message):
        read_policy(f"team: {{{given}}}", "config.yaml")
