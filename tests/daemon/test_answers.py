"""Questions that a person answers outside of the client: with the real launcher and daemon."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from daemon.asking import ALLOW, ask, call_of, questions, start_hook, turn_on
from daemon.clients import client
from daemon.daemon_home import FAIRLEAD, DaemonHome, scratch_home, until

from fairlead.ipc import RequestRefused
from fairlead.journal import CommandsRecord

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from daemon.asking import Asking

QUESTIONS = [
    {
        "question": "Which colour?",
        "header": "Colour",
        "multiSelect": False,
        "options": [{"label": "Red"}, {"label": "Blue"}],
    },
    {"question": "Which fruits?", "multiSelect": True, "options": [{"label": "Apple"}, {"label": "Pear"}]},
]


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    with scratch_home() as made:
        turn_on(made)
        with made.daemon():
            yield made


def denial(message: str) -> object:
    decision = {"behavior": "deny", "message": message}
    return {"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}}


def answers(home: DaemonHome) -> list[CommandsRecord]:
    return [record for record in home.journal() if isinstance(record, CommandsRecord)]


def state_of(home: DaemonHome, session: str = "s1") -> str:
    rows = {row["id"]: row for row in home.ask("GET", "/v1/sessions")["sessions"]}
    return str(rows[session]["state"]["is"]) if session in rows else ""


def daemon_of(home: DaemonHome) -> int:
    return int((home.state / "run/daemon.lock").read_text())


def fairlead(home: DaemonHome, *words: str) -> tuple[int, str, str]:
    done = home.fairlead(*words)
    return done.exit_code, done.stdout, done.stderr


# -- answers -------------------------------------------------------------------------------------------


def test_a_person_allows_a_call_and_the_journal_says_who(home: DaemonHome) -> None:
    asking = ask(home)
    assert asking.is_waiting
    until(lambda: state_of(home) == "attention", "the session waits for the person")

    done = fairlead(home, "answer", asking.id, "allow")

    assert done == (0, "allowed once: Bash: make\n", "")
    assert asking.ends() == ALLOW
    (record,) = answers(home)
    asked = home.happened()[-1]
    assert (record.id, record.verdict, asked.event) == (asked.id, "allowed", "PermissionRequest")
    assert record.reason.startswith("allowed by ")
    assert ", with fairlead answer (pid " in record.reason
    until(lambda: state_of(home) == "working", "the session goes on")
    assert questions(home) == []


def test_a_denial_has_a_reason_for_the_agent(home: DaemonHome) -> None:
    first, second = ask(home), ask(home, "make install")
    assert fairlead(home, "answer", second.id, "deny", "--reason", "Not here.")[0] == 0
    assert second.ends() == denial("Not here.")
    assert fairlead(home, "answer", first.id, "deny") == (0, "denied: Bash: make\n", "")
    assert first.ends() == denial("The user denied this request.")
    assert [record.verdict for record in answers(home)] == ["blocked", "blocked"]
    assert answers(home)[0].reason.endswith(": Not here.")


def test_the_list_shows_what_is_asked_and_nothing_harmful(home: DaemonHome) -> None:
    assert fairlead(home, "answer") == (0, "no open questions\n", "")
    asking = ask(home, "make \x1b[31m\nmake install", agent_id="a1", agent_type="Explore")

    _, out, _ = fairlead(home, "answer")

    lines = out.splitlines()
    assert lines[0].startswith(f"{asking.id}  Bash  Explore of project  for ")
    assert lines[2] == "  make install"
    assert "\x1b" not in out
    (listed,) = json.loads(fairlead(home, "answer", "--json")[1])["questions"]
    assert (listed["id"], listed["session"], listed["agent"]) == (asking.id, "s1", "a1")
    assert listed["text"] == "make \x1b[31m\nmake install"
    asking.is_killed()


def test_a_question_of_the_agent_is_answered_by_text_and_number(home: DaemonHome) -> None:
    asking = ask(home, tool_name="AskUserQuestion", tool_input={"questions": QUESTIONS})
    _, shown, _ = fairlead(home, "answer")
    assert shown.splitlines()[1:] == [
        *("  Which colour?", "    1 Red", "    2 Blue"),
        *("  Which fruits? (several)", "    1 Apple", "    2 Pear"),
    ]
    code, _, err = fairlead(home, "answer", asking.id, "allow")
    assert (code, err) == (
        1,
        "fairlead: 2 to choose, and 0 chosen; choose one for each question, in order\n",
    )

    assert fairlead(home, "answer", asking.id, "allow", "--choose", "2", "--choose", "apple, 2")[0] == 0

    decision = asking.ends()["hookSpecificOutput"]["decision"]
    assert decision["updatedInput"]["answers"] == {"Which colour?": "Blue", "Which fruits?": "Apple, Pear"}


def test_a_plan_is_allowed_with_its_input_as_the_client_wants_it(home: DaemonHome) -> None:
    asking = ask(home, tool_name="ExitPlanMode", tool_input={"plan": "1. Do it"})
    asking.answer()
    assert asking.ends()["hookSpecificOutput"]["decision"] == {
        "behavior": "allow",
        "updatedInput": {"plan": "1. Do it"},
    }


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["zzzzz", "allow"], "no open question has the id 'zzzzz'"),
        (["zzzzz"], "allow or deny? fairlead answer zzzzz allow|deny"),
        (["../x", "deny"], "'../x' is no id of a question"),
        (["zzzzz", "yes"], "expected one of allow, deny, got 'yes'"),
        (["zzzzz", "allow", "--reason", "x"], "--reason is for deny"),
        (["--reason", "x"], "--reason and --choose need the id of a question"),
    ],
)
def test_what_is_no_answer_is_refused(home: DaemonHome, words: list[str], error: str) -> None:
    code, out, err = fairlead(home, "answer", *words)
    assert (code != 0, out) == (True, "")
    assert error in err


def test_a_question_is_answered_once(home: DaemonHome) -> None:
    asking = ask(home)
    asking.answer("deny")
    with pytest.raises(RequestRefused) as refused:
        asking.answer("allow")
    assert refused.value.status == 404
    assert asking.ends() == denial("The user denied this request.")
    assert len(answers(home)) == 1


# -- who may answer ------------------------------------------------------------------------------------


def below_client(home: DaemonHome, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command below a shell that has the client's name."""
    shell = home.folder / "claude"
    if not shell.exists():
        shell.symlink_to("/bin/sh")
    line = [str(shell), "-c", f"{' '.join(words)}; exit $?"]
    return subprocess.run(line, env=home.environment(), cwd=home.project, capture_output=True, text=True, check=False)


def test_an_agent_cannot_answer(home: DaemonHome) -> None:
    asking = ask(home)
    refused = below_client(home, [str(FAIRLEAD), "answer", asking.id, "allow"])
    assert refused.returncode == 1
    assert refused.stderr == "fairlead: only a person can answer, not a session of Claude Code\n"
    assert asking.is_waiting
    assert questions(home)[0]["id"] == asking.id
    assert answers(home) == []
    asking.is_killed()


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"])
def test_a_process_with_the_variables_of_a_session_cannot_answer(home: DaemonHome, variable: str) -> None:
    asking = ask(home)
    done = home.fairlead("answer", asking.id, "allow", **{variable: "1"})
    assert (done.exit_code, "only a person can answer" in done.stderr) == (1, True)
    assert asking.is_waiting
    asking.is_killed()


def test_who_has_gone_when_the_daemon_looks_has_not_answered(home: DaemonHome, tmp_path: Path) -> None:
    """A process that sends its answer and ends could have had any parent."""
    asking = ask(home)
    script = tmp_path / "send.py"
    body = b'{"decision": "allow"}'
    head = b"POST /v1/answers/%b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (asking.id.encode(), len(body))
    script.write_text(
        "import os, socket\n"
        "connection = socket.socket(socket.AF_UNIX)\n"
        f"connection.connect({str(home.socket)!r})\n"
        f"os.kill({daemon_of(home)}, 19)\n"  # SIGSTOP: it reads when the sender has gone
        f"connection.sendall({head + body!r})\n"
    )
    subprocess.run([sys.executable, str(script)], check=True)
    os.kill(daemon_of(home), signal.SIGCONT)
    fairlead(home, "answer", asking.id, "deny")
    assert asking.ends() == denial("The user denied this request.")
    assert [record.verdict for record in answers(home)] == ["blocked"]


# -- the client's own question stays ---------------------------------------------------------------------


def test_it_is_off_by_default() -> None:
    with scratch_home() as home, home.daemon():
        assert ask(home).ends() is None
        code, out, _ = fairlead(home, "answer")
        assert code == 0
        assert out.startswith("no open questions: questions can be answered in the client alone; set `attention:")


def test_when_the_time_is_up_the_clients_question_stays(home: DaemonHome) -> None:
    turn_on(home, "attention: {answer: true, answerTimeout: 1}\n")
    assert ask(home).ends() is None
    assert answers(home) == []


def test_a_client_without_a_terminal_does_not_wait(home: DaemonHome) -> None:
    hook = start_hook(home, "PermissionRequest", call_of(home), CLAUDE_CODE_ENTRYPOINT="sdk-cli")
    assert hook.communicate(timeout=30)[0] == b""


def test_a_hook_that_the_client_ends_is_no_longer_asked_about(home: DaemonHome) -> None:
    """Escape, or the client's timeout: SIGTERM."""
    asking = ask(home)
    asking.is_killed(signal.SIGTERM)
    until(lambda: not questions(home), "the question is gone")


def test_a_client_that_is_killed_asks_nothing_any_more(home: DaemonHome) -> None:
    """Its hook lives on, and nobody would read what it prints."""
    with client(home, "s1", CLAUDE_CODE_SESSION_ATTENDED="1") as fox:
        fox.hook("SessionStart", source="startup")
        hook = fox.begin("PermissionRequest", tool_name="Bash", tool_input={"command": "make"})
        until(lambda: len(questions(home)) == 1, "the question can be answered")
        pid = hook.pid
        fox.kill()
        until(lambda: questions(home) == [], "the question is gone")
        until(lambda: not is_alive(pid), "its hook has ended")
    assert answers(home) == []


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_daemon_leaves_the_question_to_the_client(home: DaemonHome) -> None:
    asking = ask(home)
    os.kill(daemon_of(home), signal.SIGKILL)
    assert asking.ends() is None


def test_a_daemon_that_stops_leaves_the_question_to_the_client(home: DaemonHome) -> None:
    asking = ask(home)
    assert home.fairlead("daemon", "stop", "--yes").exit_code == 0
    assert asking.ends() is None


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ("PostToolUse", {"tool_response": {}}),
        ("PostToolUseFailure", {"error": "x"}),
        ("PostToolBatch", {"tool_calls": []}),
        ("Stop", {}),
        ("UserPromptSubmit", {"prompt": "go"}),
        ("SessionEnd", {"reason": "other"}),
    ],
)
def test_what_was_answered_in_the_client_is_over(home: DaemonHome, event: str, fields: dict[str, Any]) -> None:
    asking = ask(home)
    home.hook(event, call_of(home, event, **fields))
    assert asking.ends() is None
    assert answers(home) == []


def test_a_call_in_parallel_and_another_agent_end_no_question(home: DaemonHome) -> None:
    asking = ask(home)
    home.hook("PostToolUse", call_of(home, "PostToolUse", "make test", tool_response={}))
    home.hook("PostToolUse", call_of(home, "PostToolUse", agent_id="a1", tool_response={}))
    home.hook("Stop", home.payload(hook_event_name="Stop", session_id="s2"))
    assert _allowed(asking)


def _allowed(asking: Asking) -> bool:
    asking.answer()
    return bool(asking.ends() == ALLOW)


def test_what_the_policy_denies_is_not_asked(home: DaemonHome) -> None:
    home.policy("permissionRequest:\n  default: allow\n  deny: [Bash]\n")
    asking = ask(home)
    decision = asking.ends()["hookSpecificOutput"]["decision"]
    assert decision["behavior"] == "deny"
    assert answers(home) == []
