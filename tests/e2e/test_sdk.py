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


def test_each_call_of_the_agent_and_of_its_subagent_gets_the_verdict_of_the_hooks(agent: Agent) -> None:
    """One denies, one changes what runs, one fails, one remembers, and one hears what has run."""
    hooks = """
        from fairlead import HookManager, HookOutput, PostToolUse, PreToolUse

        hooks = HookManager()
        spent = []

        @hooks.on(PreToolUse, matcher="Bash", phase="rewrite")
        def politely(event: PreToolUse) -> HookOutput | None:
            if event.tool_input["command"] != "touch that":
                return None
            return HookOutput().with_updated_input({**event.tool_input, "command": "echo please"})

        @hooks.on(PreToolUse, matcher="Bash")
        async def no_touching(event: PreToolUse) -> HookOutput | None:
            if "touch" in event.tool_input["command"]:
                return HookOutput.deny("Nothing is to be touched here.")
            return None

        @hooks.on(PreToolUse, matcher="Bash")
        async def broken(event: PreToolUse) -> None:
            if "fail" in event.tool_input["command"]:
                raise ConnectionError("the policy server is down")

        @hooks.on(PreToolUse, matcher="Bash")
        def budget(event: PreToolUse) -> HookOutput | None:
            if "costly" in event.tool_input["command"]:
                spent.append(event.tool_use_id)
            return HookOutput.deny("One is all you have.") if len(spent) > 1 else None

        @hooks.on(PostToolUse, matcher="Bash", phase="observe")
        async def report(event: PostToolUse) -> None:
            print(event.tool_name, event.tool_input["command"], event.tool_result["stdout"])
        """
    errand = call("Agent", description="errand", prompt="Touch it.", subagent_type="general-purpose",
                  run_in_background=False)  # fmt: skip
    script: list[Turn] = [
        [bash("touch this")],
        [bash("touch that")],
        [bash("echo fail > this")],
        [errand],
        [bash("echo costly")],
        "First.",
        [bash("echo costly too")],
        "Second.",
    ]

    run = agent.run(hooks, script, subagent=[[bash("touch this")], "I may not."], prompts=["Go.", "Go on."])

    assert (run.exit_code, run.stderr) == (0, "")
    assert run.stdout == "Bash echo please please\nBash echo costly costly\nFirst.\nSecond.\n"
    assert run.asked == [*["main"] * 4, *["subagent"] * 2, *["main"] * 4]
    denied = "PreToolUse:Bash hook error: Nothing is to be touched here."
    failed = "hook 'broken' failed, so this is denied: ConnectionError: the policy server is down"
    first, second, third, _, *others = run.requests[-1].results
    assert (first, second, third) == (denied, "please", f"PreToolUse:Bash hook error: {failed}")
    assert others == ["costly", "PreToolUse:Bash hook error: One is all you have."], "it remembers over the session"
    assert run.requests[5].results == [denied]
    assert not list(agent.file("").iterdir())


def test_a_hook_that_never_answers_denies_before_the_client_gives_up(agent: Agent) -> None:
    hooks = """
        import asyncio
        import threading

        from fairlead import HookManager, PreToolUse

        hooks = HookManager()

        @hooks.on(PreToolUse)
        async def endless(event: PreToolUse) -> None:
            if "this" in event.tool_input["command"]:
                await asyncio.Event().wait()

        @hooks.on(PreToolUse)
        def plain(event: PreToolUse) -> None:
            if "that" in event.tool_input["command"]:
                threading.Event().wait()
        """

    run = agent.run(hooks, [[bash("touch this")], [bash("touch that")], "I may not."], timeout=0.5)

    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main"] * 3)
    for name, text in zip(("endless", "plain"), run.requests[-1].results, strict=True):
        assert re.fullmatch(
            rf"PreToolUse:Bash hook error: hook '{name}' failed, so this is denied: no answer within 0\.\d+ s", text
        )
    assert not list(agent.file("").iterdir())


def test_context_at_a_prompt_reaches_the_model_and_a_blocked_prompt_never_does(agent: Agent) -> None:
    hooks = """
        from fairlead import HookManager, HookOutput, UserPromptSubmit

        hooks = HookManager()

        @hooks.on(UserPromptSubmit)
        async def brief(event: UserPromptSubmit) -> HookOutput:
            if event.prompt == "Wake up.":
                return HookOutput.block("Not at this hour.")
            return HookOutput().with_context(f"{event.prompt!r} was said by the owner.")
        """

    run = agent.run(hooks, ["It is late."], prompts=["Wake up.", "Sleep."])

    assert (run.exit_code, run.stderr, run.asked) == (0, "", ["main"])
    assert run.stdout == (
        "UserPromptSubmit operation blocked by hook:\nNot at this hour.\n\nOriginal prompt: Wake up.\nIt is late.\n"
    )
    assert run.model_saw("UserPromptSubmit hook additional context: 'Sleep.' was said by the owner.")
    assert not run.model_saw("Wake up.")
