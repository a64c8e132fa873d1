"""Our hooks in the text of the client's settings: only ours are added, updated and removed."""

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
from fairlead.clients.claude.settings._entries import (
    add_hooks,
    find_hooks,
    find_replaceable_programs,
    hook_for,
    parse_settings,
    remove_hooks,
)
from fairlead.clients.claude.settings._events import (
    EVENTS,
    OldClientError,
    VersionError,
    events_for,
    is_known,
    parse_version,
)
from fairlead.clients.claude.settings._inspect import installed_hook
from fairlead.clients.claude.settings._ownership import REPLACEABLE, is_ours
from fairlead.clients.claude.settings._rules import check
from fairlead.events import HookEvent

LAUNCHER = Launcher("/opt/env/bin/fairlead-hook", "/opt/env/bin/python")
NEWEST = InstallRequest(LAUNCHER, (2, 1, 325))
REPLACING = InstallRequest(LAUNCHER, (2, 1, 325), replace=frozenset(REPLACEABLE))


def value(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff")) if text.strip("\ufeff \r\n") else {}


def commands(text: str, event: str) -> list[str]:
    """The commands of an event, in order."""
    return [hook["command"] for entry in value(text)["hooks"].get(event, []) for hook in entry["hooks"]]


def dumped(hooks: Any, **more: Any) -> str:
    return json.dumps({"hooks": hooks, **more}, indent=2) + "\n"


def command(line: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": line, **more}


# -- which events --------------------------------------------------------------------------------------


def test_every_event_is_decided_upon() -> None:
    assert list(EVENTS) == [event.value for event in HookEvent]


def test_an_event_is_asked_for_only_of_a_client_that_has_it() -> None:
    newer = {"PreModelSwitch", "PostModelSwitch", "DirectoryAdded"}
    left_out = {"MessageDisplay", "FileChanged", "WorktreeCreate", "WorktreeRemove"}

    assert set(events_for((2, 1, 325))) == set(EVENTS) - left_out
    assert set(events_for((3, 0, 0))) == set(EVENTS) - left_out
    assert set(events_for((2, 1, 197))) == set(EVENTS) - left_out - newer
    assert set(events_for((2, 1, 219))) == set(EVENTS) - left_out - newer | {"DirectoryAdded"}
    assert events_for(None) == events_for((2, 1, 197)) == events_for((2, 1, 150))
    assert "WorktreeCreate" in events_for(None, frozenset({"WorktreeCreate"}))


def test_a_client_that_would_start_the_launcher_without_its_event_is_refused() -> None:
    message = "Claude Code 2.1.138 cannot start hooks without a shell; update it to 2.1.139 or newer"
    with pytest.raises(OldClientError, match=message):
        events_for((2, 1, 138))


def test_a_version_is_read_as_the_client_says_it() -> None:
    assert parse_version("2.1.325 (Claude Code)\n") == (2, 1, 325)
    assert parse_version("v10.0.1-beta") == (10, 0, 1)
    with pytest.raises(
        VersionError, match=r"'two' is not a version of Claude Code; expected three numbers, as 2\.1\.325"
    ):
        parse_version("two")


def test_only_the_gate_on_tools_blocks_when_fairlead_is_broken() -> None:
    assert hook_for("PreToolUse", LAUNCHER) == {
        "type": "command",
        "command": "/opt/env/bin/fairlead-hook",
        "args": ["PreToolUse", "--python", "/opt/env/bin/python"],
        "timeout": 60,
        "onFailure": "block",
    }
    assert [name for name in EVENTS if "onFailure" in hook_for(name, LAUNCHER)] == ["PreToolUse"]
    assert all(0 < setting.timeout <= 3600 for setting in EVENTS.values())


# -- any settings --------------------------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(settings_texts(rivals=True))
def test_every_foreign_key_survives_an_install(text: str) -> None:
    after = add_hooks(text, NEWEST).text

    before, left = value(text), value(remove_hooks(after, text).text)
    if before.get("hooks", {}) is None:
        before["hooks"] = {}  # a section that says nothing
    assert left == before
    assert list(left) == list(before)


@settings(max_examples=100, deadline=None)
@given(settings_texts())
def test_without_an_empty_section_taking_out_gives_back_the_text(text: str) -> None:
    document = value(text)
    hooks = document.get("hooks")
    if document and hooks not in ({}, None) and all(hooks.values()):
        assert remove_hooks(add_hooks(text, NEWEST).text, text).text == text
    elif document and "hooks" not in document:
        assert remove_hooks(add_hooks(text, NEWEST).text).text == text


@settings(max_examples=100, deadline=None)
@given(settings_texts(rivals=True), st.sampled_from([NEWEST, REPLACING]))
def test_the_result_is_what_the_client_accepts_and_a_second_install_changes_nothing(
    text: str, asked: InstallRequest
) -> None:
    once = add_hooks(text, asked)
    root = parse(once.text)
    check(once.text, root)

    assert {hook.event for hook in find_hooks(root)} == set(events_for((2, 1, 325)))
    again = add_hooks(once.text, asked)
    assert (again.text, again.added, again.updated, again.dropped, again.taken) == (once.text, (), (), (), ())


@settings(max_examples=100, deadline=None)
@given(settings_texts(rivals=True))
def test_what_was_replaced_is_put_back(text: str) -> None:
    done = add_hooks(text, REPLACING)
    assert find_replaceable_programs(parse(done.text)) == []

    back = remove_hooks(done.text, text, done.taken).text
    assert hooks_of(back) == hooks_of(text)
    assert {key: item for key, item in value(back).items() if key != "hooks"} == {
        key: item for key, item in value(text).items() if key != "hooks"
    }


def hooks_of(text: str) -> list[str]:
    """Every hook with its event and what its entry says of it; in which entry it stands does not matter."""
    hooks = value(text).get("hooks") or {}
    return sorted(
        json.dumps([event, {key: item for key, item in entry.items() if key != "hooks"}, hook], sort_keys=True)
        for event, entries in hooks.items()
        for entry in entries
        for hook in entry["hooks"]
    )


# -- ours and theirs -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hook",
    [
        command("/a/b/fairlead-hook", args=["Stop", "--python", "/a/b/python"]),
        command("fairlead-hook", args=["pre_tool_use"]),
        command("/a/fairlead-hook", args=["EventOfTomorrow", "--python", "/a/python"]),
        command("/a/b/fairlead-hook Stop"),
        command("fairlead Stop"),
        command("'/a b/fairlead' Stop --client claude"),
        command("/a/fairlead", args=["Stop"]),
    ],
)
def test_this_is_ours(hook: dict[str, Any]) -> None:
    assert is_ours(hook)


@pytest.mark.parametrize(
    "hook",
    [
        command("/a/fairlead", args=["Stop", "--hooks", "/my/guards.py"]),
        command("fairlead Stop --rules mine.json"),
        command("echo fairlead-hook Stop"),
        command("fairlead-hook"),
        command("fairlead-hook --version"),
        command("fairlead-hook.sh Stop"),
        command("/x/fairlead-hook/run Stop"),
        command("fairlead explain"),
        command("fairlead 'Stop"),
        command("fairlead Stop | tee log"),
        command("conclaude Hooks Stop"),
        {"type": "http", "url": "https://x/fairlead-hook"},
        {"type": "prompt", "prompt": "fairlead Stop"},
        {},
    ],
)
def test_this_is_not(hook: dict[str, Any]) -> None:
    assert not is_ours(hook)


def test_rivals_are_known_by_their_program_and_not_by_a_word_in_the_line() -> None:
    conclaude, substrate = REPLACEABLE["conclaude"], REPLACEABLE["substrate"]
    assert conclaude(command("conclaude Hooks Stop"))
    assert conclaude(command("/opt/conclaude", args=["Stop"]))
    assert substrate(command("~/.claude/hooks/substrate/stop.sh"))
    assert substrate(command("bash /home/me/.claude/hooks/substrate/session_start.sh"))
    assert substrate(command("substrate poll --format hook"))
    for line in ("echo conclaude", "./substrate-lint.sh", "/src/substrate/hooks/mine.sh", "vi /hooks/substrate/a.sh"):
        assert not conclaude(command(line))
        assert not substrate(command(line))


def test_of_a_mixed_entry_only_ours_is_taken_out() -> None:
    mine = command("mine.sh", statusMessage="…", once=True)
    text = dumped({"Stop": [{"matcher": "x", "hooks": [mine, command("fairlead Stop")]}]}, model="opus")
    assert value(remove_hooks(text).text) == value(dumped({"Stop": [{"matcher": "x", "hooks": [mine]}]}, model="opus"))


def test_a_container_goes_only_if_it_held_ours_and_nothing_else() -> None:
    text = dumped({"Stop": [{"hooks": [command("fairlead Stop")]}], "Setup": [], "PreCompact": [{"hooks": []}]})
    assert value(remove_hooks(text).text) == {"hooks": {"Setup": [], "PreCompact": [{"hooks": []}]}}
    assert value(remove_hooks(dumped({"Stop": [{"hooks": [command("fairlead Stop")]}]}, a=1)).text) == {"a": 1}


def test_of_another_program_nothing_is_replaced_unless_asked() -> None:
    text = dumped({"Stop": [{"hooks": [command("conclaude Hooks Stop"), command("mine")]}]})
    assert commands(add_hooks(text, NEWEST).text, "Stop") == ["conclaude Hooks Stop", "mine", LAUNCHER.hook]
    assert find_replaceable_programs(parse(text)) == ["conclaude"]

    done = add_hooks(text, REPLACING)
    assert commands(done.text, "Stop") == ["mine", LAUNCHER.hook]
    edited = done.text.replace('"mine"', '"mine, edited"')
    assert commands(remove_hooks(edited, text, done.taken).text, "Stop") == ["mine, edited", "conclaude Hooks Stop"]


def test_what_is_there_again_is_not_put_back_twice() -> None:
    text = dumped({"Stop": [{"hooks": [command("conclaude Hooks Stop")]}]})
    done = add_hooks(text, REPLACING)
    both = add_hooks(text, NEWEST).text
    assert commands(remove_hooks(both, text, done.taken).text, "Stop") == ["conclaude Hooks Stop"]


# -- bringing up to date -------------------------------------------------------------------------------


def test_an_old_install_is_brought_up_to_date_where_it_stands() -> None:
    old = InstallRequest(Launcher("/old/fairlead-hook", "/old/python"), (2, 1, 197))
    before = add_hooks(dumped({"Stop": [{"hooks": [command("mine")]}]}), old).text
    before = before.replace('"timeout": 3600', '"timeout": 600')

    done = add_hooks(before, NEWEST)

    assert done.added == ("PreModelSwitch", "PostModelSwitch", "DirectoryAdded")
    assert set(done.updated) == set(events_for((2, 1, 197)))
    fresh = add_hooks(dumped({"Stop": [{"hooks": [command("mine")]}]}), NEWEST).text
    assert value(done.text) == value(fresh)
    assert "/old" not in done.text


def test_what_the_user_added_to_our_hook_stays_unless_it_silences_it() -> None:
    own = command(
        "/old/fairlead-hook",
        args=["PreToolUse", "--python", "/old/python", "--hooks", "/my/guards.py"],
        statusMessage="é",
        **{"async": True},
    )
    text = json.dumps({"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [own]}]}}, ensure_ascii=True)
    entry = value(add_hooks(text, NEWEST).text)["hooks"]["PreToolUse"]
    assert entry == [
        {
            "matcher": "Bash",
            "hooks": [
                {
                    "type": "command",
                    "command": LAUNCHER.hook,
                    "args": ["PreToolUse", "--python", LAUNCHER.python, "--hooks", "/my/guards.py"],
                    "statusMessage": "é",
                    "timeout": 60,
                    "onFailure": "block",
                }
            ],
        }
    ]
    assert "\\u00e9" in add_hooks(text, NEWEST).text


def test_an_event_that_the_client_does_not_know_is_taken_out() -> None:
    newest = add_hooks("{}", NEWEST).text
    done = add_hooks(newest, InstallRequest(LAUNCHER, (2, 1, 197)))
    assert done.dropped == ("PreModelSwitch", "PostModelSwitch", "DirectoryAdded")
    assert done.text == add_hooks("{}", InstallRequest(LAUNCHER, (2, 1, 197))).text.replace("\n}\n", "\n}")
    assert add_hooks(newest, InstallRequest(LAUNCHER, None)).text == newest  # an unknown client keeps them


def test_a_hook_under_the_wrong_event_is_moved() -> None:
    text = dumped(
        {"NotAnEvent": [{"hooks": [command("fairlead Stop")]}], "Setup": [{"hooks": [command("fairlead Stop")]}]}
    )
    done = add_hooks(text, NEWEST)
    assert "NotAnEvent" not in value(done.text)["hooks"]
    assert value(done.text)["hooks"]["Setup"] == [{"hooks": [hook_for("Setup", LAUNCHER)]}]


def test_a_hook_of_a_newer_fairlead_stays_where_it_is_and_goes_with_the_others() -> None:
    newer = command("/new/fairlead-hook", args=["EventOfTomorrow", "--python", "/new/python"], timeout=7)
    text = dumped({"EventOfTomorrow": [{"hooks": [newer]}]})
    done = add_hooks(text, NEWEST)
    ours = command(LAUNCHER.hook, args=["EventOfTomorrow", "--python", LAUNCHER.python], timeout=7)
    assert value(done.text)["hooks"]["EventOfTomorrow"] == [{"hooks": [ours]}]
    assert value(remove_hooks(done.text).text) == {}


def test_an_event_that_was_asked_for_stays_when_it_is_not_asked_for_again() -> None:
    text = add_hooks("{}", InstallRequest(LAUNCHER, (2, 1, 325), also=frozenset({"WorktreeCreate"}))).text
    assert add_hooks(text, NEWEST).text == text
    assert is_known("WorktreeCreate", (2, 1, 197))


# -- what the client would skip ------------------------------------------------------------------------

GOOD = command("x")


@pytest.mark.parametrize(
    ("hooks", "expected"),
    [
        ([], "hooks: expected an object, got a list"),
        ("x", "hooks: expected an object, got the text 'x'"),
        ({"Stop": None}, "hooks.Stop: expected a list, got null"),
        ({"Stop": {}}, "hooks.Stop: expected a list, got an object"),
        ({"Stop": ["x"]}, "hooks.Stop[0]: expected an object, got the text 'x'"),
        ({"Stop": [{"matcher": "*"}]}, "hooks.Stop[0].hooks: expected a list, got nothing"),
        ({"Stop": [{"matcher": 3, "hooks": []}]}, "hooks.Stop[0].matcher: expected a string, got the number 3"),
        ({"Stop": [{"matcher": None, "hooks": []}]}, "hooks.Stop[0].matcher: expected a string, got null"),
        ({"Stop": [{"hooks": [3]}]}, "hooks.Stop[0].hooks[0]: expected an object, got the number 3"),
        (
            {"Stop": [{"hooks": [{"type": "nope"}]}]},
            "hooks.Stop[0].hooks[0].type: expected one of command, prompt, agent, http, mcp_tool; got the text 'nope'",
        ),
        (
            {"Stop": [{"hooks": [GOOD, {}]}]},
            "hooks.Stop[0].hooks[1].type: expected one of command, prompt, agent, http, mcp_tool; got nothing",
        ),
        (
            {"Stop": [{"hooks": [{"type": "command"}]}]},
            "hooks.Stop[0].hooks[0].command: expected a string, got nothing",
        ),
        (
            {"Stop": [{"hooks": [{**GOOD, "timeout": "3"}]}]},
            "hooks.Stop[0].hooks[0].timeout: expected a number of seconds above 0, got the text '3'",
        ),
        (
            {"Stop": [{"hooks": [{**GOOD, "timeout": 0}]}]},
            "hooks.Stop[0].hooks[0].timeout: expected a number of seconds above 0, got the number 0",
        ),
        (
            {"Stop": [{"hooks": [{**GOOD, "timeout": True}]}]},
            "hooks.Stop[0].hooks[0].timeout: expected a number of seconds above 0, got true",
        ),
        (
            {"Stop": [{"hooks": [{**GOOD, "onFailure": "explode"}]}]},
            'hooks.Stop[0].hooks[0].onFailure: expected "continue" or "block", got the text \'explode\'',
        ),
        (
            {"Stop": [{"hooks": [{**GOOD, "args": [1]}]}]},
            "hooks.Stop[0].hooks[0].args: expected a list of strings, got a list",
        ),
        (
            {"Stop": [{"hooks": [{"type": "http", "url": "nope"}]}]},
            "hooks.Stop[0].hooks[0].url: expected a URL, got the text 'nope'",
        ),
        (
            {"Stop": [{"hooks": [{"type": "mcp_tool", "server": "s", "tool": "t", "input": []}]}]},
            "hooks.Stop[0].hooks[0].input: expected an object, got a list",
        ),
    ],
)
def test_settings_that_the_client_skips_already_are_refused(hooks: Any, expected: str) -> None:
    with pytest.raises(SettingsError) as caught:
        add_hooks(json.dumps({"hooks": hooks}), NEWEST)
    assert expected in str(caught.value)
    assert str(caught.value).endswith(
        "; the client does not accept this, and may skip the whole file with all its hooks: correct it first"
    )


def test_the_position_and_the_number_of_such_faults_are_reported() -> None:
    text = '{\n  "hooks": {\n    "Stop": 1,\n    "Setup": 2\n  }\n}'
    with pytest.raises(SettingsError, match=r"^3:13: hooks\.Stop: expected a list, got the number 1 \(and 1 more\); "):
        add_hooks(text, NEWEST)
    with pytest.raises(SettingsError, match="1:1: the settings are not an object; the client skips the whole file"):
        add_hooks("[]", NEWEST)


def test_under_an_event_that_nobody_knows_anything_may_stand() -> None:
    for odd in (3, None, ["x"], [{"hooks": 3}], [{"hooks": ["x"]}]):
        text = dumped({"NotAnEvent": odd})
        assert value(remove_hooks(add_hooks(text, NEWEST).text, text).text) == value(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"hooks": {}, "hooks": {}}', "1:15: the key 'hooks' is here twice; remove one"),
        ('{"hooks": {"Stop": [], "Stop": []}}', "1:24: the key 'Stop' is here twice; remove one"),
        ('{"hooks": {"Stop": [{"hooks": [], "hooks": []}]}}', "1:35: the key 'hooks' is here twice; remove one"),
        (
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a", "command": "b"}]}]}}',
            "1:68: the key 'command' is here twice; remove one",
        ),
    ],
)
def test_a_key_that_stands_twice_where_we_write_is_refused(text: str, expected: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        add_hooks(text, NEWEST)
    assert str(caught.value) == expected
    with pytest.raises(JsonTextError) as caught:
        remove_hooks(text)
    assert str(caught.value) == expected


def test_a_key_that_stands_twice_elsewhere_is_left_alone() -> None:
    text = '{"env": {"A": "1", "A": "2"}, "env": {}, "hooks": {}}'
    assert add_hooks(text, NEWEST).text.startswith('{"env": {"A": "1", "A": "2"}, "env": {}, "hooks": {')


def test_hooks_that_the_client_refuses_do_not_keep_ours_from_going() -> None:
    broken = dumped({"Stop": [{"hooks": [command("fairlead Stop"), {"type": "nope"}]}]})
    assert value(remove_hooks(broken).text) == {"hooks": {"Stop": [{"hooks": [{"type": "nope"}]}]}}
    with pytest.raises(SettingsError):
        parse_settings(broken)


# -- what the doctor reads -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"type": "command", "command": "/bin/x", "args": ["--token", "s3cret"]}, "/bin/x"),
        ({"type": "command", "command": "curl -H 'Authorization: s3cret' x"}, "curl …"),
        ({"type": "command", "command": "TOKEN=s3cret run"}, "TOKEN=…"),
        ({"type": "http", "url": "http://x/?token=s3cret"}, "a hook of the type 'http'"),
    ],
)
def test_a_hook_is_named_without_its_secrets(value: dict[str, Any], shown: str) -> None:
    assert installed_hook("user", "f", "Stop", value).program == shown


def test_a_hook_is_described_as_the_client_runs_it() -> None:
    ours = installed_hook("user", "f", "PreToolUse", hook_for("PreToolUse", LAUNCHER))
    assert (ours.is_ours, ours.blocks_on_failure, ours.timeout, ours.only_wakes) == (True, True, 60.0, False)
    assert ours.argv == ours.words == (LAUNCHER.hook, "PreToolUse", "--python", LAUNCHER.python)

    shell = installed_hook("user", "f", "Stop", command("conclaude Hooks 'St op'"))
    assert (shell.argv, shell.words) == (
        ("/bin/sh", "-c", "conclaude Hooks 'St op'"),
        ("conclaude", "Hooks", "St op"),
    )
    assert (shell.is_ours, shell.rival) == (False, "conclaude")

    placed = installed_hook("local", "f", "Stop", command("${CLAUDE_PROJECT_DIR}/x.sh", args=[]), "/project")
    assert placed.argv == ("/project/x.sh",)
    assert installed_hook("user", "f", "Stop", {"type": "http", "url": "http://x"}).argv == ()
