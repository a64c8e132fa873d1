"""The real client with `fairlead` as its hook command, under a policy file: what the file says is what happens."""

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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from e2e.model import ToolCall, Turn

FAIRLEAD = Path(sys.executable).with_name("fairlead")

ERRAND = call("Agent", description="errand", prompt="Go.", subagent_type="general-purpose", run_in_background=False)


@dataclass(frozen=True)
class Agent:
    """The real client in a folder of its own, with `fairlead` in its settings and a policy in its project."""

    client: Path
    folder: Path

    def file(self, name: str) -> Path:
        """A file in the project that the agent works on."""
        return self.folder / "project" / name

    def read(self, name: str) -> ToolCall:
        """Read a file: the client lets the model overwrite only what it has read."""
        return call("Read", file_path=str(self.file(name)))

    def write(self, name: str) -> ToolCall:
        """Write `x` to a file."""
        return call("Write", file_path=str(self.file(name)), content="x\n")

    def run(
        self,
        policy: str,
        script: Sequence[Turn],
        *events: str,
        name: str = ".fairlead.yaml",
        prompt: str = "Go.",
        subagent: Sequence[Turn] = (),
        beside: Sequence[dict[str, Any]] = (),
    ) -> sealed.Run:
        """Prompt the agent; these events are decided by the policy alone, whatever other hooks stand beside it."""
        self.file(name).write_text(dedent(policy))
        return sealed.run(
            sealed.claude(self.client, prompt),
            folder=self.folder,
            script=script,
            subagent=subagent,
            settings={"hooks": {event: [{"hooks": [fairlead(event), *beside]}] for event in events}},
            env={"FAIRLEAD_HOME": str(self.folder / "fairlead")},
        )


@pytest.fixture
def agent(client: Path, tmp_path: Path) -> Agent:
    (tmp_path / "project").mkdir()
    return Agent(client, tmp_path)


def fairlead(event: str) -> dict[str, Any]:
    """Write the hook as it stands in the client's settings."""
    return {"type": "command", "command": str(FAIRLEAD), "args": [event], "timeout": 30}


SECRETS = """
    preToolUse:
      uneditableFiles:
        - pattern: .env
          message: Secrets are set by hand.
    """

either_name = pytest.mark.parametrize("name", [".fairlead.yaml", ".conclaude.yaml"])


# -- a call is denied ----------------------------------------------------------------------------------


@either_name
def test_an_uneditable_file_is_kept_from_every_road_and_the_model_reads_why(agent: Agent, name: str) -> None:
    agent.file(".env").write_text("KEY=1\n")

    run = agent.run(
        SECRETS,
        [
            [agent.read(".env")],
            [agent.write(".env")],
            [bash("echo x > .env")],
            [bash("cd . && tee .env")],
            [bash("grep -c KEY .env")],
            "I may only read it.",
        ],
        "PreToolUse",
        name=name,
    )

    assert (run.exit_code, run.stdout, run.asked) == (0, "I may only read it.\n", ["main"] * 6)
    _, by_write, by_redirection, by_tee, harmless = run.requests[-1].results
    assert by_write == "PreToolUse:Write hook error: Secrets are set by hand."
    assert by_redirection == by_tee == "PreToolUse:Bash hook error: Secrets are set by hand."
    assert harmless == "1"
    assert agent.file(".env").read_text() == "KEY=1\n"


@either_name
def test_the_policy_is_not_the_agents_to_change(agent: Agent, name: str) -> None:
    run = agent.run(
        SECRETS,
        [[agent.read(name)], [agent.write(name)], [bash(f"echo x > {name}")], [bash(f"rm {name}")], "I may not."],
        "PreToolUse",
        name=name,
    )

    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main"] * 5)
    _, by_write, by_redirection, by_removal = run.requests[-1].results
    assert by_write == refused_to_change("Write", agent.file(name))
    assert by_redirection == by_removal == refused_to_change("Bash", name)
    assert agent.file(name).read_text() == dedent(SECRETS)


def refused_to_change(tool: str, file: str | Path) -> str:
    """What the model reads when it is after a file that decides about it."""
    return (
        f"PreToolUse:{tool} hook error: Blocked {tool} operation: preToolUse.protectOwnFiles protects the policy, "
        f"the client's settings and Fairlead's own files. Only the user may change them. File: {file}"
    )


def test_a_policy_that_was_never_good_denies_and_says_where_it_is_broken(agent: Agent) -> None:
    policy = """\
        preToolUse:
          uneditableFile: [.env]
        """

    run = agent.run(policy, [[bash("touch this")], "I may not."], "PreToolUse")

    assert (run.exit_code, run.stdout, run.asked) == (0, "I may not.\n", ["main", "main"])
    (text,) = run.requests[-1].results
    assert text == (
        "PreToolUse:Bash hook error: The policy cannot be read, so nothing is allowed: "
        f"{agent.file('.fairlead.yaml')}:2:3: unknown key `uneditableFile` in `preToolUse`; "
        "did you mean `uneditableFiles`?\nOnly a person can fix the file, or remove it; `fairlead validate` lists its "
        "errors. `cd` and `pwd` are allowed."
    )
    assert not agent.file("this").exists()


def test_a_command_that_nobody_can_judge_is_denied_where_nobody_can_be_asked(agent: Agent) -> None:
    policy = """
        preToolUse:
          uneditableFiles: [.env]
          bash:
            unparsable: ask
        """
    agent.file(".env").write_text("KEY=1\n")

    run = agent.run(policy, [[bash('echo x > "$(ls -A | grep env)"')], "Nobody is here."], "PreToolUse")

    assert (run.exit_code, run.stdout, run.asked) == (0, "Nobody is here.\n", ["main", "main"])
    (text,) = run.requests[-1].results
    assert text == (
        "This command cannot be checked against the policy (preToolUse.bash.unparsable): whether > writes .env is only "
        "known when it runs; preToolUse.uneditableFiles[0] '.env' protects it. A person should be asked, but this "
        "session runs without one, so it is denied. To need no question: name programs and files literally, without "
        "variables and substitutions; run one plain command at a time; change files with the tools for that, not with "
        "inline code; leave protected files out."
    )
    assert agent.file(".env").read_text() == "KEY=1\n"


# -- the end of a turn ---------------------------------------------------------------------------------


def test_a_check_that_fails_keeps_the_agent_going_until_it_passes(agent: Agent) -> None:
    policy = """
        stop:
          commands:
            - run: |
                echo checked >> log
                test -e done || { touch done; echo not yet; exit 1; }
              message: Look again.
              showStdout: true
        """

    run = agent.run(policy, ["Done.", "Done, really."], "Stop")

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done, really.\n", ["main", "main"])
    assert run.requests[-1].said("user")[-1] == "Stop hook feedback:\nLook again.\nStdout: not yet"
    assert agent.file("log").read_text() == "checked\n" * 2


# -- subagents -----------------------------------------------------------------------------------------


def test_context_for_a_subagent_reaches_it_and_nobody_else(agent: Agent) -> None:
    policy = """
        subagentStart:
          context:
            general-*: Say which files you changed.
            Explore: Change nothing.
        """

    run = agent.run(policy, [[ERRAND], "Done."], "SubagentStart", subagent=["None."])

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main", "subagent", "main"])
    told = [request.holds("Say which files you changed.") for request in run.requests]
    assert told == [False, True, False]
    assert run.requests[1].holds("SubagentStart hook additional context: Say which files you changed.")
    assert not run.model_saw("Change nothing.")


def test_commands_at_a_subagents_end_are_told_which_one_it_was(agent: Agent) -> None:
    policy = """
        subagentStop:
          commands:
            general-purpose:
              - run: printenv CONCLAUDE_AGENT_ID CONCLAUDE_AGENT_TYPE >> ended
        """
    sent = agent.folder / "sent"
    cat = {"type": "command", "command": "sh", "args": ["-c", 'cat > "$0"', str(sent)]}

    run = agent.run(policy, [[ERRAND], "Done."], "SubagentStop", subagent=["None."], beside=[cat])

    assert (run.exit_code, run.stdout, run.asked) == (0, "Done.\n", ["main", "subagent", "main"])
    payload = json.loads(sent.read_text())
    assert (payload["agent_type"], bool(payload["agent_id"])) == ("general-purpose", True)
    assert agent.file("ended").read_text() == f"{payload['agent_id']}\n{payload['agent_type']}\n"


# -- prompts -------------------------------------------------------------------------------------------


def test_context_for_a_prompt_reaches_the_model_if_the_prompt_matches(agent: Agent) -> None:
    policy = """
        userPromptSubmit:
          contextRules:
            - pattern: release|changelog
              prompt: Every change goes to the changelog.
            - pattern: deploy
              prompt: Never on a Friday.
        """

    run = agent.run(policy, ["Released."], "UserPromptSubmit", prompt="Make a release.")

    assert (run.exit_code, run.stdout, run.asked) == (0, "Released.\n", ["main"])
    assert run.model_saw("UserPromptSubmit hook additional context: Every change goes to the changelog.")
    assert not run.model_saw("Never on a Friday.")
