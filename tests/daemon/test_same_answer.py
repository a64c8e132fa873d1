"""Every recorded payload gets the same answer on every road: by the daemon, without one, and in a program."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import Done, scratch_home

from fairlead import HookContext, HookManager
from fairlead.clients import client_named
from fairlead.decide import decide_with_hooks, find_policy, read_event
from fairlead.execute import execute
from fairlead.policy import register_guards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

PAYLOADS = sorted(Path(__file__).parents[1].joinpath("payloads").rglob("*.json"))

POLICY = """\
stop:
  maxBlocks: 0
  commands:
    - {run: "test -e done", message: "Not done yet.", showStdout: true}
subagentStart:
  context: {"*": "Be brief."}
subagentStop:
  commands:
    "*": [{run: "echo stopped $FAIRLEAD_AGENT_TYPE; exit 1", message: "it failed"}]
preToolUse:
  uneditableFiles: ["hello.txt", "*.lock"]
  unreadableFiles: [".env"]
  toolUsageValidation:
    - {tool: Bash, commandPattern: "touch *", action: block, message: "No touching."}
    - {tool: Agent, agent: "*", pattern: "*", action: warn, message: "Mind the cost."}
permissionRequest:
  default: deny
  allow: [Read]
userPromptSubmit:
  contextRules:
    - {pattern: many, prompt: "Do one thing at a time."}
postToolUse:
  commands:
    Bash: [{run: "echo seen", showStdout: true}]
"""


@pytest.fixture(scope="module")
def home() -> Iterator[DaemonHome]:
    """A home with a policy that has something to say to most events."""
    with scratch_home(FAIRLEAD_NO_DAEMON="1") as made:
        made.policy(POLICY)
        for folder in ("nested", "wt1"):
            (made.project / folder).mkdir()
        validated = made.fairlead("validate")
        assert validated.exit_code == 0, validated
        with made.daemon():
            yield made


@pytest.mark.parametrize("file", PAYLOADS, ids=lambda path: "-".join(path.parts[-2:]).removesuffix(".json"))
def test_the_answer_is_the_same_on_every_road(home: DaemonHome, file: Path) -> None:
    payload = _at_home(file.read_bytes(), home)
    event = json.loads(payload).get("hook_event_name")
    if event is None:
        pytest.skip("not an event: a file or a status line of the client")
    answered = _by_daemon(home)
    by_daemon = home.hook(event, payload)
    assert _by_daemon(home) == answered + 1, "the daemon has decided it"
    without = home.cold(event, payload, "--launched", "0000000000000001-1")
    assert by_daemon == without
    assert by_daemon == _in_this_process(home, event, payload)


def _by_daemon(home: DaemonHome) -> int:
    """Count what the daemon has decided; what was decided without it comes in by the spool, at any moment."""
    return sum(record.route == "daemon" for record in home.happened())


def _at_home(payload: bytes, home: DaemonHome) -> bytes:
    """Let it happen in a folder that is there."""
    moved = payload.replace(b"/home/user/project", str(home.project).encode())
    return moved.replace(b"/home/user/code", str(home.project).encode())


def _in_this_process(home: DaemonHome, kind: str, payload: bytes) -> Done:
    with pytest.MonkeyPatch.context() as patch:
        environment = home.environment()
        for name in list(os.environ):
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.chdir(home.project)
        event = read_event(payload, kind)
        policy, manager = find_policy(event.cwd or "."), HookManager()
        register_guards(manager, policy.layers)
        settled = execute(event, payload, decide_with_hooks(event, policy, manager, HookContext(event.session_id)))
        answer = client_named("claude").render(event, settled.output)
    lines = [*settled.log, answer.stderr] if answer.stderr else settled.log
    return Done(answer.exit_code, answer.stdout.decode(), "".join(f"{line}\n" for line in lines))
