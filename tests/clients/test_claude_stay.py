"""How agents stay, in the client's settings: written, changed, and taken out to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clients.generated_settings import settings_texts
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.clients import InstallRequest, Launcher
from fairlead.clients._json_text import JsonTextError, parse
from fairlead.clients._settings_file import SettingsError
from fairlead.clients.claude.settings._entries import add_hooks, find_hooks, remove_hooks
from fairlead.clients.claude.settings._ownership import is_wake
from fairlead.clients.claude.settings._rules import check
from fairlead.clients.claude.settings._stay import BLOCK_CAP, STAY, STAYS, add_stay, differences, read_stay, remove_stay

LAUNCHER = Launcher("/opt/env/bin/fairlead-hook", "/opt/env/bin/python")
WAKES: list[dict[str, Any]] = [
    {
        "type": "command",
        "command": "/opt/env/bin/fairlead-hook",
        "args": [event, "--wake", "--python", "/opt/env/bin/python"],
        "timeout": 2_147_483,
        "asyncRewake": True,
    }
    for event in ("SessionStart", "UserPromptSubmit", "Stop")
]


def installed(text: str, stay: str | None, original: str | None = None) -> str:
    hooks = add_hooks(text, InstallRequest(LAUNCHER, (2, 1, 325))).text
    return add_stay(hooks, LAUNCHER, stay, original)[0]


def wakes(text: str) -> list[dict[str, Any]]:
    return [hook.value for hook in find_hooks(parse(text)) if is_wake(hook.value)]


def test_always_lifts_the_clients_cap() -> None:
    text = installed("{}\n", "always")

    assert json.loads(text)["env"] == {STAY: "always", BLOCK_CAP: "0"}
    assert wakes(text) == []


def test_wake_adds_a_hook_that_the_client_does_not_wait_for() -> None:
    text = installed("{}\n", "wake")

    assert json.loads(text)["env"] == {STAY: "wake"}
    assert wakes(text) == WAKES
    assert [entry["hooks"][0]["args"][:2] for entry in json.loads(text)["hooks"]["Stop"]] == [
        ["Stop", "--python"],
        ["Stop", "--wake"],
    ]


def test_no_leaves_nothing_behind() -> None:
    bare = installed("{}\n", None)

    for stay in ("always", "wake"):
        assert add_stay(installed("{}\n", stay), LAUNCHER, "no")[0] == bare
    assert add_stay(bare, LAUNCHER, "no") == (bare, "")


def test_an_install_without_the_option_keeps_it_and_repairs_it() -> None:
    text = installed("{}\n", "wake")
    document = json.loads(text)
    del document["hooks"]["Stop"][1]
    broken = json.dumps(document)

    assert list(differences(parse(broken))) == ["Stop: the hook that wakes agents is missing"]
    assert add_stay(text, LAUNCHER, None) == (text, "")
    assert wakes(add_stay(broken, LAUNCHER, None)[0]) == WAKES


def test_the_hook_is_brought_up_to_date_with_the_others() -> None:
    text = installed("{}\n", "wake")
    moved = Launcher("/new/fairlead-hook", "/new/python")

    after = add_hooks(text, InstallRequest(moved, (2, 1, 325)))

    assert wakes(after.text) == [
        {**hook, "command": "/new/fairlead-hook", "args": [hook["args"][0], "--wake", "--python", "/new/python"]}
        for hook in WAKES
    ]
    assert "Stop" in after.updated


def test_a_cap_of_the_users_own_is_restored() -> None:
    mine = '{\n  "env": {"A": "b", "' + BLOCK_CAP + '": "2\\u0030"}\n}\n'
    always = installed(mine, "always", mine)
    edited = always.replace('"A": "b"', '"A": "c"')

    assert json.loads(always)["env"] == {"A": "b", BLOCK_CAP: "0", STAY: "always"}
    back = remove_stay(remove_hooks(edited, mine).text, mine)[0]
    assert back == mine.replace('"A": "b"', '"A": "c"')
    assert json.loads(add_stay(always, LAUNCHER, "wake", mine)[0])["env"] == {"A": "b", BLOCK_CAP: "20", STAY: "wake"}


def test_what_is_missing_is_reported() -> None:
    always = installed("{}\n", "always").replace('"0"', '"8"')
    stray = installed("{}\n", "wake").replace('"FAIRLEAD_STAY": "wake"', '"A": "b"')

    assert list(differences(parse(always))) == [
        f'env.{BLOCK_CAP} is not "0", so an agent that is to stay always stops after 8 times'
    ]
    assert list(differences(parse(stray))) == [
        "SessionStart, Stop, UserPromptSubmit: there is a hook that wakes agents, but env.FAIRLEAD_STAY is not wake"
    ]


@pytest.mark.parametrize(
    ("env", "kind"), [('["a"]', SettingsError), ('"x"', SettingsError), ('{"A": "1", "A": "2"}', JsonTextError)]
)
def test_variables_that_cannot_be_changed_safely_are_refused(env: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        add_stay(f'{{"env": {env}}}', LAUNCHER, "always")


@settings(max_examples=60, deadline=None)
@given(settings_texts(rivals=True), st.lists(st.sampled_from(STAYS), min_size=1, max_size=3))
def test_the_last_of_several_installs_counts_and_a_repetition_changes_nothing(text: str, choices: list[str]) -> None:
    now = text
    for choice in choices:
        now = installed(now, choice, text)
    root = parse(now)
    check(now, root)

    assert read_stay(root) == ("" if choices[-1] == "no" else choices[-1])
    assert list(differences(root)) == []
    assert installed(now, choices[-1], text) == now
    assert installed(now, None, text) == now


@settings(max_examples=60, deadline=None)
@given(settings_texts(), st.sampled_from(STAYS))
def test_taking_it_out_gives_back_the_variables(text: str, stay: str) -> None:
    after = remove_stay(remove_hooks(installed(text, stay, text), text).text, text)[0]

    document = json.loads(text.removeprefix("\ufeff")) if text.strip("\ufeff \r\n") else {}
    left = json.loads(after.removeprefix("\ufeff"))
    assert left.get("env", "none") == document.get("env", "none")


# -- how long the hook of a question may wait --------------------------------------------------------------


def question_timeout(text: str) -> int:
    (hook,) = (hook.value for hook in find_hooks(parse(text)) if hook.event == "PermissionRequest")
    timeout: int = hook["timeout"]
    return timeout


def answering(text: str, answer: bool | None) -> str:  # the value of an option
    return add_hooks(text, InstallRequest(LAUNCHER, (2, 1, 325), answer=answer)).text


def test_a_question_may_be_answered_elsewhere_for_an_hour_if_that_is_asked_for() -> None:
    bare = answering("{}\n", None)
    asked = answering(bare, answer=True)
    assert [question_timeout(text) for text in (bare, asked)] == [60, 3600]
    assert answering(asked, None) == asked, "a later install leaves it"
    assert answering("{}\n", answer=True) == asked
    assert answering(asked, answer=False) == bare
    others = [hook.value for hook in find_hooks(parse(asked)) if hook.event != "PermissionRequest"]
    assert others == [hook.value for hook in find_hooks(parse(bare)) if hook.event != "PermissionRequest"]


def test_removing_the_hooks_removes_it() -> None:
    assert remove_hooks(answering("{}\n", answer=True)).text == "{}\n"
