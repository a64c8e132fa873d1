"""The section `attention`: how the user is notified. Only the user-wide file counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each

from fairlead import pre_tool_use
from fairlead.policy import Guards, PolicyError, load_user_wide, read_layer
from fairlead.policy._time_spans import is_within_hours, parse_span
from fairlead.policy.config._reader import read_hints, read_policy
from fairlead.policy.config._types import Attention

if TYPE_CHECKING:
    from pathlib import Path

FILE = "config.yaml"

FULL = """\
attention:
  desktop: false
  channels: ["ntfy://ntfy.sh/${FAIRLEAD_TOPIC}", "${FAIRLEAD_URL}"]
  quietHours: [22:00-07:00, 12:30 - 13:00]
  grace: 0
  whenInFront: true
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("FAIRLEAD_HOME", str(folder))
    return folder


def test_every_key_is_read() -> None:
    assert read_policy(FULL, FILE).attention == Attention(
        desktop=False,
        channels=["ntfy://ntfy.sh/${FAIRLEAD_TOPIC}", "${FAIRLEAD_URL}"],
        quiet_hours=["22:00-07:00", "12:30 - 13:00"],
        grace=0,
        when_in_front=True,
    )
    assert read_hints(FULL, FILE) == ()


def test_one_span_needs_no_list() -> None:
    assert read_policy("attention: {quietHours: 22:00-07:00}", FILE).attention.quiet_hours == "22:00-07:00"


def test_the_default_is_a_desktop_notification_after_two_seconds() -> None:
    expected = Attention(desktop=True, channels=[], quiet_hours=[], grace=2, when_in_front=False)
    assert read_policy("stop:\n", FILE).attention == expected


@for_each(
    ("section", "expected"),
    [
        (
            "quietHours: 10pm-7am",
            "1:26: `attention.quietHours` is '10pm-7am', which is not a time span; write it as `22:00-07:00`",
        ),
        (
            "quietHours: [01:00-02:00, 24:00-07:00]",
            "1:40: `attention.quietHours[1]` is '24:00-07:00', which is not a time span; write it as `22:00-07:00`",
        ),
        (
            "quietHours: 22:00-22:00",
            (
                "1:26: `attention.quietHours` is '22:00-22:00', which ends when it starts; "
                "write `00:00-24:00` for the whole day"
            ),
        ),
        (
            "quietHours: 22",
            (
                "1:26: the number 22 for `attention.quietHours`; expected text that is not empty, or a list, "
                'each entry text that is not empty, so write "22" in quotes'
            ),
        ),
        (
            "grace: 5s",
            '1:21: the text "5s" for `attention.grace`; expected a whole number of seconds from 0 to 3600, so write 5',
        ),
        ("grace: -1", "1:21: the number -1 for `attention.grace`; expected a whole number of seconds from 0 to 3600"),
        ("desktop: off", '1:23: the text "off" for `attention.desktop`; expected true or false, so write false'),
        ("whenFront: true", "1:14: unknown key `whenFront` in `attention`; did you mean `whenInFront`?"),
        (
            "channels: [ntfy.sh]",
            (
                "1:25: `attention.channels[0]` is not a URL; write it with its scheme, such as "
                "`ntfy://ntfy.sh/topic`, or as a variable, `${NAME}`"
            ),
        ),
    ],
)
def test_a_mistake_is_reported_with_its_position(section: str, expected: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_policy(f"attention: {{ {section} }}", FILE)
    assert str(caught.value) == f"{FILE}:{expected}"


@pytest.mark.parametrize("file", [".fairlead.yaml", "/srv/shop/.conclaude.yml"])
def test_in_a_projects_file_a_hint_says_that_it_has_no_effect(file: str) -> None:
    (hint,) = read_hints("attention:\n  channels: [json://127.0.0.1/theirs]\n", file)
    assert str(hint) == (
        f"{file}:2:3: `attention` has no effect in a project's policy; write it in the user-wide policy, config.yaml"
    )


def test_a_hint_names_a_variable_that_the_daemon_does_not_have() -> None:
    (hint,) = read_hints("attention:\n  channels: ['ntfy://${FAIRLEAD_HOST}/${TOPIC}']\n", FILE)
    assert hint.message == (
        "`attention` uses `${TOPIC}`, which a daemon that an event starts does not have; "
        "rename it to `${FAIRLEAD_TOPIC}`"
    )


# -- the hours -----------------------------------------------------------------------------------------


def at(time: str) -> int:
    hour, _, minute = time.partition(":")
    return int(hour) * 60 + int(minute)


@for_each(
    ("spans", "inside", "outside"),
    [
        (["22:00-07:00"], ["22:00", "23:59", "0:00", "6:59"], ["7:00", "12:00", "21:59"]),
        (["9:00-17:30"], ["9:00", "17:29"], ["8:59", "17:30", "0:00"]),
        (["12:00-13:00", " 20:00 - 00:00 "], ["12:30", "20:00", "23:59"], ["13:00", "19:59", "0:00"]),
        (["00:00-24:00"], ["0:00", "23:59"], []),
        (["22:00-24:00"], ["22:00", "23:59"], ["0:00", "21:59"]),
        ([], [], ["0:00", "12:00"]),
    ],
)
def test_a_minute_is_inside_or_outside_of_the_spans(spans: list[str], inside: list[str], outside: list[str]) -> None:
    assert [time for time in inside if not is_within_hours(spans, at(time))] == []
    assert [time for time in outside if is_within_hours(spans, at(time))] == []


@for_each("text", ["", "22:00", "22-7", "22:00-07:60", "25:00-01:00", "23:00-24:01", "-1:00-02:00", "x"])
def test_what_is_not_a_span_is_none(text: str) -> None:
    assert parse_span(text) is None


# -- the file ------------------------------------------------------------------------------------------


def test_only_the_user_wide_file_counts(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".fairlead.yaml").write_text("attention: {desktop: false}\n")
    monkeypatch.chdir(tmp_path)
    assert load_user_wide().attention == Attention()

    (home / FILE).write_text("attention: {grace: 7}\n")
    assert load_user_wide().attention == Attention(grace=7)


def test_of_a_broken_file_the_last_good_version_is_used(home: Path) -> None:
    (home / FILE).write_text("attention: {grace: 7}\n")
    load_user_wide()
    (home / FILE).write_text("attention: {grace: often}\n")
    assert load_user_wide().attention == Attention(grace=7)


def test_a_file_that_was_never_valid_is_an_error(home: Path) -> None:
    (home / FILE).write_text("attention: [")
    with pytest.raises(PolicyError, match=r"config\.yaml:2:1: not valid YAML"):
        load_user_wide()


@pytest.mark.parametrize(("text", "asks"), [("attention: {grace: 7}\n", False), ("stop:\n", True)])
def test_a_file_with_this_section_alone_does_not_restrict_agents(tmp_path: Path, text: str, *, asks: bool) -> None:
    file = tmp_path / FILE
    file.write_text(text)
    guards = Guards([read_layer(str(file))])
    output = guards.check(pre_tool_use("s1", "Bash", {"command": "$PROGRAM x"})).output
    assert (output.permission == "ask") is asks
