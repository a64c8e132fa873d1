"""`fairlead <Event>` as the client calls it: a real process, a payload on stdin, an exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from fairlead.cli.event import HELP

if TYPE_CHECKING:
    from pathlib import Path

FAIRLEAD = [sys.executable, "-m", "fairlead"]

GUARDS = """
from fairlead import *
hooks = HookManager()
spare = HookManager()

@hooks.on(PreToolUse, UserPromptSubmit, Stop, SessionStart, PostToolUse)
def decide(event):
    print("a hook that prints")
    text = str(getattr(event, "tool_input", "")) + str(getattr(event, "prompt", "")) + str(event.extra)
    if "rm" in text:
        return HookOutput.block("not here")
    if "crash" in text:
        raise RuntimeError("boom")
    if "exit" in text:
        raise SystemExit(0)
    if "rewrite" in text:
        return HookOutput.allow().with_updated_input({"command": "true"})
    if "context" in text:
        return HookOutput.allow().with_context("know this")
"""


NO_DURATION = "--timeout: expected a duration such as 30s, 10m, 2h or 1d, or a number of seconds above 0, got"


def payload(**fields: Any) -> dict[str, Any]:
    return {"session_id": "s1", **fields}


def bash(command: str) -> dict[str, Any]:
    return payload(tool_name="Bash", tool_input={"command": command})


def run(*args: str, stdin: object = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    text = stdin if isinstance(stdin, str) else json.dumps(stdin)
    return subprocess.run(
        [*FAIRLEAD, *args], input=text, capture_output=True, text=True, cwd=cwd, check=False, timeout=30
    )


@pytest.fixture
def guards(tmp_path: Path) -> str:
    path = tmp_path / "guards.py"
    path.write_text(GUARDS)
    return str(path)


def test_nothing_to_say_is_exit_0_and_silence(guards: str) -> None:
    done = run("PreToolUse", "--hooks", guards, stdin=bash("ls"))
    assert (done.returncode, done.stdout) == (0, "")


def test_what_a_hook_prints_goes_to_stderr(guards: str) -> None:
    done = run("PreToolUse", "--hooks", guards, stdin=bash("rm"))
    assert json.loads(done.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "a hook that prints" in done.stderr


def test_a_block_on_a_gate_is_exit_2_with_json_and_the_reason(guards: str) -> None:
    done = run("PreToolUse", "--hooks", guards, stdin=bash("rm"))
    assert done.returncode == 2
    assert json.loads(done.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": "not here",
        }
    }
    assert done.stderr.endswith("not here\n")


def test_a_blocked_prompt_is_exit_2(guards: str) -> None:
    done = run("UserPromptSubmit", "--hooks", guards, stdin=payload(prompt="rm it"))
    assert (done.returncode, json.loads(done.stdout)) == (2, {"decision": "block", "reason": "not here"})


def test_a_blocked_stop_keeps_the_agent_going_with_exit_0(guards: str) -> None:
    done = run("Stop", "--hooks", guards, stdin=payload(note="rm"))
    assert (done.returncode, json.loads(done.stdout)) == (0, {"decision": "block", "reason": "not here"})


def test_a_rewrite_is_in_the_answer(guards: str) -> None:
    done = run("PreToolUse", "--hooks", guards, stdin=bash("rewrite"))
    assert done.returncode == 0
    assert json.loads(done.stdout)["hookSpecificOutput"]["updatedInput"] == {"command": "true"}


def test_context_is_in_the_answer(guards: str) -> None:
    done = run("SessionStart", "--hooks", guards, stdin=payload(note="context"))
    assert json.loads(done.stdout) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "know this"}
    }


@pytest.mark.parametrize("how", ["crash", "exit"])
def test_a_hook_that_fails_denies_on_a_gate(guards: str, how: str) -> None:
    done = run("PreToolUse", "--hooks", guards, stdin=bash(how))
    assert done.returncode == 2
    assert "hook 'guards.decide' failed, so this is denied: " in done.stderr


def test_a_hook_that_fails_elsewhere_is_reported_and_the_event_goes_on(guards: str) -> None:
    done = run("PostToolUse", "--hooks", guards, stdin=bash("crash"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "hook 'guards.decide' failed on PostToolUse: RuntimeError: boom" in done.stderr


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def broken(:\n", "line 1: SyntaxError: invalid syntax"),
        ("x = 1\n\nimport nowhere_to_be_found\n", "line 3: ModuleNotFoundError: No module named 'nowhere_to_be_found'"),
        ("raise SystemExit(0)\n", "line 1: SystemExit: 0"),
        ("x = 1\n", "has no HookManager named 'hooks'"),
        ("hooks = 5\n", "has no HookManager named 'hooks'"),
        (
            "from fairlead import HookManager\nmine = HookManager()\n",
            "has no HookManager named 'hooks'; name one of its managers after a colon: mine",
        ),
    ],
)
def test_hooks_that_cannot_be_loaded_deny_on_a_gate(tmp_path: Path, source: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(source)
    done = run("PreToolUse", "--hooks", str(path), stdin=bash("ls"))
    assert done.returncode == 2
    assert f"{path}: the hooks cannot be loaded: {message}\n" in done.stderr


def test_a_hooks_file_that_is_not_there_denies(tmp_path: Path) -> None:
    path = tmp_path / "gone.py"
    done = run("PreToolUse", "--hooks", str(path), stdin=bash("ls"))
    assert (done.returncode, done.stderr) == (2, f"{path}: the hooks cannot be loaded: no such file\n")


def test_hooks_that_cannot_be_loaded_are_reported_where_nothing_gates(tmp_path: Path) -> None:
    done = run("PostToolUse", "--hooks", str(tmp_path / "gone.py"), stdin=bash("ls"))
    assert (done.returncode, done.stdout) == (0, "")
    assert "the hooks cannot be loaded: no such file" in done.stderr


def test_a_manager_is_named_after_a_colon(guards: str) -> None:
    done = run("PreToolUse", "--hooks", f"{guards}:spare", stdin=bash("rm"))
    assert done.returncode == 0


def test_a_module_works_as_well_as_a_file(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "guards.py").write_text(GUARDS)
    done = subprocess.run(
        [*FAIRLEAD, "PreToolUse", "--hooks", "package.guards"],
        input=json.dumps(bash("rm")),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2


def test_a_hooks_file_may_import_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("REASON = 'said next door'\n")
    (tmp_path / "guards.py").write_text(
        "from neighbour import REASON\n"
        "from fairlead import *\n"
        "hooks = HookManager()\n"
        "@hooks.on(PreToolUse)\n"
        "def no(event): return HookOutput.block(REASON)\n"
    )
    done = run("PreToolUse", "--hooks", str(tmp_path / "guards.py"), stdin=bash("ls"))
    assert done.stderr == "said next door\n"


def test_two_files_with_the_same_hook_names_live_together(tmp_path: Path, guards: str) -> None:
    other = tmp_path / "others.py"
    other.write_text(GUARDS.replace("not here", "not there"))
    done = run("PreToolUse", "--hooks", guards, "--hooks", str(other), stdin=bash("rm"))
    assert "not here" in done.stderr


def test_rules_of_a_settings_file_run(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"preToolUse": {"no": {"command": "echo no >&2; exit 2"}}}}))
    done = run("PreToolUse", "--rules", str(settings), stdin=bash("ls"))
    assert (done.returncode, done.stderr) == (2, "no\n")


def test_a_broken_rule_of_this_event_denies(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"preToolUse": {"no": {"command": 5}}}}))
    done = run("PreToolUse", "--rules", str(settings), stdin=bash("ls"))
    assert done.returncode == 2
    assert "hooks.preToolUse.no.command" in done.stderr


def test_a_broken_rule_of_another_event_does_not(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"postToolUse": {"no": {"command": 5}}}}))
    done = run("PreToolUse", "--rules", str(settings), stdin=bash("ls"))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("hooks", [{"preToolUze": "true"}, ["true"]])
def test_a_misspelt_gate_or_a_broken_section_denies(tmp_path: Path, hooks: object) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": hooks}))
    assert run("PreToolUse", "--rules", str(settings), stdin=bash("ls")).returncode == 2


def test_an_event_that_is_like_no_other_is_only_reported(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    settings.write_text(json.dumps({"hooks": {"MoonPhase": "true"}}))
    done = run("PreToolUse", "--rules", str(settings), stdin=bash("ls"))
    assert (done.returncode, done.stderr) == (
        0,
        f"fairlead: {settings}: hooks.MoonPhase: unknown event 'MoonPhase'\n",
    )


def test_rules_that_run_themselves_are_stopped(tmp_path: Path) -> None:
    settings = tmp_path / "settings.json"
    again = f"{sys.executable} -m fairlead PreToolUse --rules {settings}"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": again}}))
    done = run("PreToolUse", "--rules", str(settings), stdin=bash("ls"))
    assert done.returncode == 2
    assert "one of its commands runs it again" in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "payload: empty; expected a JSON object"),
        ("{", "payload: not valid JSON: Input data was truncated"),
        ("[]", "payload: expected a JSON object, got a list"),
        ("{}", "PreToolUse: missing required field `session_id`"),
        ('{"session_id": " ", "tool_name": "a", "tool_input": {}}', "session_id cannot be empty"),
    ],
)
def test_a_bad_payload_is_one_line_and_blocks_on_pre_tool_use(text: str, message: str) -> None:
    done = run("PreToolUse", stdin=text)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"fairlead: {message}\n")


def test_a_bad_payload_is_exit_1_elsewhere() -> None:
    done = run("SubagentStart", stdin="not json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fairlead: payload: not valid JSON: ")


def test_a_payload_of_another_event_is_refused_and_still_gates() -> None:
    done = run("PostToolUse", stdin={**bash("ls"), "hook_event_name": "PreToolUse"})
    assert (done.returncode, done.stderr) == (2, "fairlead: hook_event_name: expected PostToolUse, got PreToolUse\n")


@pytest.mark.parametrize("name", ["pre_tool_use", "preToolUse", "pretooluse"])
def test_a_word_without_a_capital_is_no_event_and_still_gates(guards: str, name: str) -> None:
    done = run(name, "--hooks", guards, stdin=bash("ls"))
    expected = f"fairlead: unknown command {name!r}; did you mean the event PreToolUse?\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", expected)


def test_an_event_newer_than_we_are_is_let_pass() -> None:
    done = run("MoonPhase", stdin=payload(hook_event_name="MoonPhase"))
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["PreToolUze"], "unknown event 'PreToolUze'; did you mean PreToolUse?"),
        (["isntall"], "unknown command 'isntall'; did you mean install?"),
        (["stop"], "unknown command 'stop'; did you mean daemon stop or the event Stop?"),
        (["post_tool_use"], "unknown command 'post_tool_use'; did you mean the event PostToolUse?"),
        (["xyzzy"], "unknown command 'xyzzy'; see fairlead --help"),
        (["vlidate"], "unknown command 'vlidate'; did you mean validate?"),
        (["--hooks", "x.py", "Stop"], "the event comes first, then its options: fairlead <Event> --hooks x.py"),
        (["Stop", "--hook", "x"], "unknown option '--hook'; options are --hooks, --rules, --timeout, --client"),
        (["Stop", "--hooks"], "--hooks needs a value"),
        (["Stop", "--timeout", "soon"], f"{NO_DURATION} 'soon'"),
        (["Stop", "--timeout=0"], f"{NO_DURATION} '0'"),
        (["Stop", "--client", "emacs"], "--client: expected one of claude, got 'emacs'"),
    ],
)
def test_a_wrong_command_line_says_what_is_right(args: list[str], message: str) -> None:
    done = run(*args, stdin=payload())
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"fairlead: {message}\n")


def test_a_wrong_command_line_blocks_on_pre_tool_use() -> None:
    assert run("PreToolUse", "--hook", "x", stdin=bash("ls")).returncode == 2
    assert run("--hooks", "x.py", "PreToolUse", stdin=bash("ls")).returncode == 2


def test_the_answer_is_ready_by_the_timeout(tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(
        "import threading\nfrom fairlead import *\nhooks = HookManager()\n"
        "@hooks.on(PreToolUse)\ndef wait(event): threading.Event().wait(60)\n"
    )
    done = run("PreToolUse", "--hooks", str(slow), "--timeout", "3s", stdin=bash("ls"))
    assert done.returncode == 2
    assert re.fullmatch(r"hook 'slow.wait' failed, so this is denied: no answer within [\d.]+ s\n", done.stderr)


def test_told_to_go_it_takes_its_commands_along(tmp_path: Path) -> None:
    """The client ends a hook by SIGTERM; the command is in a process group of its own."""
    os.mkfifo(tmp_path / "started")
    settings = tmp_path / "settings.json"
    command = f"echo $$ > {tmp_path}/started; exec sleep 60"
    settings.write_text(json.dumps({"hooks": {"PreToolUse": command}}))
    with subprocess.Popen(
        [*FAIRLEAD, "PreToolUse", "--rules", str(settings)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(bash("ls")).encode())
        process.stdin.close()
        pid = int((tmp_path / "started").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 2
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_an_answer_that_cannot_be_printed_does_not_read_as_consent(guards: str) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [*FAIRLEAD, "PreToolUse", "--hooks", guards],
            input=json.dumps(bash("rewrite")).encode(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"fairlead: cannot write the answer: " in done.stderr


def test_a_closed_stdout_does_not_read_as_consent(guards: str) -> None:
    command = [sys.executable, "-m", "fairlead", "PreToolUse", "--hooks", guards]
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >&-', "sh", *command],
        input=json.dumps(bash("ls")),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "fairlead: stdout is closed, and that is where the answer goes\n"


def test_a_gate_that_nobody_guards_says_so() -> None:
    done = run("PreToolUse", stdin=bash("ls"))
    assert (done.returncode, done.stderr) == (
        0,
        "fairlead: there is no policy, and no --hooks or --rules, so nothing can object\n",
    )


def test_a_strict_manager_stays_strict(tmp_path: Path) -> None:
    path = tmp_path / "strict.py"
    path.write_text(GUARDS.replace("hooks = HookManager()", "hooks = HookManager(strict=True)"))
    done = run("PreToolUse", "--hooks", str(path), stdin=bash("rewrite"))
    assert done.returncode == 2
    assert "it changed the input after others had checked it" in done.stderr


def test_a_relative_path_names_the_line_too(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    done = run("PreToolUse", "--hooks", "broken.py", stdin=bash("ls"), cwd=tmp_path)
    assert done.stderr == ("broken.py: the hooks cannot be loaded: line 2: ZeroDivisionError: division by zero\n")


def test_a_person_at_a_terminal_is_told_how_to_use_it() -> None:
    main, side = pty.openpty()
    done = subprocess.run([*FAIRLEAD, "Stop"], stdin=side, capture_output=True, text=True, check=False, timeout=30)
    os.close(main)
    os.close(side)
    expected = "fairlead: Stop reads its payload from stdin, e.g. fairlead Stop < payload.json\n"
    assert (done.returncode, done.stderr) == (1, expected)


def test_a_broken_install_does_not_open_the_gate(tmp_path: Path) -> None:
    """Something that we need cannot be imported: one line, and exit 2."""
    (tmp_path / "msgspec.py").write_text("raise ImportError('broken')\n")
    done = subprocess.run(
        [*FAIRLEAD, "PreToolUse"],
        input=json.dumps(bash("ls")),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == (
        "fairlead: internal error: ImportError: broken\nfairlead: set FAIRLEAD_DEBUG=1 to see where\n"
    )


def test_help_and_version() -> None:
    assert run("--help").stdout.startswith("Fairlead, the hook runtime for coding agents.\n\nUsage: fairlead COMMAND")
    shown = run("Stop", "--help")
    assert (shown.returncode, shown.stdout) == (0, HELP)
    assert run("--version").stdout == run("version").stdout == "fairlead 0.1.0\n"
    assert run("--version", "--launched", "x,1,2").stdout == "fairlead 0.1.0\n", "as the launcher passes it on"
    nothing = run()
    assert (nothing.returncode, nothing.stdout) == (1, "")
    assert nothing.stderr.startswith("Fairlead, ")
