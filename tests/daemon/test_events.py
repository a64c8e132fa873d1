"""What the launcher gets from the daemon: a verdict to print (200), or commands to run in its own place (202)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home, until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome, Done

    from fairlead.journal import EventRecord

POLICY = """\
preToolUse:
  uneditableFiles: ["kept.txt"]
  unreadableFiles: [".env"]
permissionRequest: {default: deny, allow: [Read]}
userPromptSubmit:
  contextRules:
    - {pattern: sidebar, prompt: "Read the guide."}
subagentStart:
  context: {"*": "Be brief."}
"""


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    """A home with a policy, and a daemon that answers by it."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        made.policy(POLICY)
        with made.daemon():
            yield made


def last(home: DaemonHome) -> EventRecord:
    """The event that was written down last; it must have been decided by the daemon."""
    record = home.happened()[-1]
    assert record.route == "daemon"
    return record


def decided_without(home: DaemonHome, event: str, payload: bytes) -> Done:
    """The answer without a daemon; what is spooled of it lies where this one's daemon does not take it in."""
    return home.cold(event, payload, FAIRLEAD_HOME=str(home.folder / "elsewhere"))


# -- verdicts ------------------------------------------------------------------------------------------


def test_a_denial_is_on_stdout_on_stderr_and_in_the_exit_code(home: DaemonHome) -> None:
    done = home.hook("PreToolUse", home.edit("kept.txt"))

    why = "Blocked Edit operation: file matches preToolUse.uneditableFiles pattern 'kept.txt'. File: "
    assert done.exit_code == 2
    assert done.answer["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": f"{why}{home.project}/kept.txt",
    }
    assert done.stderr == f"{why}{home.project}/kept.txt\n"
    record = last(home)
    assert (record.verdict, record.exit, record.reason, record.tool) == ("blocked", 2, done.stderr[:-1], "Edit")


def test_where_there_is_nothing_to_say_nothing_is_said(home: DaemonHome) -> None:
    done = home.hook("PreToolUse", home.edit("src/a.txt"))

    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
    assert last(home).verdict == "none"


def test_a_question_is_the_clients_to_ask(home: DaemonHome) -> None:
    done = home.hook("PreToolUse", home.payload(tool_name="Bash", tool_input={"command": "eval $SOMETHING > $FILE"}))

    assert done.exit_code == 0
    assert done.answer["hookSpecificOutput"]["permissionDecision"] == "ask"
    assert last(home).verdict == "asked"


def test_context_goes_to_the_model(home: DaemonHome) -> None:
    prompt = home.payload(hook_event_name="UserPromptSubmit", prompt="Mend the sidebar.")
    done = home.hook("UserPromptSubmit", prompt)

    assert done.answer["hookSpecificOutput"]["additionalContext"] == "Read the guide."
    assert last(home).verdict == "said"


def test_a_permission_is_granted_by_the_daemon(home: DaemonHome) -> None:
    asked = {"hook_event_name": "PermissionRequest", "tool_name": "Read", "tool_input": {"file_path": "/srv/x"}}
    done = home.hook("PermissionRequest", home.payload(**asked))

    assert done.answer["hookSpecificOutput"]["decision"]["behavior"] == "allow"
    assert last(home).verdict == "allowed"


def test_a_subagent_gets_its_context(home: DaemonHome) -> None:
    start = home.payload(hook_event_name="SubagentStart", agent_id="a1", agent_type="coder")
    done = home.hook("SubagentStart", start)

    assert done.answer["hookSpecificOutput"]["additionalContext"] == "Be brief."
    assert last(home).agent == "a1"


def test_the_name_of_an_event_may_be_written_in_other_ways(home: DaemonHome) -> None:
    for word in ("pretooluse", "PRETOOLUSE"):
        assert home.hook(word, home.edit("kept.txt")).exit_code == 2
        assert last(home).event == "PreToolUse"


def test_who_called_is_written_down(home: DaemonHome) -> None:
    more = {"TMUX": "/run/t,1,2", "TMUX_PANE": "%7", "CLAUDE_PROJECT_DIR": "/a b;c=d%", "CLAUDE_PID": "4711"}
    home.hook("PreToolUse", home.edit("src/a.txt"), **more)

    caller = last(home).caller
    assert (caller.pid, caller.tmux, caller.pane, caller.project) == (4711, "/run/t,1,2", "%7", "/a b;c=d%")
    assert caller.version == "0.1.0"


# -- payloads ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "payload: empty; expected a JSON object"),
        (b"{", "payload: not valid JSON"),
        (b"[]", "payload: expected a JSON object, got"),
        (b'{"session_id": "s"}', "PreToolUse: missing required field `tool_name`"),
        (b'{"session_id": "s", "hook_event_name": "Stop"}', "hook_event_name: expected PreToolUse, got Stop"),
    ],
)
def test_a_payload_that_cannot_be_read_shuts_the_gate(home: DaemonHome, payload: bytes, message: str) -> None:
    done = home.hook("PreToolUse", payload)

    assert done.exit_code == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done == decided_without(home, "PreToolUse", payload)
    assert last(home).verdict == "failed"


def test_where_nothing_can_be_blocked_a_bad_payload_is_an_error(home: DaemonHome) -> None:
    done = home.hook("SessionEnd", b"{")

    assert done.exit_code == 1
    assert done == decided_without(home, "SessionEnd", b"{")


def test_an_event_that_nobody_knows_yet_is_answered_and_kept(home: DaemonHome) -> None:
    tomorrow = home.payload(hook_event_name="MoonRise", phase="full")
    done = home.hook("MoonRise", tomorrow)

    assert done.exit_code == 0
    assert last(home).event == "MoonRise"
    assert bytes(last(home).payload) == tomorrow


def test_a_slip_of_the_pen_is_no_new_event(home: DaemonHome) -> None:
    done = home.hook("PreTolUse", home.edit("kept.txt"))

    assert done.exit_code == 2
    assert "did you mean PreToolUse" in done.stderr


def test_a_large_payload_is_decided_whole_and_kept_in_part(home: DaemonHome) -> None:
    big = {"file_path": str(home.project / "kept.txt"), "content": "x" * 1_000_000}
    done = home.hook("PreToolUse", home.payload(tool_name="Write", tool_input=big))

    assert done.exit_code == 2
    record = last(home)
    assert record.cut
    assert len(bytes(record.payload)) < 20_000
    assert json.loads(bytes(record.payload))["tool_name"] == "Write"


def test_a_client_that_is_not_known_is_refused_by_the_cold_road(home: DaemonHome) -> None:
    answered = len(home.happened())
    done = home.hook("PreToolUse", home.edit("src/a.txt"), "--client", "emacs")

    assert done.exit_code == 2
    assert "--client: expected one of claude, got 'emacs'" in done.stderr
    assert len(home.happened()) == answered


# -- words for Python ----------------------------------------------------------------------------------


def test_hooks_that_are_named_are_run_by_the_cold_road(home: DaemonHome) -> None:
    (home.folder / "guards.py").write_text(
        "from fairlead import HookManager, HookOutput, PreToolUse\n"
        "hooks = HookManager()\n"
        "@hooks.on(PreToolUse)\n"
        "def never(event):\n"
        "    return HookOutput.deny('Never.')\n"
    )
    done = home.hook("PreToolUse", home.edit("src/a.txt"), "--hooks", str(home.folder / "guards.py"))

    assert (done.exit_code, done.stderr) == (2, "Never.\n")
    until(lambda: not home.spooled(), "the daemon has taken it in")
    assert home.happened()[-1].route == "cold"


def test_rules_that_are_named_are_run_by_the_cold_road(home: DaemonHome) -> None:
    rule = {"type": "command", "command": "echo No. >&2; exit 2"}
    rules = home.folder / "rules.json"
    rules.write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [rule]}]}}))

    done = home.hook("PreToolUse", home.edit("src/a.txt"), "--rules", str(rules))

    assert (done.exit_code, done.stderr) == (2, "No.\n")


# -- whose settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", ["settings of mine", "../settings"])
def test_the_settings_of_the_caller_are_protected(home: DaemonHome, folder: str) -> None:
    """The daemon has no CLAUDE_CONFIG_DIR, or another one."""
    file = (home.project / folder / "settings.json").resolve()
    where = folder if folder.startswith(".") else str(file.parent)
    write = home.payload(tool_name="Write", tool_input={"file_path": str(file), "content": "{}"})

    assert home.hook("PreToolUse", write).exit_code == 0
    assert home.hook("PreToolUse", write, CLAUDE_CONFIG_DIR=where).exit_code == 2
    assert last(home).verdict == "blocked"
    assert home.hook("PreToolUse", write).exit_code == 0
