"""The real client with what `fairlead hooks install` writes: the launcher, the daemon, and a policy of everything.

One session is played once, and each test looks at one side of it.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from e2e import sealed
from e2e.installed import ERRAND, machine, with_hooks
from e2e.model import bash

from fairlead.journal import EventRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from e2e.installed import Machine

    from fairlead.journal import CommandsRecord

POLICY = """
    preToolUse:
      uneditableFiles:
        - pattern: .env
          message: Secrets are set by hand.
    userPromptSubmit:
      contextRules:
        - pattern: Go
          prompt: Every change goes to the changelog.
    subagentStart:
      context:
        general-*: Say which files you changed.
    subagentStop:
      commands:
        general-purpose:
          - run: cat > stdin; env -0 > environment
    stop:
      commands:
        - run: echo checked >> checks; test -e done || { touch done; echo not yet; exit 1; }
          message: Look again.
          showStdout: true
    """

AS_ROWS = ("--output-format", "stream-json", "--verbose", "--include-hook-events")
"""Makes the client tell of every hook: when it was started, and what the client made of its answer."""

EVENTS = [
    *("SessionStart", "UserPromptSubmit"),
    *("PreToolUse", "PostToolBatch"),  # the one that is denied has not been used
    *("PreToolUse", "PostToolUse", "PostToolBatch"),
    *("PreToolUse", "SubagentStart"),
    *("PreToolUse", "PostToolBatch"),
    *("PreToolUse", "PostToolUse", "PostToolBatch"),
    *("SubagentStop", "PostToolUse", "PostToolBatch"),
    *("Stop", "Stop", "SessionEnd"),
]
"""What happens in the session, in order."""


@dataclass(frozen=True)
class Session:
    """What is left of it."""

    run: sealed.Run
    project: Path
    rows: list[dict[str, Any]]
    events: list[EventRecord]
    done: dict[str, CommandsRecord]
    written: Counter[str]
    """How often each event is in the journal, once a daemon has taken in what waited for it."""
    turns: list[str]


@pytest.fixture(scope="module")
def session(client: Path) -> Iterator[Session]:
    with with_hooks(client) as here:
        here.policy(POLICY)
        run = here.prompt(
            [
                here.when_warm([here.write(".env")]),
                [bash("echo that")],
                [ERRAND],
                "Done.",
                "Done, really.",
            ],
            subagent=[[here.write(".env")], [bash("echo below")], "None."],
            words=AS_ROWS,
        )
        events, done, turns = here.happened(), here.done(), here.turns()
        taken = here.fairlead("daemon", "start")  # the first was killed with its session
        assert taken.exit_code == 0, taken
        assert not list((here.state / "spool").iterdir())
        written = Counter(record.id for record in here.journal() if isinstance(record, EventRecord))
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        yield Session(run, here.project, rows, events, done, written, turns)


def test_the_session_went_as_the_script_says(session: Session) -> None:
    assert (session.run.exit_code, session.rows[-1]["result"]) == (0, "Done, really.")
    assert session.run.asked == ["main", "main", "main", "subagent", "subagent", "subagent", "main", "main"]


# -- what was decided ----------------------------------------------------------------------------------


def test_a_guarded_file_is_not_written_by_anyone_and_both_models_read_why(session: Session) -> None:
    refusal = "PreToolUse:Write hook error: Secrets are set by hand."

    assert session.run.requests[-1].results[:2] == [refusal, "that"]
    assert session.run.requests[5].results == [refusal, "below"]
    assert not (session.project / ".env").exists()


def test_context_reaches_the_one_it_is_for(session: Session) -> None:
    for_main = "UserPromptSubmit hook additional context: Every change goes to the changelog."
    for_subagent = "SubagentStart hook additional context: Say which files you changed."
    told = [(request.who, request.holds(for_main), request.holds(for_subagent)) for request in session.run.requests]

    assert set(told) == {("main", True, False), ("subagent", False, True)}


def test_a_check_keeps_the_agent_going_and_lets_it_go(session: Session) -> None:
    feedback = "Stop hook feedback:\nLook again.\nStdout: not yet"

    assert session.run.requests[-1].said("user")[-1] == feedback
    assert (session.project / "checks").read_text() == "checked\n" * 2


def test_commands_at_a_subagents_end_have_its_payload_and_variables(session: Session) -> None:
    (ended,) = (event for event in session.events if event.event == "SubagentStop")
    stdin = (session.project / "stdin").read_text()
    payload = json.loads(stdin)
    variables = dict(
        line.split("=", 1) for line in (session.project / "environment").read_text().split("\0") if "=" in line
    )
    expected = {
        "AGENT_ID": payload["agent_id"],
        "AGENT_NAME": "general-purpose",
        "AGENT_TRANSCRIPT_PATH": payload["agent_transcript_path"],
        "AGENT_TYPE": "general-purpose",
        "CONFIG_DIR": str(session.project),
        "CWD": str(session.project),
        "HOOK_EVENT": "SubagentStop",
        "PAYLOAD_JSON": stdin,
        "SESSION_ID": payload["session_id"],
        "SUBAGENT_TYPE": "general-purpose",
        "TRANSCRIPT_PATH": payload["transcript_path"],
    }

    assert payload == json.loads(bytes(ended.payload))
    for prefix in ("FAIRLEAD_", "CONCLAUDE_"):
        given = {name.removeprefix(prefix): value for name, value in variables.items() if name.startswith(prefix)}
        given.pop("HOME", None)  # of FAIRLEAD_HOME, which is no variable of the event
        assert given == expected


# -- what the client made of it ------------------------------------------------------------------------


def test_the_client_sees_no_error_but_the_calls_that_are_denied(session: Session) -> None:
    answers = [row for row in session.rows if row.get("subtype") == "hook_response"]
    wrong = [(row["hook_name"], row["exit_code"], row["stderr"]) for row in answers if row["outcome"] != "success"]

    assert session.run.stderr == ""
    assert wrong == [("PreToolUse:Write", 2, "Secrets are set by hand.\n")] * 2
    assert not session.rows[-1]["is_error"]


def test_every_hook_that_the_client_starts_answers(session: Session) -> None:
    started = [row["hook_id"] for row in session.rows if row.get("subtype") == "hook_started"]
    answered = [row["hook_id"] for row in session.rows if row.get("subtype") == "hook_response"]

    assert sorted(started) == sorted(answered)
    assert len(started) == len(EVENTS) - 1  # of the session's end no row can be written any more


# -- what was written down -----------------------------------------------------------------------------


def test_each_event_of_the_session_is_in_the_journal_once(session: Session) -> None:
    assert [event.event for event in session.events] == EVENTS
    assert session.written == Counter({event.id: 1 for event in session.events})
    assert len({event.session for event in session.events}) == 1


def test_the_first_events_begin_one_daemon_that_answers_all_others(session: Session) -> None:
    roads = [event.route for event in session.events]

    assert roads[0] == "cold"
    assert roads[2:] == ["daemon"] * (len(EVENTS) - 2)  # the model answers the prompt when the daemon answers
    assert [turn.partition(":")[0] for turn in session.turns] == ["started"]


def test_every_record_names_the_process_of_the_real_client(session: Session) -> None:
    callers = {(event.caller.pid, event.caller.start, event.caller.project) for event in session.events}

    assert callers == {(session.run.pid, session.run.start, str(session.project))}


def test_verdicts_are_those_that_the_client_was_told(session: Session) -> None:
    told = Counter((event.event, event.verdict) for event in session.events if event.verdict != "none")

    assert told == {
        ("UserPromptSubmit", "said"): 1,
        ("PreToolUse", "blocked"): 2,
        ("SubagentStart", "said"): 1,
    }


def test_how_commands_ended_is_written_down(session: Session) -> None:
    ended = [(event.event, session.done[event.id]) for event in session.events if event.id in session.done]
    told = [(event, done.verdict, done.reason, [step.exit for step in done.steps]) for event, done in ended]

    assert told == [
        ("SubagentStop", "none", "", [0]),
        ("Stop", "blocked", "Look again.\nStdout: not yet", [1]),
        ("Stop", "none", "", [0]),
    ]


# -- other sessions ------------------------------------------------------------------------------------


@pytest.fixture
def here(client: Path) -> Iterator[Machine]:
    with with_hooks(client) as made:
        yield made


def test_a_hook_of_ones_own_in_the_installed_entry_rewrites_what_the_tool_gets(here: Machine) -> None:
    hooks = here.folder / "hooks.py"
    hooks.write_text(
        "from fairlead import HookManager, HookOutput, PreToolUse\n"
        "\n"
        "hooks = HookManager()\n"
        "\n"
        '@hooks.on(PreToolUse, matcher="Bash", phase="rewrite")\n'
        "def politely(event: PreToolUse) -> HookOutput:\n"
        '    return HookOutput().with_updated_input({**event.tool_input, "command": "echo please"})\n'
    )
    settings = json.loads(here.settings.read_text())
    settings["hooks"]["PreToolUse"][0]["hooks"][0]["args"] += ["--hooks", str(hooks)]
    here.settings.write_text(json.dumps(settings))
    here.policy(POLICY)

    run = here.prompt([here.when_warm([bash("touch this")]), [here.write(".env")], "Done.", "Done."], words=AS_ROWS)

    assert (run.exit_code, run.stderr, run.asked) == (0, "", ["main"] * 4)
    refusal = "PreToolUse:Write hook error: Secrets are set by hand."
    assert run.requests[-1].results == ["please", refusal]
    assert not (here.project / "this").exists()
    gates = [event for event in here.happened() if event.event == "PreToolUse"]
    assert [(event.route, event.verdict) for event in gates] == [("cold", "said"), ("cold", "blocked")]


def test_the_installer_asks_the_client_for_its_version_and_uninstall_leaves_it_unguarded(client: Path) -> None:
    with machine(client) as here:
        installed = here.fairlead("hooks", "install")
        events = len(json.loads(here.settings.read_text())["hooks"])
        version = sealed.run([client, "--version"], folder=here.folder).stdout.partition(" ")[0]
        assert installed.stdout.startswith(f"installed in {here.settings}: {events} events of Claude Code {version}\n")
        assert here.fairlead("hooks", "status", "--scope", "user").exit_code == 0

        here.fairlead("hooks", "uninstall", "--yes")
        here.policy(POLICY)
        run = here.prompt([[here.write(".env")], "Done."])

        assert (run.exit_code, run.stdout, run.stderr) == (0, "Done.\n", "")
        assert (here.project / ".env").exists()
        assert here.happened() == []
