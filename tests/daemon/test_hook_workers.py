"""The processes that run the user's hooks: real ones, with hooks that hang, crash, leak and print."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from textwrap import dedent
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from daemon.daemon_home import until

from fairlead.daemon.workers._pool import HookWorkers, WorkerLimits
from fairlead.hooks.user_hooks import EventReply, EventRequest, HookWorkerError, find_imports
from fairlead.policy import HookFile, HookGroup
from fairlead.process import is_alive

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEAD = """
import os, re, sys, time
from fairlead import HookManager, HookOutput, PostToolUse, PreToolUse

hooks = HookManager(timeout=20)
"""

FAULTS = """
@hooks.on(PreToolUse, matcher="Bash")
def check(event, ctx):
    command = event.tool_input["command"]
    if command == "deny":
        return HookOutput.deny("denied by hand")
    if command == "raise":
        raise ValueError("a mistake")
    if command == "exit":
        os._exit(0)
    if command == "crash":
        import ctypes
        ctypes.string_at(0)
    if command == "print":
        print("to stdout", flush=True)
        os.write(1, b"to file descriptor 1")
    if command == "wait":
        while not os.path.exists(ctx.env["FILE"]):
            time.sleep(0.002)
    if command == "pid":
        return HookOutput().with_context(str(os.getpid()))
"""

LEAK = """
kept = []

@hooks.on(PreToolUse, matcher="Leak")
def leak(event):
    kept.append(b"x" * 2**26)
"""


@pytest.fixture
def workers() -> Iterator[HookWorkers]:
    pool = HookWorkers()
    yield pool
    pool.close()


def group(folder: Path, text: str, *, interpreter: str = "", **modules: str) -> HookGroup:
    """Write a hook file, and say that it is trusted."""
    file = folder / "guards.py"
    file.write_text(HEAD + dedent(text))
    for name, module in modules.items():
        (folder / f"{name}.py").write_text(module)
    digests = find_imports(interpreter, str(file))
    return HookGroup(str(folder / ".fairlead.yaml"), interpreter, (HookFile(str(file), "", digests, interpreter),))


def ask(command: str = "", event: str = "PreToolUse", tool: str = "Bash", **env: str) -> EventRequest:
    """Make the question about a tool call."""
    payload = {"session_id": "s1", "cwd": "/", "tool_name": tool, "tool_input": {"command": command}}
    more: dict[str, Any] = {"hook_event_name": event, "tool_response": {}}
    return EventRequest(event, "claude", json.dumps({**payload, **more}).encode(), "/", env)


def pid_of(workers: HookWorkers, hooks: HookGroup) -> int:
    return int(workers.ask(hooks, ask("pid")).output.additional_context or "")


def test_an_answer_names_the_hook_and_events_without_hooks_start_nothing(tmp_path: Path, workers: HookWorkers) -> None:
    hooks = group(tmp_path, FAULTS)

    denied = workers.ask(hooks, ask("deny"))

    assert (denied.output.reason, denied.decided_by) == ("denied by hand", "guards.check")
    assert workers.ask(hooks, ask("ls")).output == EventReply().output
    assert workers.ask(hooks, ask("deny", event="PostToolUse")) == EventReply()
    assert workers.status()[0]["calls"] == 2


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit", "their process has ended with exit code 0"),
        ("crash", "their process was killed by SIGSEGV"),
    ],
)
def test_a_hook_that_ends_its_process_is_reported_and_the_next_call_works(
    tmp_path: Path, workers: HookWorkers, command: str, why: str
) -> None:
    hooks = group(tmp_path, FAULTS)
    first = pid_of(workers, hooks)

    with pytest.raises(HookWorkerError, match=why):
        workers.ask(hooks, ask(command))

    assert workers.ask(hooks, ask("deny")).output.reason == "denied by hand"
    assert pid_of(workers, hooks) != first


def test_a_hook_that_raises_denies_and_one_that_prints_harms_nothing(tmp_path: Path, workers: HookWorkers) -> None:
    hooks = group(tmp_path, FAULTS)
    first = pid_of(workers, hooks)

    failed = workers.ask(hooks, ask("raise"))

    assert failed.output.reason == "hook 'guards.check' failed, so this is denied: ValueError: a mistake"
    assert failed.decided_by == "guards.check"
    assert workers.ask(hooks, ask("print")).output == EventReply().output
    assert pid_of(workers, hooks) == first


def test_a_hook_that_hangs_is_denied_at_its_limit_and_its_process_is_replaced(
    tmp_path: Path, workers: HookWorkers
) -> None:
    hooks = group(
        tmp_path,
        """
        @hooks.on(PreToolUse, matcher="Bash", timeout=0.2)
        def hang(event):
            while event.tool_input["command"] == "hang":
                time.sleep(1)
            return HookOutput().with_context(str(os.getpid()))
        """,
    )
    first = pid_of(workers, hooks)

    denied = workers.ask(hooks, ask("hang"))

    assert "'guards.hang' failed, so this is denied" in (denied.output.reason or "")
    assert pid_of(workers, hooks) != first
    until(lambda: not is_alive(first, 0), "the process with the hook that hangs has ended")


def test_a_hook_that_keeps_the_interpreter_busy_is_denied_and_others_are_asked_again(
    tmp_path: Path, workers: HookWorkers
) -> None:
    hooks = group(
        tmp_path,
        """
        @hooks.on(PreToolUse, matcher="Bash", timeout=0.4)
        def backtrack(event):
            if event.tool_input["command"] == "hang":
                re.match("(a+)+b", "a" * 60)
            return HookOutput().with_context("done")
        """,
    )
    workers.ask(hooks, ask("ls"))
    with ThreadPoolExecutor(2) as threads:
        hanging = threads.submit(workers.ask, hooks, ask("hang"))
        until(lambda: workers.status()[0]["calls"] == 2, "the hook was called")
        other = threads.submit(workers.ask, hooks, ask("ls"))

        with pytest.raises(HookWorkerError, match=r"they have not answered within 0\.4 s"):
            hanging.result()
        assert other.result().output.additional_context == "done"


@pytest.mark.parametrize("command", ["match", "also"])
def test_a_hook_that_keeps_the_interpreter_busy_has_its_own_limit_beside_hooks_without_one(
    tmp_path: Path, workers: HookWorkers, command: str
) -> None:
    hooks = group(
        tmp_path,
        """
        @hooks.on(PreToolUse, matcher="Write")
        def other_tool(event):
            pass

        @hooks.on(PreToolUse, matcher=lambda event: event.tool_input["command"] == "also")
        def before(event):
            pass

        @hooks.on(PreToolUse, matcher="Bash", timeout=0.4)
        def backtrack(event):
            re.match("(a+)+b", "a" * 60)

        @hooks.on(PreToolUse)
        def after(event):
            pass
        """,
    )
    started = monotonic()

    with pytest.raises(HookWorkerError, match=r"they have not answered within 0\.4 s"):
        workers.ask(hooks, ask(command))

    assert monotonic() - started < 15


def test_a_hook_may_take_as_long_as_its_own_limit_after_one_with_a_shorter_limit(
    tmp_path: Path, workers: HookWorkers
) -> None:
    hooks = group(
        tmp_path,
        """
        @hooks.on(PreToolUse, timeout=0.05, priority=1)
        def quick(event):
            pass

        @hooks.on(PreToolUse, timeout=20)
        def slow(event):
            time.sleep(1)
            return HookOutput().with_context("x" * 3_000_000)
        """,
    )

    assert workers.ask(hooks, ask()).output.additional_context == "x" * 3_000_000


def test_events_at_once_do_not_wait_for_each_other_and_survive_the_crash_of_one(
    tmp_path: Path, workers: HookWorkers
) -> None:
    hooks = group(tmp_path, FAULTS)
    file = tmp_path / "go"
    workers.ask(hooks, ask("ls"))
    with ThreadPoolExecutor(8) as threads:
        waiting = [threads.submit(workers.ask, hooks, ask("wait", FILE=str(file))) for _ in range(4)]
        until(lambda: workers.status()[0]["calls"] == 5, "all hooks were called")
        assert workers.ask(hooks, ask("deny")).output.reason == "denied by hand"

        crashed = threads.submit(workers.ask, hooks, ask("crash"))

        with pytest.raises(HookWorkerError, match="SIGSEGV"):
            crashed.result()
        file.touch()
        assert [one.result().output for one in waiting] == [EventReply().output] * 4


def test_plain_and_async_hooks_merge(tmp_path: Path, workers: HookWorkers) -> None:
    hooks = group(
        tmp_path,
        """
        import asyncio

        @hooks.on(PreToolUse)
        def plain(event):
            return HookOutput().with_context("plain")

        @hooks.on(PreToolUse)
        async def waits(event, ctx):
            await asyncio.sleep(0)
            return HookOutput.ask("really?").with_context(f"async in {ctx.cwd} with {ctx.env['NAME']}")
        """,
    )

    answer = workers.ask(hooks, ask(NAME="value"))

    assert answer.output.additional_context == "plain\nasync in / with value"
    assert (answer.output.permission, answer.decided_by) == ("ask", "guards.waits")


def test_a_worker_is_replaced_after_many_calls_and_with_much_memory(tmp_path: Path) -> None:
    hooks = group(tmp_path, FAULTS + LEAK)
    workers = HookWorkers(WorkerLimits(calls=3, memory=64 * 1024 * 1024))
    try:
        first = [pid_of(workers, hooks) for _ in range(3)]
        second = pid_of(workers, hooks)
        assert first[0] == first[2] != second

        workers.ask(hooks, ask(tool="Leak"))
        assert pid_of(workers, hooks) != second
    finally:
        workers.close()


def test_a_worker_that_nobody_asks_is_ended(tmp_path: Path) -> None:
    workers = HookWorkers(WorkerLimits(idle=0.1))
    try:
        pid = pid_of(workers, group(tmp_path, FAULTS))
        until(lambda: not is_alive(pid, 0), "the worker was ended")
        assert workers.status() == []
    finally:
        workers.close()


def test_a_changed_file_is_loaded_again_at_the_next_event(tmp_path: Path, workers: HookWorkers) -> None:
    text = "@hooks.on(PreToolUse)\ndef one(event):\n    return HookOutput.deny({!r})\n"
    assert workers.ask(group(tmp_path, text.format("before")), ask()).output.reason == "before"

    assert workers.ask(group(tmp_path, text.format("after")), ask()).output.reason == "after"


def test_a_file_that_cannot_be_loaded_says_why(tmp_path: Path, workers: HookWorkers) -> None:
    with pytest.raises(HookWorkerError, match=r"guards\.py:\d+: SyntaxError"):
        workers.ask(group(tmp_path, "def broken(:\n"), ask())
    with pytest.raises(HookWorkerError, match=r"guards\.py:\d+: ModuleNotFoundError: No module named 'nosuch'"):
        workers.ask(group(tmp_path, "import nosuch\n"), ask())
    with pytest.raises(HookWorkerError, match="it has no HookManager named 'hooks'"):
        workers.ask(group(tmp_path, "del hooks\n"), ask())


def test_a_module_is_only_run_as_it_was_trusted(tmp_path: Path, workers: HookWorkers) -> None:
    text = "import helper\n@hooks.on(PreToolUse)\ndef one(event):\n    return HookOutput.deny(helper.WORD)\n"
    hooks = group(tmp_path, text, helper="WORD = 'first'\n")
    assert set(hooks.files[0].digests) == {str(tmp_path / "guards.py"), str(tmp_path / "helper.py")}
    assert workers.ask(hooks, ask()).output.reason == "first"

    (tmp_path / "helper.py").write_text("WORD = 'second'\n")
    fresh = HookWorkers()
    try:
        with pytest.raises(HookWorkerError, match=r"helper\.py has changed since the hooks were trusted"):
            fresh.ask(hooks, ask())
        (tmp_path / "helper.py").write_text("import csv\n")
        trusted = find_imports("", str(tmp_path / "guards.py"))
        (tmp_path / "csv.py").write_text("raise SystemExit\n")  # in place of the standard library's
        shadowed = msgspec.structs.replace(hooks.files[0], digests=trusted)
        with pytest.raises(HookWorkerError, match=r"csv\.py is imported, but was not trusted with the hooks"):
            fresh.ask(msgspec.structs.replace(hooks, files=(shadowed,)), ask())
    finally:
        fresh.close()


def test_hooks_run_in_the_virtual_environment_of_their_project(tmp_path: Path, workers: HookWorkers) -> None:
    venv = tmp_path / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    installed = next(venv.glob("lib/python*/site-packages"))
    (installed / "only_here.py").write_text("WORD = 'of the environment'\n")
    text = """
    import only_here

    @hooks.on(PreToolUse)
    def one(event):
        return HookOutput.deny(f"{only_here.WORD} {sys.prefix} {os.environ['VIRTUAL_ENV']} {os.getcwd()}")
    """
    hooks = group(tmp_path, text, interpreter=str(venv / "bin/python"))

    assert workers.ask(hooks, ask()).output.reason == f"of the environment {venv} {venv} {tmp_path}"
    assert list(hooks.files[0].digests) == [str(tmp_path / "guards.py")]


def test_a_call_is_quick_once_the_worker_runs(tmp_path: Path, workers: HookWorkers) -> None:
    hooks = group(tmp_path, FAULTS)
    question = ask("ls")
    workers.ask(hooks, question)

    def measure() -> float:
        start = monotonic()
        workers.ask(hooks, question)
        return monotonic() - start

    assert min(measure() for _ in range(200)) < 0.01


def test_an_interpreter_that_does_not_end_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.hooks.user_hooks._process._SCAN_LIMIT", 0.2)
    (tmp_path / "guards.py").touch()
    hanging = tmp_path / "python"
    hanging.write_text("#!/bin/sh\nexec sleep 60\n")
    hanging.chmod(0o755)

    with pytest.raises(HookWorkerError, match=r"python has not read .*guards.py within 0.2 s"):
        find_imports(str(hanging), str(tmp_path / "guards.py"))
