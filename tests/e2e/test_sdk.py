"""An agent built with `claude-agent-sdk` around the real client, guarded by a manager in its own process."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from e2e import sealed
from e2e.model import bash, call

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from e2e.model import Turn

PROGRAM = """
import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from fairlead.sdk import sdk_hooks
from guards import hooks


async def main(client, timeout, *prompts):
    options = ClaudeAgentOptions(
        cli_path=client, permission_mode="bypassPermissions", hooks=sdk_hooks(hooks, timeout=float(timeout))
    )
    async with ClaudeSDKClient(options) as agent:
        for prompt in prompts:
            await agent.query(prompt)
            async for message in agent.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)


asyncio.run(main(*sys.argv[1:]))
"""


@dataclass(frozen=True)
class Agent:
    """A program around the real client, in a folder of its own."""

    client: Path
    folder: Path

    def file(self, name: str) -> Path:
        """A file in the project that the agent works on."""
        return self.folder / "project" / name

    def run(
        self,
        hooks: str,
        script: Sequence[Turn],
        *,
        subagent: Sequence[Turn] = (),
        prompts: Sequence[str] = ("Go.",),
        timeout: float = 30.0,
    ) -> sealed.Run:
        """Prompt the agent, guarded by the source of a module that has a manager named `hooks`."""
        (self.folder / "guards.py").write_text(dedent(hooks))
        program = self.folder / "agent.py"
        program.write_text(PROGRAM)
        argv = [sys.executable, str(program), str(self.client), str(timeout), *prompts]
        return sealed.run(argv, folder=self.folder, script=script, subagent=subagent)


@pytest.fixture
def agent(client: Path, tmp_path: Path) -> Agent:
    return Agent(client, tmp_path)


NO_TOUCHING = """
    from fairlead import HookManager, HookOutput, PreToolUse

    hooks = HookManager()

    @hooks.on(PreToolUse, matcher="Bash")
    async def no_touching(event: PreToolUse) -> HookOutput | None:
        if "touch" in event.tool_input["command"]:
            return HookOutput.deny("Nothing is to be touched here.")
        return None
    """


def test_a_denied_call_does_not_run_and_the_model_reads_why(agent: Agent) -> None:
    run = agent.run(NO_TOUCHING, [[bash("touch this")], [bash("echo that")], "I may not."])

    assert (run.exit_code, run.stdout, run.stderr) == (0, "I may not.\n", "")
    assert run.asked == ["main", "main", "main"]
    assert run.requests[-1].results == ["PreToolUse:Bash hook error: Nothing is to be touched here.", "that"]
    assert not agent.file("this").exists()


def test_the_calls_of_a_subagent_are_guarded_as_well(agent: Agent) -> None:
    errand = call("Agent", description="errand", prompt="Touch it.", subagent_type="general-purpose",
                  run_in_background=False)  # fmt: skip

    run = agent.run(NO_TOUCHING, [[errand], "Neither may it."], subagent=[[bash("touch this")], "I may not."])

    assert (run.exit_code, run.stdout, run.stderr) == (0, "Neither may it.\n", "")
    assert run.asked == ["main", "subagent", "subagent", "main"]
    assert run.requests[2].results == ["PreToolUse:Bash hook error: Nothing is to be touched here."]
    assert not agent.file("this").exists()


def test_a_rewritten_call_is_what_really_runs(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, PreToolUse

        hooks = HookManager()

        @hooks.on(PreToolUse, matcher="Bash", phase="rewrite")
        def politely(event: PreToolUse) -> HookOutput:
            return HookOutput().with_updated_input({**event.tool_input, "command": "echo please"})
        """

    run = agent.run(hooks, [[bash("touch this")], "Done."])

    assert (run.exit_code, run.stdout, run.stderr, run.asked) == (0, "Done.\n", "", ["main", "main"])
    assert run.requests[-1].results == ["please"]
    assert not agent.file("this").exists()


def test_a_hook_that_raises_denies(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, PreToolUse

        hooks = HookManager()

        @hooks.on(PreToolUse)
        async def broken(event: PreToolUse) -> None:
            raise ConnectionError("the policy server is down")
        """

    run = agent.run(hooks, [[bash("touch this")], "I may not."])

    reason = "hook 'broken' failed, so this is denied: ConnectionError: the policy server is down"
    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main", "main"])
    assert run.requests[-1].results == [f"PreToolUse:Bash hook error: {reason}"]
    assert not agent.file("this").exists()


@pytest.mark.parametrize("hang", ["await asyncio.Event().wait()", "threading.Event().wait()"], ids=["async", "plain"])
def test_a_hook_that_never_answers_denies_before_the_client_gives_up(agent: Agent, hang: str) -> None:
    hooks = f"""
        import asyncio
        import threading

        from fairlead import HookManager, PreToolUse

        hooks = HookManager()

        @hooks.on(PreToolUse)
        {"async " if hang.startswith("await") else ""}def endless(event: PreToolUse) -> None:
            {hang}
        """

    run = agent.run(hooks, [[bash("touch this")], "I may not."], timeout=0.5)

    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main", "main"])
    (text,) = run.requests[-1].results
    assert re.fullmatch(
        r"PreToolUse:Bash hook error: hook 'endless' failed, so this is denied: no answer within 0\.\d+ s", text
    )
    assert not agent.file("this").exists()


def test_context_at_a_prompt_reaches_the_model(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, UserPromptSubmit

        hooks = HookManager()

        @hooks.on(UserPromptSubmit)
        async def brief(event: UserPromptSubmit) -> HookOutput:
            return HookOutput().with_context(f"{event.prompt!r} was said by the owner.")
        """

    run = agent.run(hooks, ["Understood."])

    assert (run.exit_code, run.stdout, run.stderr, run.asked) == (0, "Understood.\n", "", ["main"])
    assert run.model_saw("UserPromptSubmit hook additional context: 'Go.' was said by the owner.")


def test_a_blocked_prompt_never_reaches_the_model(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, UserPromptSubmit

        hooks = HookManager()

        @hooks.on(UserPromptSubmit)
        async def curfew(event: UserPromptSubmit) -> HookOutput | None:
            return HookOutput.block("Not at this hour.") if event.prompt == "Wake up." else None
        """

    run = agent.run(hooks, ["It is late."], prompts=["Wake up.", "Sleep."])

    assert (run.exit_code, run.stderr, run.asked) == (0, "", ["main"])
    assert run.stdout == (
        "UserPromptSubmit operation blocked by hook:\nNot at this hour.\n\nOriginal prompt: Wake up.\nIt is late.\n"
    )
    assert not run.model_saw("Wake up.")


def test_observers_hear_what_has_run(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, PostToolUse

        hooks = HookManager()

        @hooks.on(PostToolUse, phase="observe")
        async def report(event: PostToolUse) -> None:
            print(event.tool_name, event.tool_input["command"], event.tool_result["stdout"])
        """

    run = agent.run(hooks, [[bash("echo one")], [bash("echo two")], "Done."])

    assert (run.exit_code, run.stderr, run.asked) == (0, "", ["main", "main", "main"])
    assert run.stdout == "Bash echo one one\nBash echo two two\nDone.\n"


def test_a_manager_remembers_over_the_whole_session(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, PreToolUse

        hooks = HookManager()
        spent = []

        @hooks.on(PreToolUse, matcher="Bash")
        def budget(event: PreToolUse) -> HookOutput | None:
            spent.append(event.tool_use_id)
            return HookOutput.deny("One command is all you have.") if len(spent) > 1 else None
        """

    run = agent.run(hooks, [[bash("echo one")], "First.", [bash("echo two")], "Second."], prompts=["Go.", "Go on."])

    assert (run.exit_code, run.stdout, run.stderr, run.asked) == (0, "First.\nSecond.\n", "", ["main"] * 4)
    assert run.requests[-1].results == ["one", "PreToolUse:Bash hook error: One command is all you have."]
