"""Command hooks: their input, what their answer means, and that they never outlive their timeout."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import pytest

from fairlead import (
    CommandFailed,
    CommandHook,
    Event,
    HookCancelled,
    HookContext,
    HookManager,
    HookOutput,
    HookTimeout,
    PreToolUse,
    RegistrationError,
    UserPromptSubmit,
    parse,
    post_tool_use,
    pre_tool_use,
    session_start,
    stop,
    user_prompt_submit,
)
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead import HookResult, HookRun

    Fire = Callable[[HookManager, Event, HookContext | None], HookResult]

LS = pre_tool_use("s1", "Bash", {"command": "ls"})
LARGE = pre_tool_use("s1", "Write", {"content": "x" * 3_000_000})


def fire_async(manager: HookManager, event: Event, ctx: HookContext | None) -> HookResult:
    return asyncio.run(manager.fire(event, ctx))


def fire_sync(manager: HookManager, event: Event, ctx: HookContext | None) -> HookResult:
    return manager.fire_sync(event, ctx)


@pytest.fixture(params=[fire_async, fire_sync], ids=["fire", "fire_sync"])
def fire(request: pytest.FixtureRequest) -> Fire:
    """Both ways to fire an event."""
    way: Fire = request.param
    return way


def manager_of(command: str, **options: Any) -> HookManager:
    manager = HookManager()
    manager.register(CommandHook("guard", command, (Event,), **options))
    return manager


def result_of(command: str, event: Event = LS, ctx: HookContext | None = None, **options: Any) -> HookResult:
    return manager_of(command, **options).fire_sync(event, ctx)


def only_run(result: HookResult) -> HookRun:
    (run,) = result.runs
    return run


def printing(text: str) -> dict[str, Any]:
    """Make the options of a hook that prints exactly this, without a shell in between."""
    return {"command": "printf", "args": ["%s", text]}


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    give_up = monotonic() + seconds
    while not condition():
        assert monotonic() < give_up, "the condition did not come true in time"
        sleep(0.005)


def pid_in(file: Path) -> int:
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text())


def is_gone(pid: int) -> bool:
    """Whether nothing runs under that number; a zombie that waits for a lazy init to reap it is gone too."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return True
    except FileNotFoundError:  # no /proc, or gone in between: ask again
        return False
    return state == "Z"


def open_files() -> int:
    return len(list(Path("/dev/fd").iterdir()))


# -- its input -----------------------------------------------------------------------------------------


def test_it_reads_the_documents_keys_and_the_clients_on_its_stdin(fire: Fire, tmp_path: Path) -> None:
    payload = make_payload("PreToolUse", tool_name="MultiEdit", tool_input={"edits": [{"a": [1, [2]]}]})
    event = parse(payload)

    fire(manager_of("cat > stdin.json"), event, HookContext("s1", cwd=str(tmp_path)))

    assert json.loads((tmp_path / "stdin.json").read_text()) == {**payload, "event": "pre_tool_use"}


def test_a_key_that_we_do_not_know_reaches_the_command(tmp_path: Path) -> None:
    event = parse({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "X", "tool_input": {}, "new": [1]})

    result_of("cat > stdin.json", event, HookContext("s", cwd=str(tmp_path)))

    assert json.loads((tmp_path / "stdin.json").read_text())["new"] == [1]


def test_file_changed_keeps_its_own_event(tmp_path: Path) -> None:
    event = parse({**make_payload("FileChanged"), "event": "unlink"})

    result_of("cat > stdin.json", event, HookContext("s1", cwd=str(tmp_path)))

    payload = json.loads((tmp_path / "stdin.json").read_text())
    assert (payload["event"], payload["hook_event_name"]) == ("unlink", "FileChanged")


def test_a_rewrite_by_a_hook_before_it_is_what_it_reads(fire: Fire, tmp_path: Path) -> None:
    manager = manager_of("cat > stdin.json")
    manager.register(CommandHook("fix", "printf", (Event,), phase="rewrite", args=["%s", '{"updated_input":{"a":2}}']))

    fire(manager, LS, HookContext("s1", cwd=str(tmp_path)))

    assert json.loads((tmp_path / "stdin.json").read_text())["tool_input"] == {"a": 2}


@pytest.mark.parametrize(
    ("event", "name"),
    [
        (LS, "pre_tool_use"),
        (parse(make_payload("FileChanged")), "file_changed"),
        (parse({"hook_event_name": "BrandNew", "session_id": "s"}), "brand_new"),
    ],
    ids=["known", "with a field `event`", "newer than we are"],
)
def test_the_events_name_is_in_its_environment(event: Event, name: str, tmp_path: Path) -> None:
    result_of('printf %s "$EVENT" > name', event, HookContext("s", cwd=str(tmp_path)))

    assert (tmp_path / "name").read_text() == name


def test_the_contexts_variables_lie_over_the_process_and_the_hooks_over_both(
    fire: Fire, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("A", "B", "C"):
        monkeypatch.setenv(name, "process")
    manager = manager_of('echo "$A $B $C"', env={"C": "hook"})

    result = fire(manager, session_start("s1"), HookContext("s1", env={"B": "context", "C": "context"}))

    assert result.output.additional_context == "process context hook"


# -- where it runs -------------------------------------------------------------------------------------


def folder(parent: Path, name: str) -> str:
    path = parent / name
    path.mkdir()
    return str(path.resolve())


def start_in(cwd: str | None) -> Event:
    return parse({"hook_event_name": "SessionStart", "session_id": "s1", **({"cwd": cwd} if cwd else {})})


def test_it_runs_where_the_context_says(fire: Fire, tmp_path: Path) -> None:
    ours, theirs = folder(tmp_path, "ours"), folder(tmp_path, "theirs")

    result = fire(manager_of("pwd -P"), start_in(theirs), HookContext("s1", cwd=ours))

    assert result.output.additional_context == ours


@pytest.mark.parametrize("ctx", [None, HookContext("s1")], ids=["no context", "context without a folder"])
def test_else_it_runs_where_the_agent_is(ctx: HookContext | None, tmp_path: Path) -> None:
    theirs = folder(tmp_path, "theirs")

    assert result_of("pwd -P", start_in(theirs), ctx).output.additional_context == theirs


def test_if_the_agents_folder_is_gone_it_runs_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = folder(tmp_path, "here")
    monkeypatch.chdir(here)

    assert result_of("pwd -P", start_in(str(tmp_path / "gone"))).output.additional_context == here


def test_if_the_callers_folder_is_gone_it_fails(fire: Fire, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")

    run = only_run(fire(manager_of("true"), LS, HookContext("s1", cwd=gone)))

    assert isinstance(run.error, CommandFailed)
    expected = f"cannot start '/bin/sh' in {gone}: [Errno 2] No such file or directory: '{gone}'"
    assert (run.outcome, str(run.error)) == ("failed", expected)


# -- how it ends ---------------------------------------------------------------------------------------


def test_exit_0_without_output_allows(fire: Fire) -> None:
    result = fire(manager_of("exit 0"), LS, None)

    assert (result.output, only_run(result).outcome) == (HookOutput.allow(), "allowed")


def test_exit_2_blocks_with_stderr_as_the_reason(fire: Fire) -> None:
    result = fire(manager_of("echo 'not in this house' >&2; exit 2"), LS, None)

    assert (result.output, only_run(result).outcome) == (HookOutput.block("not in this house"), "blocked")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("""echo '{"decision":"block","reason":"said in JSON"}'; exit 2""", "said in JSON"),
        ("""echo '{"stop_reason":"said in JSON","continue_execution":false}'; exit 2""", "said in JSON"),
        ("""echo '{"decision":"block","reason":"JSON"}'; echo loud >&2; exit 2""", "loud"),
        ("""echo '{"decision":"blo'; exit 2""", "blocked by a command that gave no reason"),
        ("echo plain; exit 2", "blocked by a command that gave no reason"),
        ("exit 2", "blocked by a command that gave no reason"),
    ],
)
def test_exit_2_finds_its_reason_on_stderr_then_in_the_json(command: str, reason: str) -> None:
    assert result_of(command).output == HookOutput.block(reason)


def test_exit_2_wins_over_json_that_allows() -> None:
    command = """echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'; exit 2"""

    assert result_of(command).blocked


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("exit 1", "the command ended with exit code 1"),
        ("echo first >&2; echo second >&2; exit 1", "the command ended with exit code 1: first"),
        ("exit 127", "the command ended with exit code 127"),
        ("kill -KILL $$", "the command was killed by signal 9"),
        ("kill -TERM $$", "the command was killed by signal 15"),
        ("""echo '{"decision":"approve"}'; exit 1""", "the command ended with exit code 1"),
    ],
)
def test_any_other_end_is_a_failure_and_denies_on_a_gate(command: str, error: str) -> None:
    result = result_of(command)

    run = only_run(result)
    assert isinstance(run.error, CommandFailed)
    assert (run.outcome, str(run.error)) == ("failed", error)
    assert result.output == HookOutput.deny(f"hook 'guard' failed, so this is denied: {error}")


def test_a_failure_is_reported_and_decides_nothing_where_there_is_no_gate(
    fire: Fire, caplog: pytest.LogCaptureFixture
) -> None:
    result = fire(manager_of("exit 1"), post_tool_use("s1", "Bash", "done"), None)

    assert (result.output, only_run(result).outcome) == (HookOutput.allow(), "failed")
    assert caplog.messages == ["hook 'guard' failed on PostToolUse: the command ended with exit code 1"]


def test_json_that_denies_keeps_its_reason_whatever_the_exit_code() -> None:
    assert result_of("""echo '{"decision":"block","reason":"mine"}'; exit 1""").output == HookOutput.deny("mine")


def test_a_program_that_the_shell_does_not_find_is_a_failure() -> None:
    result = result_of("no-such-program-here")

    assert result.blocked
    assert str(only_run(result).error).startswith("the command ended with exit code 127: ")


# -- what it answers -----------------------------------------------------------------------------------


def specific(event: str = "PreToolUse", **keys: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **keys}}


ANSWERS: dict[str, tuple[dict[str, Any], HookOutput]] = {
    "an empty object": ({}, HookOutput.allow()),
    "decision block": ({"decision": "block", "reason": "no"}, HookOutput.deny("no")),
    "decision block without a reason": (
        {"decision": "block"},
        HookOutput.deny("denied by a command that gave no reason"),
    ),
    "decision approve": ({"decision": "approve", "reason": "known"}, HookOutput.grant("known")),
    "decision approve without a reason": ({"decision": "approve"}, HookOutput.grant()),
    "continue false": (
        {"continue": False, "stopReason": "enough"},
        HookOutput(continue_execution=False, stop_reason="enough", extra={"continue": False}),
    ),
    "continue true": ({"continue": True}, HookOutput.allow()),
    "permissionDecision allow": (
        specific(permissionDecision="allow", permissionDecisionReason="known"),
        HookOutput.grant("known"),
    ),
    "permissionDecision deny": (
        specific(permissionDecision="deny", permissionDecisionReason="no"),
        HookOutput.deny("no"),
    ),
    "permissionDecision ask": (
        specific(permissionDecision="ask", permissionDecisionReason="sure?"),
        HookOutput.ask("sure?"),
    ),
    "permissionDecision defer": (
        specific(permissionDecision="defer", permissionDecisionReason="later"),
        HookOutput.defer("later"),
    ),
    "permissionDecision deny without a reason": (
        specific(permissionDecision="deny"),
        HookOutput.deny("denied by a command that gave no reason"),
    ),
    "permissionDecision ask without a reason": (
        specific(permissionDecision="ask"),
        HookOutput.ask("a command wants you to decide"),
    ),
    "no hookEventName": (
        {"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "no"}},
        HookOutput.deny("no"),
    ),
    "updatedInput": (
        specific(updatedInput={"command": "ls -l"}),
        HookOutput(updated_input={"command": "ls -l"}),
    ),
    "additionalContext": (specific(additionalContext="mind the gap"), HookOutput(additional_context="mind the gap")),
    "systemMessage": ({"systemMessage": "hello"}, HookOutput(system_message="hello")),
    "suppressOutput": ({"suppressOutput": True}, HookOutput(suppress_logging=True)),
    "terminalSequence": ({"terminalSequence": "\a"}, HookOutput(extra={"terminalSequence": "\a"})),
    "an unknown key of the event": (specific(newKey={"a": [1]}), HookOutput(extra={"newKey": {"a": [1]}})),
    "an unknown key at the top": ({"newKey": 1}, HookOutput.allow()),
    "the document's block": (
        {"continue_execution": False, "stop_reason": "Dangerous command blocked", "updated_input": None},
        HookOutput.block("Dangerous command blocked"),
    ),
    "every key of the document": (
        {
            "continue_execution": True,
            "suppress_logging": True,
            "system_message": "hello",
            "updated_input": {"command": "ls"},
            "additional_context": "mind the gap",
        },
        HookOutput(
            suppress_logging=True,
            system_message="hello",
            updated_input={"command": "ls"},
            additional_context="mind the gap",
        ),
    ),
    "both: the document blocks, the client's key allows": (
        {"continue_execution": False, "stop_reason": "no", **specific(permissionDecision="allow")},
        HookOutput(continue_execution=False, stop_reason="no", permission="allow"),
    ),
    "both: the document allows, the client's key denies": (
        {"continue_execution": True, **specific(permissionDecision="deny", permissionDecisionReason="no")},
        HookOutput.deny("no"),
    ),
    "both: contexts add up": (
        {"additional_context": "one", **specific(additionalContext="two")},
        HookOutput(additional_context="one\ntwo"),
    ),
    "half a surrogate pair": ({"systemMessage": "\ud83d"}, HookOutput(system_message="\ud83d")),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_in_json_means(answer: str) -> None:
    document, expected = ANSWERS[answer]

    assert result_of(**printing(json.dumps(document))).output == expected


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ({"behavior": "allow"}, HookOutput.grant()),
        (
            {"behavior": "allow", "updatedInput": {"command": "ls"}, "updatedPermissions": [{"type": "setMode"}]},
            HookOutput(
                permission="allow", updated_input={"command": "ls"}, extra={"updatedPermissions": [{"type": "setMode"}]}
            ),
        ),
        ({"behavior": "deny"}, HookOutput.deny("denied by a command that gave no reason")),
        (
            {"behavior": "deny", "message": "no", "interrupt": True},
            HookOutput(
                continue_execution=False,
                stop_reason="no",
                permission="deny",
                permission_reason="no",
                extra={"interrupt": True},
            ),
        ),
    ],
    ids=["allow", "allow with changes", "deny", "deny and interrupt"],
)
def test_a_decision_about_a_permission_request_means(decision: dict[str, Any], expected: HookOutput) -> None:
    event = parse(make_payload("PermissionRequest"))
    document = specific("PermissionRequest", decision=decision)

    assert result_of(event=event, **printing(json.dumps(document))).output == expected


def test_a_new_output_of_a_tool_is_kept_for_the_client() -> None:
    event = post_tool_use("s1", "Bash", {"stdout": "secret"})
    document = specific("PostToolUse", updatedToolOutput={"stdout": "***"})

    output = result_of(event=event, **printing(json.dumps(document))).output

    assert output == HookOutput(extra={"updatedToolOutput": {"stdout": "***"}})


def test_blanks_and_line_ends_around_the_json_do_not_matter() -> None:
    assert result_of(**printing('\n \t{"decision":"block","reason":"no"}\r\n\n')).output == HookOutput.deny("no")


def test_json_may_span_lines() -> None:
    text = json.dumps({"decision": "block", "reason": "no"}, indent=2)

    assert result_of(**printing(text)).output == HookOutput.deny("no")


def test_a_byte_order_mark_does_not_hide_a_denial() -> None:
    """The client trims it, so a script that prints one blocks there; it must here."""
    assert result_of(**printing('\ufeff{"decision":"block","reason":"no"}')).output == HookOutput.deny("no")


@pytest.mark.parametrize("event", [session_start("s1"), user_prompt_submit("s1", "hi")], ids=lambda e: e.event_name)
def test_plain_text_is_context_where_the_client_takes_it(event: Event) -> None:
    assert result_of("echo ' line 1'; echo 'line 2'", event).output == HookOutput(additional_context="line 1\nline 2")


def test_plain_text_is_context_on_an_expansion_too() -> None:
    event = parse(make_payload("UserPromptExpansion"))

    assert result_of("echo mind the gap", event).output == HookOutput(additional_context="mind the gap")


@pytest.mark.parametrize("event", [LS, post_tool_use("s1", "Bash", ""), stop("s1")], ids=lambda e: e.event_name)
def test_plain_text_means_nothing_elsewhere(event: Event) -> None:
    result = result_of("echo all is well", event)

    assert (result.output, only_run(result).outcome) == (HookOutput.allow(), "allowed")


def test_text_that_is_not_utf_8_is_read_as_far_as_it_goes() -> None:
    assert (
        result_of(r"printf 'caf\351'", session_start("s1")).output.additional_context == "caf\N{REPLACEMENT CHARACTER}"
    )


# -- what it should not have answered ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "error"),
    [
        ('{"decision": ', "its output is not valid JSON: Input data was truncated"),
        ('{"a":1}\n{"b":2}', "its output is not valid JSON: JSON is malformed: trailing characters (byte 9)"),
        ("[" + '{"decision":"block"}' + "]", "its output is JSON, but not an object"),
        ('{"continue_execution": "false"}', "continue_execution: expected true or false, got str"),
        ('{"stop_reason": 1}', "stop_reason: expected a string, got int"),
        ('{"updated_input": [1]}', "updated_input: expected an object, got list"),
        ('{"continue": 0}', "continue: expected true or false, got int"),
        ('{"decision": true}', "decision: expected a string, got bool"),
        ('{"decision": "maybe"}', "decision: expected one of allow, approve, ask, block, deny, got 'maybe'"),
        ('{"hookSpecificOutput": "deny"}', "hookSpecificOutput: expected an object, got str"),
        (
            '{"hookSpecificOutput": {"hookEventName": "PostToolUse"}}',
            "hookEventName: expected PreToolUse, got PostToolUse",
        ),
        (
            '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "Deny"}}',
            "permissionDecision: expected one of allow, ask, defer, deny, got 'Deny'",
        ),
        ('{"hookSpecificOutput": {"decision": {}}}', "hookSpecificOutput.decision: missing `behavior`"),
        (
            '{"hookSpecificOutput": {"decision": {"behavior": "maybe"}}}',
            "behavior: expected one of allow, deny, got 'maybe'",
        ),
    ],
    ids=[
        "truncated JSON",
        "two documents",
        "a JSON list",
        "a string as flag",
        "a number as text",
        "a list as object",
        "a number as flag",
        "a flag as text",
        "an unknown decision",
        "a string as object",
        "another event's name",
        "an unknown permissionDecision",
        "a decision without behaviour",
        "an unknown behaviour",
    ],
)
def test_an_answer_that_cannot_be_understood_is_denied_on_a_gate(printed: str, error: str) -> None:
    result = result_of(**printing(printed))

    assert result.output == HookOutput.deny(f"hook 'guard' failed, so this is denied: {error}")
    assert (only_run(result).outcome, str(only_run(result).error)) == ("failed", error)


@pytest.mark.parametrize(
    "printed",
    [
        'loading…\n{"decision":"block","reason":"no"}',
        'loading…\r\n{"decision":"block","reason":"no"}\r\n',
        'loading…\n{\n  "decision": "block",\n  "reason": "no"\n}',
        'loading… {"decision":"block","reason":"no"}',
        'loading…\n{"decision":"blo',
    ],
    ids=["a line before", "a line before, as Windows ends it", "a line before JSON in lines", "same line", "truncated"],
)
def test_text_before_the_json_does_not_hide_a_denial(printed: str) -> None:
    """The client would take it for plain text, and let the call pass."""
    assert result_of(**printing(printed)).blocked


def test_text_before_the_json_does_not_hide_its_reason() -> None:
    assert result_of(**printing('loading…\n{"decision":"block","reason":"no"}')).reason == "no"


def test_text_with_braces_is_no_json() -> None:
    assert result_of("echo 'use {braces} well'").output == HookOutput.allow()


@pytest.mark.parametrize(
    "text",
    ['Where we are:\n{"branch": "main"}', 'Where we are:\n{"branch": "main"}\nTake care.', 'Log:\n{"like": this}'],
    ids=["JSON at the end", "JSON in the middle", "no JSON"],
)
@pytest.mark.parametrize("event", [session_start("s1"), user_prompt_submit("s1", "hi")], ids=lambda e: e.event_name)
def test_context_may_hold_json(event: Event, text: str) -> None:
    """The client gives the model everything that does not begin with a brace; no key here is an answer's."""
    assert result_of(event=event, **printing(text)).output == HookOutput(additional_context=text)


# -- input and output without end ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 0", HookOutput.allow()),
        ("echo no >&2; exit 2", HookOutput.block("no")),
        ('exec 0<&-; echo \'{"decision":"block","reason":"no"}\'', HookOutput.deny("no")),
    ],
    ids=["allows", "blocks", "closes its stdin"],
)
def test_a_command_need_not_read_its_input(fire: Fire, command: str, expected: HookOutput) -> None:
    assert fire(manager_of(command), LARGE, None).output == expected


def test_a_command_may_fill_its_stdout_before_it_reads_its_stdin(fire: Fire) -> None:
    command = "head -c 500000 /dev/zero | tr '\\0' x; test $(wc -c) -gt 3000000"

    result = fire(manager_of(command, timeout=20), LARGE, None)

    assert (only_run(result).outcome, result.output) == ("allowed", HookOutput.allow())


def test_an_echo_of_a_large_input_comes_back_whole(fire: Fire) -> None:
    event = parse({"hook_event_name": "SessionStart", "session_id": "s1", "source": "x" * 500_000})

    result = fire(manager_of("tr -d '{}'", timeout=20), event, None)

    assert len(result.output.additional_context or "") > 500_000


def test_more_output_than_is_kept_is_a_failure(fire: Fire) -> None:
    result = fire(manager_of("head -c 3000000 /dev/zero | tr '\\0' x"), LS, None)

    assert str(only_run(result).error) == "the command printed more than 1048576 bytes"
    assert result.blocked


def test_a_command_that_prints_without_end_is_not_waited_for(fire: Fire) -> None:
    start = monotonic()

    result = fire(manager_of("yes", timeout=20), LS, None)

    assert str(only_run(result).error) == "the command printed more than 1048576 bytes"
    assert monotonic() - start < 15


# -- time, and what is left behind ---------------------------------------------------------------------

FAMILY = "echo $$ > leader; sleep 30 & echo $! > child; wait"


def test_at_its_timeout_the_whole_group_is_killed(fire: Fire, tmp_path: Path) -> None:
    start = monotonic()

    result = fire(manager_of(FAMILY, timeout=1), LS, HookContext("s1", cwd=str(tmp_path)))

    run = only_run(result)
    assert isinstance(run.error, HookTimeout)
    assert (run.outcome, str(run.error)) == ("timed out", "the command did not end in time and was killed")
    assert result.blocked
    wait_until(lambda: is_gone(pid_in(tmp_path / "leader")) and is_gone(pid_in(tmp_path / "child")))
    assert monotonic() - start < 20


def test_a_command_that_ignores_the_polite_signal_is_killed_too(fire: Fire, tmp_path: Path) -> None:
    start = monotonic()

    result = fire(manager_of(f"trap '' TERM; {FAMILY}", timeout=1), LS, HookContext("s1", cwd=str(tmp_path)))

    assert only_run(result).outcome == "timed out"
    wait_until(lambda: is_gone(pid_in(tmp_path / "leader")) and is_gone(pid_in(tmp_path / "child")))
    assert monotonic() - start < 20


def test_a_command_may_clean_up_when_its_time_is_over(tmp_path: Path) -> None:
    command = "trap 'echo done > cleaned; exit' TERM; echo $$ > leader; while :; do sleep 0.05; done"

    result_of(command, LS, HookContext("s1", cwd=str(tmp_path)), timeout=1)

    assert (tmp_path / "cleaned").read_text() == "done\n"


def test_the_callers_deadline_counts_as_a_timeout(fire: Fire, tmp_path: Path) -> None:
    ctx = HookContext("s1", cwd=str(tmp_path), deadline=monotonic() + 1)

    assert only_run(fire(manager_of(FAMILY), LS, ctx)).outcome == "timed out"
    wait_until(lambda: is_gone(pid_in(tmp_path / "child")))


def test_cancellation_from_another_thread_kills_it_at_once(fire: Fire, tmp_path: Path) -> None:
    ctx = HookContext("s1", cwd=str(tmp_path))

    def cancel() -> None:
        pid_in(tmp_path / "child")
        ctx.cancellation.cancel()

    canceller = Thread(target=cancel)
    canceller.start()
    start = monotonic()
    result = fire(manager_of(FAMILY), LS, ctx)
    canceller.join()

    run = only_run(result)
    assert isinstance(run.error, HookCancelled)
    assert (run.outcome, str(run.error)) == ("cancelled", "the caller no longer waits")
    assert result.blocked
    wait_until(lambda: is_gone(pid_in(tmp_path / "leader")) and is_gone(pid_in(tmp_path / "child")))
    assert monotonic() - start < 20


def test_after_cancellation_no_command_is_started(fire: Fire, tmp_path: Path) -> None:
    ctx = HookContext("s1", cwd=str(tmp_path))
    ctx.cancellation.cancel()

    result = fire(manager_of("touch started"), LS, ctx)

    assert (only_run(result).outcome, list(tmp_path.iterdir())) == ("cancelled", [])


async def test_a_task_that_is_cancelled_takes_its_command_along(tmp_path: Path) -> None:
    task = asyncio.create_task(manager_of(FAMILY).fire(LS, HookContext("s1", cwd=str(tmp_path))))
    await asyncio.to_thread(pid_in, tmp_path / "child")

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    child = pid_in(tmp_path / "child")
    try:
        await asyncio.to_thread(wait_until, lambda: is_gone(child), 5)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid_in(tmp_path / "leader"), signal.SIGKILL)


def test_a_child_in_the_background_does_not_hold_the_answer(fire: Fire, tmp_path: Path) -> None:
    command = """sleep 30 & echo $! > child; echo '{"decision":"block","reason":"no"}'"""
    start = monotonic()

    result = fire(manager_of(command), LS, HookContext("s1", cwd=str(tmp_path)))

    with suppress(ProcessLookupError):
        os.kill(pid_in(tmp_path / "child"), signal.SIGKILL)
    assert result.output == HookOutput.deny("no")
    assert monotonic() - start < 20


@pytest.mark.parametrize("ending", ["exit 0", "exit 1", "exit 2", "kill -KILL $$"])
def test_no_zombie_is_left(fire: Fire, ending: str, tmp_path: Path) -> None:
    fire(manager_of(f"echo $$ > leader; {ending}"), LS, HookContext("s1", cwd=str(tmp_path)))

    with pytest.raises(ProcessLookupError):
        os.kill(pid_in(tmp_path / "leader"), 0)


def test_200_runs_leak_no_file_descriptor(fire: Fire) -> None:
    manager = manager_of("true")
    fire(manager, LS, None)
    before = open_files()

    for _ in range(200):
        fire(manager, LS, None)

    assert open_files() == before


def test_commands_that_cannot_be_started_leak_no_file_descriptor() -> None:
    manager = manager_of("/no/such/program", args=[])
    manager.fire_sync(LS)
    before = open_files()

    for _ in range(200):
        manager.fire_sync(LS)

    assert open_files() == before


# -- with and without a shell --------------------------------------------------------------------------

SHOW_ARGUMENTS = "import json, sys; print(json.dumps(sys.argv[1:]))"


def test_with_args_there_is_no_shell(fire: Fire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CLAUDE_PLUGIN_ROOT", raising=False)
    args = ["-c", SHOW_ARGUMENTS, "$HOME", "a; b", "${CLAUDE_PROJECT_DIR}/x", "${CLAUDE_PLUGIN_ROOT}/y", "${OTHER}"]

    result = fire(
        manager_of(sys.executable, args=args, env={"CLAUDE_PROJECT_DIR": "/a project"}), session_start("s1"), None
    )

    expected = ["$HOME", "a; b", "/a project/x", "${CLAUDE_PLUGIN_ROOT}/y", "${OTHER}"]
    assert json.loads(result.output.additional_context or "") == expected


def test_the_program_itself_may_lie_in_the_plugins_folder(tmp_path: Path) -> None:
    program = tmp_path / "guard"
    program.write_text("#!/bin/sh\necho no >&2\nexit 2\n")
    program.chmod(0o755)

    result = result_of("${CLAUDE_PLUGIN_ROOT}/guard", args=[], env={"CLAUDE_PLUGIN_ROOT": str(tmp_path)})

    assert result.output == HookOutput.block("no")


def test_a_program_that_is_missing_is_a_failure(fire: Fire) -> None:
    result = fire(manager_of("/no/such/program", args=[]), LS, None)

    error = "cannot start '/no/such/program': [Errno 2] No such file or directory: '/no/such/program'"
    assert (only_run(result).outcome, str(only_run(result).error)) == ("failed", error)
    assert result.blocked


def test_a_file_that_is_no_program_is_a_failure(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("echo hi\n")

    error = f"cannot start '{script}': [Errno 13] Permission denied: '{script}'"
    assert str(only_run(result_of(str(script), args=[])).error) == error


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_the_shell_can_be_chosen(fire: Fire) -> None:
    hook = CommandHook("guard", 'echo "${BASH_VERSION:+bash}"; [[ a == a ]]', (Event,), shell="bash")  # noqa: S604 - wanted
    manager = HookManager()
    manager.register(hook)

    result = fire(manager, session_start("s1"), None)

    assert result.output.additional_context == "bash"


def test_without_a_choice_the_shell_is_bin_sh() -> None:
    assert result_of('echo "$0"', session_start("s1")).output.additional_context == "/bin/sh"


@pytest.mark.parametrize("command", ["", " \n"])
def test_an_empty_command_is_refused_at_once(command: str) -> None:
    with pytest.raises(RegistrationError, match=r"^hook 'guard': the command is empty$"):
        CommandHook("guard", command, (Event,))


# -- many at once --------------------------------------------------------------------------------------

MEET = "touch met-$(cat | tr -dc 0-9); while [ $(ls | wc -l) -lt 10 ]; do sleep 0.02; done; echo met >&2; exit 2"


async def test_ten_fires_at_once_run_side_by_side(tmp_path: Path) -> None:
    """Each command ends only when all ten have begun."""
    manager, ctx = manager_of(MEET, timeout=30), HookContext("s", cwd=str(tmp_path))

    results = await asyncio.gather(*(manager.fire(pre_tool_use(f"s{n}", "Bash", {}), ctx) for n in range(10)))

    assert [result.output for result in results] == [HookOutput.block("met")] * 10


def test_ten_threads_at_once_run_side_by_side(tmp_path: Path) -> None:
    manager, ctx = manager_of(MEET, timeout=30), HookContext("s", cwd=str(tmp_path))

    with ThreadPoolExecutor(10) as threads:
        results = list(threads.map(lambda n: manager.fire_sync(pre_tool_use(f"s{n}", "Bash", {}), ctx), range(10)))

    assert [result.output for result in results] == [HookOutput.block("met")] * 10


# -- as the client's official plugins write them -------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "tool", "tool_input", "runs"),
    [
        ("Bash(git commit*)", "Bash", {"command": "git commit -m x"}, True),
        ("Bash(git *)", "Bash", {"command": "cd . && git --version"}, True),
        ("Bash(git *)", "Bash", {"command": "X=1 git push"}, True),
        ("Bash(git *)", "Bash", {"command": "echo $(git log)"}, True),
        ("Bash(git log*)", "Bash", {"command": "echo `git log`"}, True),
        ("Bash(git *)", "Bash", {"command": "git"}, True),
        ("Bash(git:*)", "Bash", {"command": "git push"}, True),
        ("Bash(git:*)", "Bash", {"command": "gitk"}, False),
        ("Bash(git *)", "Bash", {"command": "ls"}, False),
        ("Bash(git *)", "Edit", {"file_path": "/p/git x"}, False),
        ("Bash", "Bash", {"command": "ls"}, True),
        ("Edit(src/**)", "Edit", {"file_path": "/p/src/a/b.py"}, True),
        ("Edit(src/**)", "Edit", {"file_path": "/p/docs/b.py"}, False),
        ("Edit(*.py)", "Edit", {"file_path": "/p/src/b.py"}, True),
        ("Write(//etc/*)", "Write", {"file_path": "/etc/passwd"}, True),
        ("mcp__*", "mcp__github__push", {}, True),
    ],
)
def test_a_hook_with_if_runs_only_for_such_calls(
    condition: str, tool: str, tool_input: dict[str, Any], *, runs: bool
) -> None:
    hooks = HookManager()
    hooks.register(CommandHook("guard", "exit 2", [PreToolUse], condition=condition))
    event = parse({"session_id": "s", "cwd": "/p", "tool_name": tool, "tool_input": tool_input}, "PreToolUse")
    assert hooks.fire_sync(event).blocked is runs


def test_a_hook_with_if_never_runs_where_there_is_no_tool() -> None:
    hooks = HookManager()
    hooks.register(CommandHook("guard", "exit 2", [UserPromptSubmit], condition="Bash(git *)"))
    assert not hooks.fire_sync(parse({"session_id": "s", "prompt": "git"}, "UserPromptSubmit")).blocked


@pytest.mark.parametrize(
    "answer",
    [
        '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}, "systemMessage": "No."}',
        '{"decision": "block", "systemMessage": "No."}',
    ],
)
@pytest.mark.parametrize("code", [0, 2])
def test_a_denial_with_a_message_alone_has_that_as_its_reason(answer: str, code: int) -> None:
    hooks = HookManager()
    hooks.register(CommandHook("hookify", f"echo '{answer}'; exit {code}", [PreToolUse]))
    result = hooks.fire_sync(parse({"session_id": "s", "tool_name": "Bash", "tool_input": {}}, "PreToolUse"))
    assert (result.blocked, result.reason, result.output.system_message) == (True, "No.", "No.")
