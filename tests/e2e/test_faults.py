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


def test_a_killed_daemon_is_done_without_the_next_one_takes_all_in_and_so_is_one_whose_socket_is_gone(
    here: Machine,
) -> None:
    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            after(here.kill_daemon, [here.write(".env")]),
            [here.write("out/two")],
            after(f"{AN_AGE_AGO} {here.state}/run/starting", [here.write("out/three")]),
            here.when_warm([here.write(".env")]),
            after(f"rm {here.socket}", [here.write(".env")]),
            [here.write("out/four")],
            "Done.",
        ]
    )

    results = went_on(run, here, 8)
    assert (results[1], results[4], results[5]) == (REFUSED, REFUSED, REFUSED)
    assert sorted(file.name for file in (here.project / "out").iterdir()) == ["four", "one", "three", "two"]
    assert gates(here) == [
        ("daemon", "none"),
        ("cold", "blocked"),
        ("cold", "none"),
        ("cold", "none"),
        ("daemon", "blocked"),
        ("cold", "blocked"),
        ("cold", "none"),
    ]
    assert [turn.partition(":")[0] for turn in here.turns()][:2] == ["started", "started"]
    assert is_once(here.happened())


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


def test_guards_hold_while_the_daemon_lives_and_without_it_python_or_the_launcher_no_tool_runs(here: Machine) -> None:
    """Python fails, is gone, then a folder, then no program; at last the launcher itself is gone.

    A Python that fails may have printed an answer, so the launcher adds none.
    """
    python = here.python
    faults = (
        f"ln -sf /bin/false {python}",
        here.kill_daemon,
        f"rm {python}",
        f"mkdir {python}",
        f"rmdir {python}; echo junk > {python}; chmod +x {python}",
        f"rm {here.launcher}",
    )

    run = here.prompt(
        [
            here.when_warm([here.write("out/one")]),
            *(turn for fault in faults for turn in (after(fault, [here.write(".env")]), [bash("echo harmless")])),
            "Done.",
        ]
    )

    _, by_daemon, harmless, *results = went_on(run, here, 14, complaint=missing(here))
    assert (by_daemon, harmless) == (REFUSED, "harmless")
    assert gates(here)[:3] == [("daemon", "none"), ("daemon", "blocked"), ("daemon", "none")]
    fails = f"[{line(here, 'PreToolUse')}]: {unchecked('Python ended with exit code 1')}\n"
    missing_programs = ("no such file", "permission denied", "not a program")
    reasons = [fails, *(unchecked(f"cannot run {python}: {what}") for what in missing_programs)]
    assert results[:8] == [
        f"PreToolUse:{tool} hook error: {reason}" for reason in reasons for tool in ("Write", "Bash")
    ]
    why = f'[{line(here, "PreToolUse")}]: failed; blocking because onFailure is "block"'
    for tool, result in zip(("Write", "Bash"), results[8:], strict=True):
        assert result.startswith(f"PreToolUse:{tool} hook error: {why}")  # and, mostly, why it failed


def unchecked(reason: str) -> str:
    """Why a call is blocked that cannot be checked."""
    return f"fairlead cannot check this call, so it is blocked: {reason}{DOCTOR}"


def line(here: Machine, event: str) -> str:
    """The command line of our hook, as the client shows it."""
    hook = here.hook(event)
    return " ".join([hook["command"], *hook["args"]])


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


def test_a_call_of_the_agents_own_can_end_the_daemon_but_strike_nothing_else(here: Machine) -> None:
    """Nor can it put a yes-man in Fairlead's place."""
    kill = f"kill -9 $(cat {here.state}/run/daemon.lock)"
    attempts = [
        f"rm {here.socket}",
        f"echo x > {here.settings}",
        "mkdir -p .claude && echo {} > .claude/settings.json",
        f"rm -rf {here.state}",
    ]
    yes_men = [
        f"cp /bin/true {here.launcher}",
        f"ln -sf /bin/true {here.launcher}",
        f"{kill}; ln -sf /bin/true {here.python}",
    ]
    write = here.write(".env")

    run = here.prompt(
        [
            here.when_warm([bash(attempts[0])]),
            *([bash(line)] for line in attempts[1:]),
            *(turn for line in yes_men for turn in ([bash(line)], [write])),
            [bash(kill)],
            [bash(f"ln -sf /bin/false {here.python}")],
            [write],
            "Done.",
        ]
    )

    *results, _, by_python, last = went_on(run, here, 14)
    for result in (*results[:4], by_python):
        assert "preToolUse.protectOwnFiles protects the policy" in result
    assert (results[5::2], last) == ([REFUSED] * 3, REFUSED)
