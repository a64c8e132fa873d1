"""What breaks in the middle of a session of the real client: the guarded file is never written, and the reason is read.

Every fault is struck while the client waits for the model, so that nothing depends on who is faster.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from e2e.installed import with_hooks
from e2e.model import after, bash

from fairlead.journal import EventRecord, JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e import sealed
    from e2e.installed import Machine

POLICY = """
    preToolUse:
      uneditableFiles:
        - pattern: .env
          message: Secrets are set by hand.
    """
REFUSED = "PreToolUse:Write hook error: Secrets are set by hand."
DOCTOR = ". Reinstall Fairlead if this continues"

AN_AGE_AGO = "touch -d '1 hour ago'"
"""Makes the last attempt to start a daemon an old one: the next event may try again."""


@pytest.fixture
def here(client: Path) -> Iterator[Machine]:
    with with_hooks(client) as made:
        made.policy(POLICY)
        yield made


def went_on(run: sealed.Run, here: Machine, requests: int, *, complaint: str = "") -> list[str]:
    """See that the session came to its end, and that the guarded file is not there; give the tools' results.

    The client prints what goes wrong at the session's end, and nothing of the events before.
    """
    complaint = complaint and f"SessionEnd hook [{line(here, 'SessionEnd')}] failed: {complaint}\n"
    assert (run.exit_code, run.stdout, run.stderr, run.asked) == (0, "Done.\n", complaint, ["main"] * requests)
    assert not (here.project / ".env").exists()
    return run.requests[-1].results


def gates(here: Machine) -> list[tuple[str, str]]:
    """By which road each tool call was decided, and how."""
    return [(event.route, event.verdict) for event in here.happened() if event.event == "PreToolUse"]


def is_once(events: list[EventRecord]) -> bool:
    """Whether no event is double, neither by its id nor by the call that it is about."""
    ids = [event.id for event in events]
    calls = [json.loads(bytes(event.payload))["tool_use_id"] for event in events if event.event == "PreToolUse"]
    return len(set(ids)) == len(ids) and len(set(calls)) == len(calls)


# -- the daemon ----------------------------------------------------------------------------------------


def test_a_killed_daemon_is_done_without_and_the_next_one_takes_all_in(here: Machine) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(here.kill_daemon, [here.write(".env")]),
            [here.write("out/two")],
            after(f"{AN_AGE_AGO} {here.state}/run/starting", [here.write("out/three")]),
            here.when_warm([here.write(".env")]),
            "Done.",
        ]
    )

    results = went_on(run, here, 6)
    assert (results[1], results[4]) == (REFUSED, REFUSED)
    assert sorted(file.name for file in (here.project / "out").iterdir()) == ["one", "three", "two"]
    assert gates(here) == [
        ("daemon", "none"),
        ("cold", "blocked"),
        ("cold", "none"),
        ("cold", "none"),
        ("daemon", "blocked"),
    ]
    assert [turn.partition(":")[0] for turn in here.turns()] == ["started", "started"]
    assert is_once(here.happened())


def test_a_daemon_whose_socket_is_gone_is_done_without(here: Machine) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"rm {here.socket}", [here.write(".env")]),
            [here.write("out/two")],
            "Done.",
        ]
    )

    assert went_on(run, here, 4)[1] == REFUSED
    assert (here.project / "out/two").exists()
    assert gates(here) == [("daemon", "none"), ("cold", "blocked"), ("cold", "none")]


def test_a_daemon_that_hangs_is_done_without_and_what_it_says_later_does_not_count_twice(client: Path) -> None:
    with with_hooks(client, FAIRLEAD_DEADLINE_MS="200") as here:
        here.policy(POLICY)
        daemon = f"$(cat {here.state}/run/daemon.lock)"

        run = here.prompt(
            [
                here.when_warm([here.write("out/one")]),
                after(f"kill -STOP {daemon}", [here.write(".env")]),
                [here.write("out/two")],
                after(f"kill -CONT {daemon}; while ls {here.state}/spool | grep -q json; do sleep 0.02; done",
                      [here.write(".env")]),
                "Done.",
            ]
        )  # fmt: skip

        results = went_on(run, here, 5)
        assert (results[1], results[3]) == (REFUSED, REFUSED)
        assert (here.project / "out/two").exists()
        assert [verdict for _, verdict in gates(here)] == ["none", "blocked", "none", "blocked"]
        assert is_once(here.happened())


# -- the programs --------------------------------------------------------------------------------------


def test_without_daemon_and_a_python_that_fails_no_tool_runs(here: Machine) -> None:
    """It may have printed an answer, so the launcher adds none."""
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"{here.kill_daemon}; ln -sf /bin/false {here.python}", [here.write(".env")]),
            [bash("echo harmless")],
            "Done.",
        ]
    )

    _, *results = went_on(run, here, 4)
    shown = f"[{line(here, 'PreToolUse')}]: {unchecked('Python ended with exit code 1')}\n"
    assert results == [f"PreToolUse:{tool} hook error: {shown}" for tool in ("Write", "Bash")]


def test_without_daemon_and_python_no_tool_runs(here: Machine) -> None:
    """It is gone, then a folder, then no program."""
    python = here.python

    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"{here.kill_daemon}; rm {python}", [here.write(".env")]),
            [bash("echo harmless")],
            after(f"mkdir {python}", [here.write(".env")]),
            [bash("echo harmless")],
            after(f"rmdir {python}; echo junk > {python}; chmod +x {python}", [here.write(".env")]),
            [bash("echo harmless")],
            "Done.",
        ]
    )

    reasons = [f"cannot run {python}: {what}" for what in ("no such file", "permission denied", "not a program")]
    _, *results = went_on(run, here, 8, complaint=f"fairlead cannot handle this event: {reasons[-1]}{DOCTOR}\n")
    assert results == [
        f"PreToolUse:{tool} hook error: {unchecked(reason)}" for reason in reasons for tool in ("Write", "Bash")
    ]


def unchecked(reason: str) -> str:
    """Why a call is blocked that cannot be checked."""
    return f"fairlead cannot check this call, so it is blocked: {reason}{DOCTOR}"


def line(here: Machine, event: str) -> str:
    """The command line of our hook, as the client shows it."""
    hook = here.hook(event)
    return " ".join([hook["command"], *hook["args"]])


def test_guards_hold_while_the_daemon_lives_and_python_does_not(here: Machine) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"ln -sf /bin/false {here.python}", [here.write(".env")]),
            [bash("echo harmless")],
            "Done.",
        ]
    )

    assert went_on(run, here, 4)[1:] == [REFUSED, "harmless"]
    assert gates(here) == [("daemon", "none"), ("daemon", "blocked"), ("daemon", "none")]


def test_without_its_launcher_the_client_lets_no_tool_run(here: Machine) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"rm {here.launcher}", [here.write(".env")]),
            [bash("echo harmless")],
            "Done.",
        ]
    )

    _, *results = went_on(run, here, 4, complaint=missing(here))
    why = f'[{line(here, "PreToolUse")}]: failed; blocking because onFailure is "block"'
    for tool, result in zip(("Write", "Bash"), results, strict=True):
        assert result.startswith(f"PreToolUse:{tool} hook error: {why}")  # and, mostly, why it failed


def missing(here: Machine) -> str:
    """What the client says of a program that is not there."""
    return (
        f"Error occurred while executing hook command: ENOENT: no such file or directory, posix_spawn '{here.launcher}'"
    )


# -- files ---------------------------------------------------------------------------------------------


def test_of_a_policy_that_breaks_the_last_good_version_holds(here: Machine) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"echo 'preToolUse: [' > {here.project}/.fairlead.yaml", [here.write(".env")]),
            [here.write("out/two")],
            after(f"rm {here.project}/.fairlead.yaml", [here.write(".env")]),
            "Done.",
        ]
    )

    results = went_on(run, here, 5)
    assert (results[1], results[3]) == (REFUSED, REFUSED)
    assert (here.project / "out/two").exists()


def test_a_full_disk_keeps_nothing_but_guards_all_the_same(here: Machine) -> None:
    full, over, fill = here.folder / "full", here.folder / "over", here.state / "fill"
    more = f"cat /dev/zero >> {fill} || true"
    keep_full = f"while [ -e {full} ]; do {more}; sleep 0.01; done; touch {over}"  # whatever anybody frees
    make_room = f"rm {full}; until [ -e {over} ]; do sleep 0.02; done; rm {fill}"
    large = "x" * 8000  # its record does not fit behind the last one of the journal

    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(f"touch {full}; {more}; ({keep_full}) > /dev/null 2>&1 &", [here.write(".env", large)]),
            [here.write("out/two", large)],
            after(make_room, [here.write(".env")]),
            after(f"cp -r {here.state}/journal {here.folder}/kept", "Done."),
        ],
        disk="4m",
    )

    results = went_on(run, here, 5)
    assert (results[1], results[3]) == (REFUSED, REFUSED)
    assert (here.project / "out/two").exists()
    kept = [record for _, record in JournalReader(f"{here.folder}/kept").read() if isinstance(record, EventRecord)]
    gates = [(event.route, event.verdict) for event in kept if event.event == "PreToolUse"]
    assert gates == [("daemon", "none"), ("daemon", "blocked")]  # before it was full, and as soon as there was room


# -- another settings file -----------------------------------------------------------------------------


def test_settings_of_the_project_that_repeat_our_hook_take_the_clients_measure_away_but_not_ours(
    here: Machine,
) -> None:
    """The client's last definition of a command line counts, and a project's comes after the user's.

    So a project that repeats it without `onFailure` has no gate once the launcher itself is gone. Whatever the launcher
    can still see to, it does: its exit code 2 needs no `onFailure`.
    """
    hook = {name: value for name, value in here.hook("PreToolUse").items() if name != "onFailure"}
    (here.project / ".claude").mkdir()
    (here.project / ".claude/settings.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))

    run = here.prompt(
        [
            here.when_warm([here.write(".env")]),
            after(f"{here.kill_daemon}; ln -sf /bin/false {here.python}", [here.write(".env")]),
            after(f"test ! -e {here.project}/.env; rm {here.launcher}", [here.write("out/open")]),
            "Done.",
        ]
    )

    assert went_on(run, here, 4, complaint=missing(here))[0] == REFUSED
    assert (here.project / "out/open").exists()
    assert [event.verdict for event in here.happened() if event.event == "PreToolUse"] == ["blocked"]  # and only once


def test_a_call_of_the_agents_own_cannot_strike_any_of_this(here: Machine) -> None:
    attempts = [
        f"rm {here.socket}",
        f"echo x > {here.settings}",
        "mkdir -p .claude && echo {} > .claude/settings.json",
        f"rm -rf {here.state}",
    ]

    run = here.prompt([here.when_warm([bash(attempts[0])]), *([bash(line)] for line in attempts[1:]), "Done."])

    for result in went_on(run, here, len(attempts) + 1):
        assert "preToolUse.protectOwnFiles protects the policy" in result


def test_an_agent_can_end_the_daemon_but_not_break_python(here: Machine) -> None:
    lock = here.state / "run/daemon.lock"

    run = here.prompt(
        [
            here.when_warm([bash(f"kill -9 $(cat {lock})")]),
            [bash(f"ln -sf /bin/false {here.python}")],
            [here.write(".env")],
            "Done.",
        ]
    )

    results = went_on(run, here, 4)
    assert "preToolUse.protectOwnFiles protects the policy" in results[1]
    assert results[2] == REFUSED


def test_an_agent_cannot_put_a_yes_man_in_fairleads_place(here: Machine) -> None:
    lock = here.state / "run/daemon.lock"
    first, *others = [
        f"cp /bin/true {here.launcher}",
        f"ln -sf /bin/true {here.launcher}",
        f"kill -9 $(cat {lock}); ln -sf /bin/true {here.python}",
    ]
    write = here.write(".env")

    run = here.prompt(
        [
            here.when_warm([bash(first)]),
            [write],
            *(turn for other in others for turn in ([bash(other)], [write])),
            "Done.",
        ]
    )

    assert went_on(run, here, 7)[1::2] == [REFUSED] * 3
