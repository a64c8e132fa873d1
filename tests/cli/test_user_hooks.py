"""`fairlead hooks add`, `remove` and `list`: what they write into the policy, and who may run them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home

from fairlead.cli.hooks.policy_text import with_hook, without_hook

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

HOOKS = "from fairlead import HookManager\nimport helper\n\nhooks = HookManager()\n"


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        (made.project / "guards.py").write_text(HOOKS)
        (made.project / "helper.py").write_text("")
        yield made


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "hooks:\n  - b.py\n"),
        ("mail: {wait: 5}", "mail: {wait: 5}\nhooks:\n  - b.py\n"),
        ("hooks: [a.py]  # mine\nmail: {wait: 5}\n", "hooks: [a.py, b.py]  # mine\nmail: {wait: 5}\n"),
        ("hooks: []\n", "hooks: [b.py]\n"),
        ("hooks:\n- a.py\nmail: {wait: 5}\n", "hooks:\n- a.py\n- b.py\nmail: {wait: 5}\n"),
        ("hooks:  # mine\n    - a.py", "hooks:  # mine\n    - a.py\n    - b.py\n"),
    ],
)
def test_a_file_is_added_to_the_list_and_all_else_keeps_its_bytes(before: str, after: str) -> None:
    assert with_hook(before.encode(), "b.py").decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("hooks: [a.py, 'b.py']\n", "hooks: [a.py]\n"),
        ("hooks:\n  - a.py\n  - b.py  # why\nmail: {wait: 5}\n", "hooks:\n  - a.py\nmail: {wait: 5}\n"),
        ("hooks:\n  - b.py\nmail: {wait: 5}\n", "mail: {wait: 5}\n"),
    ],
)
def test_a_file_is_taken_out_of_the_list(before: str, after: str) -> None:
    assert without_hook(before.encode(), ["b.py"]).decode() == after


def test_hooks_are_added_listed_and_removed(home: DaemonHome) -> None:
    guards, policy = home.project / "guards.py", home.project / ".fairlead.yaml"

    added = home.fairlead("hooks", "add", "guards.py", "--yes")

    assert added.exit_code == 0, added
    assert added.stdout.splitlines()[-4:] == [
        f"It imports {home.project}/helper.py",
        "It runs with the Python of Fairlead",
        f"trusted {guards}",
        f"listed in {policy}; it is in force from the next event on",
    ]
    assert policy.read_text().endswith("hooks:\n  - guards.py\n")
    assert home.fairlead("validate").exit_code == 0
    assert home.fairlead("hooks", "list").stdout == f"trusted  {guards}\n"
    again = home.fairlead("hooks", "add", "guards.py", "--yes").stdout
    assert again == f"{guards} is trusted already\n{policy} lists it already\n"

    (home.project / "helper.py").write_text("x = 1\n")
    listed = json.loads(home.fairlead("hooks", "list", "--json").stdout)
    assert [(one["file"], one["is_trusted"]) for one in listed] == [(str(guards), False)]
    assert f"It imports {home.project}/helper.py (changed)" in home.fairlead("trust", "guards.py", "--yes").stdout

    assert home.fairlead("hooks", "remove", "guards.py", "--yes").exit_code == 0
    assert "hooks" not in policy.read_text().partition("\n")[2]
    assert home.fairlead("hooks", "remove", "guards.py", "--yes").stderr.strip().endswith("see fairlead hooks list")


def test_hooks_of_the_user_are_listed_in_the_user_wide_policy(home: DaemonHome) -> None:
    added = home.fairlead("hooks", "add", "--user", "guards.py", "--yes")

    assert added.exit_code == 0, added
    assert not (home.project / ".fairlead.yaml").exists()
    assert home.fairlead("hooks", "list").stdout == f"trusted  {home.project}/guards.py\n"


def test_a_policy_that_was_there_is_not_trusted_as_a_whole(home: DaemonHome) -> None:
    (home.project / ".fairlead.yaml").write_text("stop: {commands: [{run: 'true'}]}\n")

    added = home.fairlead("hooks", "add", "guards.py", "--yes").stdout

    assert added.endswith(f"listed in {home.project}/.fairlead.yaml; it is in force from the next event on\n")
    assert home.fairlead("trust", "--list").stdout == f"trusted  {home.project}/guards.py\n"


def test_a_file_from_elsewhere_waits_for_the_trust_in_a_policy_that_was_there(home: DaemonHome) -> None:
    (home.folder / "shared.py").write_text("from fairlead import HookManager\nhooks = HookManager()\n")
    (home.project / ".fairlead.yaml").write_text("stop: {commands: [{run: 'true'}]}\n")

    added = home.fairlead("hooks", "add", "../shared.py", "--yes").stdout

    assert added.endswith(
        f"it is in force in sessions that begin from now on; for those that run already: fairlead trust "
        f"{home.project}/.fairlead.yaml\n"
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x = 1\ndef broken(:\n", ":2: SyntaxError: invalid syntax"),
        ("def f():\n    pass\nreturn 1\n", ":3: SyntaxError: 'return' outside function"),
        (
            "manager = 1\nhooks: int\ndef f():\n    hooks = 2\n",
            ": nothing in it is named 'hooks'; a hook file has `hooks =",
        ),
        ("", ": nothing in it is named 'hooks'; a hook file has `hooks ="),
    ],
)
@pytest.mark.parametrize("words", [["hooks", "add"], ["trust"]])
def test_a_file_that_cannot_be_a_hook_file_is_neither_trusted_nor_listed(
    home: DaemonHome, words: list[str], text: str, why: str
) -> None:
    file = home.project / "bad.py"
    file.write_text(text)

    refused = home.fairlead(*words, "bad.py", "--yes")

    assert refused.exit_code == 1
    assert f"{file}{why}" in refused.stderr
    assert refused.stderr.endswith("; correct the file, then run the command again\n")
    assert home.fairlead("trust", "--list").stdout == "nobody has trusted a file with `fairlead trust` yet\n"
    assert not (home.project / ".fairlead.yaml").exists()


@pytest.mark.parametrize(
    "text",
    [
        "if True:\n    hooks = 1\n",
        "from helper import hooks\n",
        "import helper as hooks\n",
        "from helper import *\n",
        "def f():\n    global hooks\n    hooks = 1\n",
        "globals()['hooks'] = 1\n",
        "def __getattr__(name):\n    return 1\n",
        "for (_, hooks) in ():\n    pass\n",
        "print(hooks := 1)\n",
    ],
)
def test_a_file_that_may_have_hooks_is_trusted(home: DaemonHome, text: str) -> None:
    (home.project / "odd.py").write_text(text)
    assert home.fairlead("trust", "odd.py", "--yes").exit_code == 0


def test_a_policy_stays_trusted_when_a_file_is_taken_out(home: DaemonHome) -> None:
    policy = home.project / ".fairlead.yaml"
    assert home.fairlead("hooks", "add", "guards.py", "--yes").exit_code == 0
    (home.project / "other.py").write_text(HOOKS)
    assert home.fairlead("hooks", "add", "other.py", "--yes").exit_code == 0

    removed = home.fairlead("hooks", "remove", "other.py", "--yes").stdout

    assert removed == f"{policy} no longer lists {home.project}/other.py\n"
    assert f"trusted  {policy}\n" in home.fairlead("trust", "--list").stdout
    policy.write_text(policy.read_text() + "# mine\n")
    assert home.fairlead("hooks", "remove", "guards.py", "--yes").stdout.endswith(
        f"guards.py; sessions that began with it keep its hooks until: fairlead trust {policy}\n"
    )


@pytest.mark.parametrize("words", [["add", "guards.py"], ["remove", "guards.py"]])
def test_an_agent_cannot_add_or_remove_hooks(home: DaemonHome, words: list[str]) -> None:
    (home.project / ".fairlead.yaml").write_text("hooks: [guards.py]\n")

    refused = home.fairlead("hooks", *words, "--yes", CLAUDECODE="1")

    assert refused.exit_code == 1
    assert "only a person can" in refused.stderr
    assert (home.project / ".fairlead.yaml").read_text() == "hooks: [guards.py]\n"


def test_what_is_no_python_file_is_refused(home: DaemonHome) -> None:
    assert "is not a Python file" in home.fairlead("hooks", "add", "guards.sh", "--yes").stderr
    missing = home.fairlead("hooks", "add", "gone.py", "--yes").stderr
    assert missing == f"fairlead: {home.project}/gone.py: no such file; name a Python file with hooks\n"
    home.policy("hooks: [guards.sh]\n")
    assert "its name ends with `.py`" in home.fairlead("validate").stdout + home.fairlead("validate").stderr
