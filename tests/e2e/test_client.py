"""The real client with `fairlead` as its hook command: what the hooks decide is what happens."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from e2e import sealed
from e2e.model import bash, call

from fairlead import HookEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from e2e.model import Turn

FAIRLEAD = Path(sys.executable).with_name("fairlead")
EXAMPLES = Path(__file__).parents[2] / "examples"

ERRAND = call("Agent", description="errand", prompt="Go.", subagent_type="general-purpose", run_in_background=False)

TASK_TOOLS = {"CLAUDE_CODE_ENABLE_TODO_TOOLS": "1"}
"""The client has none for newer models unless it is asked for them."""


@dataclass(frozen=True)
class Agent:
    """The real client in a folder of its own, with `fairlead` in its settings."""

    client: Path
    folder: Path

    @property
    def project(self) -> Path:
        """The folder that the agent works in."""
        return self.folder / "project"

    def run(
        self,
        hooks: str | Path,
        script: Sequence[Turn],
        *events: str,
        subagent: Sequence[Turn] = (),
        permission_mode: str = "bypassPermissions",
    ) -> sealed.Run:
        """Prompt the agent; these events go to the hooks, given as a file or as its source."""
        file = self.written(hooks) if isinstance(hooks, str) else hooks
        return sealed.run(
            [self.client, "-p", "Go.", "--permission-mode", permission_mode],
            folder=self.folder,
            script=script,
            subagent=subagent,
            settings={"hooks": {event: [{"hooks": [fairlead(event, file)]}] for event in events}},
        )

    def written(self, source: str) -> Path:
        """The file of hooks with this source."""
        file = self.folder / "hooks.py"
        file.write_text(dedent(source))
        return file


@pytest.fixture
def agent(client: Path, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(client, tmp_path)


def fairlead(event: str, file: Path) -> dict[str, Any]:
    """Write the hook as it stands in the client's settings."""
    return {"type": "command", "command": str(FAIRLEAD), "args": [event, "--hooks", str(file)], "timeout": 30}


# -- a call is denied ----------------------------------------------------------------------------------


def test_the_example_guard_saves_the_files_also_from_a_subagent_and_the_model_reads_why(agent: Agent) -> None:
    (agent.project / "photos").mkdir()

    run = agent.run(
        EXAMPLES / "security.py",
        [[bash("rm -rf photos")], [ERRAND], "I may not."],
        "PreToolUse",
        subagent=[[bash("rm -rf photos")], "Neither may I."],
    )

    assert (run.exit_code, run.stdout) == (0, "I may not.\n")
    assert run.asked == ["main", "main", "subagent", "subagent", "main"]
    assert (
        run.requests[1].results == run.requests[3].results == ["PreToolUse:Bash hook error: Blocked: contains 'rm -rf'"]
    )
    assert (agent.project / "photos").is_dir()


def test_a_hook_that_raises_or_never_answers_denies_and_what_one_prints_does_not_spoil_its_verdict(
    agent: Agent,
) -> None:
    hooks = """
        import os
        from threading import Event

        from fairlead import HookManager, HookOutput, PreToolUse

        hooks = HookManager()
        print("loaded")

        @hooks.on(PreToolUse)
        def broken(event: PreToolUse) -> None:
            if "raise" in event.tool_input["command"]:
                raise ConnectionError("the policy server is down")

        @hooks.on(PreToolUse, timeout=0.5)
        def endless(event: PreToolUse) -> None:
            if "hang" in event.tool_input["command"]:
                Event().wait()

        @hooks.on(PreToolUse)
        def chatty(event: PreToolUse) -> HookOutput | None:
            print("thinking")
            os.system("echo still thinking")
            return HookOutput.deny("No.") if "print" in event.tool_input["command"] else None
        """
    commands = [f"touch this  # {what}" for what in ("raise", "hang", "print")]

    run = agent.run(hooks, [*([bash(command)] for command in commands), "I may not."], "PreToolUse")

    denied(
        *(agent, run),
        "hook 'hooks.broken' failed, so this is denied: ConnectionError: the policy server is down",
        "hook 'hooks.endless' failed, so this is denied: no answer within 0.5 s",
        "No.",
    )


def test_a_hooks_file_with_a_mistake_denies_and_names_the_line(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager

        hooks = HookManager(
        """

    run = agent.run(hooks, [[bash("touch this")], "I may not."], "PreToolUse")

    (text,) = run.requests[-1].results
    assert text.startswith(f"PreToolUse:Bash hook error: {agent.folder / 'hooks.py'}: ")
    assert text.endswith("the hooks cannot be loaded: line 4: SyntaxError: '(' was never closed")
    denied(agent, run, text.removeprefix("PreToolUse:Bash hook error: "))


def test_a_broken_install_denies(agent: Agent) -> None:
    (agent.folder / "msgspec.py").write_text("raise ImportError('not for this Python')")
    file = EXAMPLES / "security.py"

    run = sealed.run(
        sealed.claude(agent.client, "Go."),
        folder=agent.folder,
        script=[[bash("touch this")], "I may not."],
        settings={"hooks": {"PreToolUse": [{"hooks": [fairlead("PreToolUse", file)]}]}},
        env={"PYTHONPATH": str(agent.folder)},
    )

    said = "fairlead: internal error: ImportError: not for this Python\nfairlead: set FAIRLEAD_DEBUG=1 to see where"
    denied(agent, run, f"[{FAIRLEAD} PreToolUse --hooks {file}]: {said}\n")


def denied(agent: Agent, run: sealed.Run, *reasons: str) -> None:
    """The scripted `touch this` did not run, and the model was told exactly why, each time."""
    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main"] * (len(reasons) + 1))
    assert run.requests[-1].results == [f"PreToolUse:Bash hook error: {reason}" for reason in reasons]
    assert not (agent.project / "this").exists()


# -- a call is changed, asked about, or granted --------------------------------------------------------


def test_a_rewritten_call_is_what_really_runs_and_one_to_ask_about_is_denied_where_nobody_can_be_asked(
    agent: Agent,
) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, PreToolUse

        hooks = HookManager()

        @hooks.on(PreToolUse, matcher="Bash", phase="rewrite")
        def dry_run(event: PreToolUse) -> HookOutput:
            command = event.tool_input["command"].replace("rm ", "echo would remove ")
            return HookOutput().with_updated_input({**event.tool_input, "command": command})

        @hooks.on(PreToolUse)
        def careful(event: PreToolUse) -> HookOutput | None:
            return HookOutput.ask("Are you sure?") if "touch" in event.tool_input["command"] else None
        """
    (agent.project / "photo.jpg").touch()

    run = agent.run(hooks, [[bash("rm photo.jpg")], [bash("touch this")], "Gone."], "PreToolUse")

    assert (run.exit_code, run.stdout, run.asked) == (0, "Gone.\n", ["main"] * 3)
    assert run.requests[-1].results == ["would remove photo.jpg", "Are you sure?"]
    assert [file.name for file in agent.project.iterdir()] == ["photo.jpg"]


def test_only_a_grant_makes_the_client_forgo_its_own_question(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, PreToolUse

        hooks = HookManager()
        verdicts = {"touch none": None, "touch allowed": HookOutput.allow(), "touch granted": HookOutput.grant()}

        @hooks.on(PreToolUse)
        def verdict(event: PreToolUse) -> HookOutput | None:
            return verdicts[event.tool_input["command"]]
        """
    script: list[Turn] = [*([bash(f"touch {name}")] for name in ("none", "allowed", "granted")), "Done."]

    run = agent.run(hooks, script, "PreToolUse", permission_mode="default")

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main"] * 4)
    assert [file.name for file in agent.project.iterdir()] == ["granted"]


# -- what the model is told ----------------------------------------------------------------------------


def test_context_reaches_the_model_from_every_place_that_can_give_it(agent: Agent) -> None:
    hooks = """
        from fairlead import Event, HookManager, HookOutput

        hooks = HookManager()

        @hooks.on(Event)
        def tell(event: Event) -> HookOutput:
            return HookOutput().with_context(f"told at {event.event_name}")
        """

    run = agent.run(
        hooks,
        [[bash("true")], [bash("exit 3")], [ERRAND], "I have heard."],
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "SubagentStart"),
        subagent=["Me too."],
    )

    assert (run.exit_code, run.stdout) == (0, "I have heard.\n")
    assert run.asked == ["main", "main", "main", "subagent", "main"]
    at_start, after_success, after_failure, by_subagent, _ = run.requests
    assert at_start.holds("SessionStart hook additional context: told at SessionStart")
    assert at_start.holds("UserPromptSubmit hook additional context: told at UserPromptSubmit")
    assert after_success.holds("PreToolUse:Bash hook additional context: told at PreToolUse")
    assert after_success.holds("PostToolUse:Bash hook additional context: told at PostToolUse")
    assert after_failure.holds("PostToolUseFailure:Bash hook additional context: told at PostToolUseFailure")
    assert by_subagent.holds("SubagentStart hook additional context: told at SubagentStart")


# -- a prompt, and the end of a turn -------------------------------------------------------------------


def test_a_blocked_prompt_never_reaches_the_model(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, UserPromptSubmit

        hooks = HookManager()

        @hooks.on(UserPromptSubmit)
        def curfew(event: UserPromptSubmit) -> HookOutput:
            return HookOutput.block("Not at this hour.")
        """

    run = agent.run(hooks, [], "UserPromptSubmit")

    assert run.stdout == "UserPromptSubmit operation blocked by hook:\nNot at this hour.\n\nOriginal prompt: Go.\n"
    assert (run.exit_code, run.asked) == (0, [])


def test_an_agent_and_its_subagent_are_each_kept_going_once_by_a_stop_that_is_blocked_once(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, Stop, SubagentStop

        hooks = HookManager()

        @hooks.on(Stop)
        def once_more(event: Stop) -> HookOutput | None:
            return None if event.stop_hook_active else HookOutput.block(f"You said: {event.last_assistant_message}")

        @hooks.on(SubagentStop)
        def look_again(event: SubagentStop) -> HookOutput | None:
            return None if event.stop_hook_active else HookOutput.block("Look again.")
        """

    script: list[Turn] = [[ERRAND], "Done.", "Done, really."]

    run = agent.run(hooks, script, "Stop", "SubagentStop", subagent=["Nothing.", "Something."])

    assert (run.exit_code, run.stdout) == (0, "Done, really.\n")
    assert run.asked == ["main", "subagent", "subagent", "main", "main"]
    assert run.requests[2].said("user")[-1] == "Stop hook feedback:\nLook again."
    assert run.requests[3].holds("Something.")
    assert run.requests[-1].said("user")[-1] == "Stop hook feedback:\nYou said: Done."


# -- tasks ---------------------------------------------------------------------------------------------


def test_a_blocked_task_is_neither_created_nor_completed(agent: Agent) -> None:
    file = agent.written("""
        from fairlead import HookManager, HookOutput, TaskCompleted, TaskCreated

        hooks = HookManager()

        @hooks.on(TaskCreated)
        def no_chores(event: TaskCreated) -> HookOutput | None:
            return HookOutput.block("No chores.") if event.task_subject == "Chore" else None

        @hooks.on(TaskCompleted)
        def nothing_is_done(event: TaskCompleted) -> HookOutput:
            return HookOutput.block("Not yet.")
        """)

    run = sealed.run(
        sealed.claude(agent.client, "Go."),
        folder=agent.folder,
        script=[
            [call("TaskCreate", subject="Chore", description="a chore")],
            [call("TaskCreate", subject="Game", description="a game")],
            [call("TaskUpdate", taskId="2", status="completed")],
            [call("TaskList")],
            "Done.",
        ],
        settings={"hooks": {e: [{"hooks": [fairlead(e, file)]}] for e in ("TaskCreated", "TaskCompleted")}},
        env=TASK_TOOLS,
    )

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main"] * 5)
    created, _, completed, listed = run.requests[-1].results
    assert created == "TaskCreated hook feedback:\nNo chores."
    assert completed == f"TaskCompleted hook feedback:\n[{FAIRLEAD} TaskCompleted --hooks {file}]: Not yet.\n"
    assert listed == "#2 [pending] Game"


# -- every event ---------------------------------------------------------------------------------------


def test_every_event_of_a_run_is_understood_and_given_back_as_it_came(agent: Agent) -> None:
    """A plain `cat` stands beside Fairlead at every event, and both must have heard the same."""
    file = agent.written("""
        from pathlib import Path

        from fairlead import Event, HookManager, encode

        hooks = HookManager()

        @hooks.on(Event, phase="observe")
        def keep(event: Event) -> None:
            with Path(__file__).with_name("heard").open("ab", buffering=0) as log:
                log.write(encode(event) + b"\\n")
        """)
    sent = agent.folder / "sent"
    sent.mkdir()
    cat = {"type": "command", "command": "sh", "args": ["-c", 'cat > "$(mktemp "$0/XXXXXXXX")"', str(sent)]}
    (agent.project / "CLAUDE.md").write_text("Be brief.\n")
    (agent.project / ".claude/commands").mkdir(parents=True)
    (agent.project / ".claude/commands/tidy.md").write_text("Tidy up $ARGUMENTS.\n")
    (agent.project / "attic").mkdir()

    run = sealed.run(
        sealed.claude(agent.client, "/tidy the attic", "--init"),
        folder=agent.folder,
        script=[
            [bash("cd attic"), call("Read", file_path=str(agent.project / "CLAUDE.md"))],
            [bash("exit 3")],
            [call("TaskCreate", subject="Tidy", description="the attic")],
            [call("TaskUpdate", taskId="1", status="completed")],
            [ERRAND],
            "Tidied.",
        ],
        subagent=[[bash("true")], "Nothing to tidy."],
        settings={"hooks": {e.value: [{"hooks": [fairlead(e.value, file), cat]}] for e in HookEvent}},
        env=TASK_TOOLS,
    )

    assert (run.exit_code, run.stdout, run.asked) == (0, "Tidied.\n", [*["main"] * 5, *["subagent"] * 2, "main"])
    expected = [json.loads(payload.read_text()) for payload in sent.iterdir()]
    heard = [json.loads(line) for line in (agent.folder / "heard").read_text().splitlines()]
    assert in_order(heard) == in_order(expected)
    assert {payload["hook_event_name"] for payload in heard} == EVENTS_OF_A_RUN


EVENTS_OF_A_RUN = {
    "Setup",
    "SessionStart",
    "InstructionsLoaded",
    "UserPromptExpansion",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "CwdChanged",
    "TaskCreated",
    "TaskCompleted",
    "SubagentStart",
    "SubagentStop",
    "MessageDisplay",
    "Stop",
    "SessionEnd",
}


def in_order(payloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hooks of one event run in parallel, so that the order of arrival says nothing."""
    return sorted(payloads, key=lambda payload: json.dumps(payload, sort_keys=True))
