"""The status line in the client's settings: ours before the user's own, and the user's own again when we go."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from clients.generated_settings import COMMANDS, settings_texts
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fairlead.clients import Launcher
from fairlead.clients._json_text import parse
from fairlead.clients.claude.settings._status import status
from fairlead.clients.claude.settings._status_line import add_status_line, read_status_line, remove_status_line

if TYPE_CHECKING:
    from fairlead.clients import StatusLineChoice

LAUNCHER = Launcher("/opt/env/bin/fairlead-hook", "/opt/env/bin/python")
OLD = Launcher("/old dir/fairlead-hook", "/old dir/it's python")
OURS = "exec /opt/env/bin/fairlead-hook StatusLine --python /opt/env/bin/python"
MINE = '{\n  "model": "opus",\n  "statusLine": {"padding": 0, "type": "command", "command": "~/line.sh \\u00e9"}\n}\n'


def put(text: str, choice: StatusLineChoice = "chain", launcher: Launcher = LAUNCHER) -> str:
    return add_status_line(text, launcher, choice)[0]


def line(value: Any) -> str:
    return json.dumps({"statusLine": value})


def command(text: str) -> str:
    found: str = json.loads(text)["statusLine"]["command"]
    return found


# -- the user's own ----------------------------------------------------------------------------------


def test_the_users_own_is_put_behind_ours_and_the_rest_keeps_its_bytes() -> None:
    after, done = add_status_line(MINE, LAUNCHER, "chain")
    assert done == "chained"
    assert after == MINE.replace('"~/line.sh \\u00e9"', f"\"{OURS} --then '~/line.sh é'\"")
    assert remove_status_line(after, MINE) == (MINE, "restored")
    assert json.loads(remove_status_line(after)[0]) == json.loads(MINE), "without the original, spelt differently"


@pytest.mark.parametrize("choice", ["chain", "show"])
def test_it_is_chained_whether_ours_was_asked_for_or_not(choice: StatusLineChoice) -> None:
    assert read_status_line(parse(put(MINE, choice))).kind == "chained"
    assert put(MINE, "leave") == MINE


def test_what_is_chained_is_not_chained_again_but_brought_up_to_date() -> None:
    old = put(MINE, launcher=OLD)
    after, done = add_status_line(old, LAUNCHER, "chain")
    assert (after, done) == (put(MINE), "updated")
    assert add_status_line(after, LAUNCHER, "show") == (after, "")
    assert add_status_line(old, LAUNCHER, "leave") == (old, "")
    assert remove_status_line(old, MINE) == (MINE, "restored")


def test_a_command_that_was_edited_in_between_is_kept() -> None:
    edited = put(MINE).replace("line.sh", "other.sh")
    assert command(remove_status_line(edited, MINE)[0]) == "~/other.sh é"


@pytest.mark.parametrize(
    "theirs",
    [
        f"{OURS} | cut -c 1-80",
        f"{OURS} --then x; ls",
        f"{OURS} --then x --then y",
        f"{OURS} --width 3",
        f"{OURS} --then",
        f"{OURS} > log",
        "~/bin/fairlead-hook StatusLine",
        "fairlead-hook Stop",
        "fairlead StatusLine",
        "echo fairlead-hook StatusLine",
        "/x/fairlead-hook-not StatusLine",
        "unclosed ' fairlead-hook StatusLine",
    ],
)
def test_a_line_that_the_user_wrote_is_not_ours(theirs: str) -> None:
    text = line({"type": "command", "command": theirs})
    assert read_status_line(parse(text)).kind == "own"
    assert remove_status_line(text) == (text, "")
    assert json.loads(remove_status_line(put(text))[0]) == json.loads(text)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COMMANDS.filter(lambda one: one.strip() and "\0" not in one), st.sampled_from(["a b", "it's", "$HOME", "plain"]))
def test_a_real_shell_hands_the_command_on_as_it_was(tmp_path_factory: Any, mine: str, folder: str) -> None:
    path = tmp_path_factory.getbasetemp() / folder
    path.mkdir(exist_ok=True)
    hook = path / "fairlead-hook"
    hook.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    hook.chmod(0o755)
    text = put(line({"type": "command", "command": mine}), launcher=Launcher(str(hook), "/py thon"))
    done = subprocess.run(["/bin/sh", "-c", command(text)], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == ["StatusLine", "--python", "/py thon", "--then", mine]


# -- ours alone ----------------------------------------------------------------------------------------


def test_ours_is_added_only_if_it_was_asked_for() -> None:
    text = '{\n  "model": "opus"\n}\n'
    assert add_status_line(text, LAUNCHER, "chain") == (text, "")
    after, done = add_status_line(text, LAUNCHER, "show")
    assert (json.loads(after)["statusLine"], done) == ({"type": "command", "command": OURS}, "added")
    assert add_status_line(after, LAUNCHER, "chain") == (after, "")
    assert remove_status_line(after) == (text, "removed")


def test_ours_is_brought_up_to_date_with_what_was_added_to_it() -> None:
    old = put("{}", "show", OLD).replace('"type"', '"padding": 2, "type"')
    after, done = add_status_line(old, LAUNCHER, "chain")
    assert (json.loads(after)["statusLine"], done) == ({"padding": 2, "type": "command", "command": OURS}, "updated")
    assert json.loads(remove_status_line(after)[0]) == {}


# -- what is of another shape --------------------------------------------------------------------------


@pytest.mark.parametrize("choice", ["chain", "show"])
@pytest.mark.parametrize(
    "text",
    [
        line(None),
        line("~/line.sh"),
        line(["~/line.sh"]),
        line({}),
        line({"type": "command"}),
        line({"command": "~/line.sh"}),
        line({"type": "http", "command": "~/line.sh"}),
        line({"type": "command", "command": 5}),
        line({"type": "command", "command": ["~/line.sh"]}),
        line({"type": "command", "command": ""}),
        line({"type": "command", "command": " \n"}),
        line({"type": "command", "command": "a\0b"}),
        line({"type": "command", "command": "a\ud800b"}),
        '{"statusLine": {"type": "command", "command": "a"}, "statusLine": {"type": "command", "command": "b"}}',
        '{"statusLine": {"type": "command", "command": "a", "command": "b"}}',
        '{"statusLine": {"type": "prompt", "type": "command", "command": "b"}}',
    ],
)
def test_what_the_client_would_not_run_is_left_alone(text: str, choice: StatusLineChoice) -> None:
    assert read_status_line(parse(text)).kind == "odd"
    assert add_status_line(text, LAUNCHER, choice) == (text, "")
    assert remove_status_line(text, text) == (text, "")


@settings(max_examples=150, deadline=None)
@given(settings_texts(), st.sampled_from(["chain", "show", "leave"]))
def test_any_settings_are_given_back(text: str, choice: StatusLineChoice) -> None:
    text = text if text.strip("\ufeff \r\n") else "{}"
    after, done = add_status_line(text, LAUNCHER, choice)
    assert add_status_line(after, LAUNCHER, choice) == (after, "")
    if not done:
        assert after == text
    elif parse(text).items:
        assert remove_status_line(after, text)[0] == text
    before, now = (json.loads(one.removeprefix("\ufeff")) for one in (text, after))
    assert {key: value for key, value in now.items() if key != "statusLine"} == {
        key: value for key, value in before.items() if key != "statusLine"
    }


# -- what is said of it --------------------------------------------------------------------------------


def test_status_says_what_it_is_and_what_is_wrong(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    here = Launcher(str(tmp_path / "fairlead-hook"), "/opt/env/bin/python")
    Path(here.hook).write_text("#!/bin/sh\n")
    Path(here.hook).chmod(0o755)

    def look(text: str) -> tuple[str, str, tuple[str, ...]]:
        file.write_text(text)
        found = status("user", file, here, (2, 1, 325))
        return found.state, found.status_line, found.differences

    assert look("{}") == ("not installed", "none", ())
    assert look(MINE) == ("not installed", "own", ())
    assert look(line(5)) == ("not installed", "odd", ())
    assert look(put(MINE, launcher=here)) == ("partial", "chained", ()), "the hooks are gone"
    assert look(put("{}", "show", here)) == ("partial", "ours", ())
    other = f"statusLine: it starts {here.hook} with /other, and would start ours"
    assert look(put(MINE, launcher=Launcher(here.hook, "/other")))[2] == (other,)
    gone = "statusLine: /gone/fairlead-hook does not exist or cannot be started, so the status line is empty"
    assert look(put(MINE, launcher=Launcher("/gone/fairlead-hook", "/gone/python")))[2] == (gone,)
