"""The hook-system document on commands and rules: CommandHook, its settings and interface, HookRule, HookAction."""

from __future__ import annotations

import json
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from fairlead import (
    CommandHook,
    Event,
    HookAction,
    HookContext,
    HookEvent,
    HookManager,
    HookOutput,
    HookRule,
    PostToolUse,
    PreToolUse,
    load_rules,
    post_tool_use,
    pre_tool_use,
    session_end,
    session_start,
)

if TYPE_CHECKING:
    from pathlib import Path

    from fairlead import HookResult

DANGEROUS = pre_tool_use("abc-123", "Bash", {"command": "rm -rf /"})


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(dedent(text))
    file.chmod(0o755)
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def ctx(project: Path) -> HookContext:
    """Commands run in the project, and find the programs in its `bin` before any other."""
    return HookContext("abc-123", cwd=str(project), env={"PATH": f"{project / 'bin'}:/usr/bin:/bin"})


def fire(hook: CommandHook, event: Event, ctx: HookContext | None = None) -> HookResult:
    manager = HookManager()
    manager.register(hook)
    return manager.fire_sync(event, ctx)


# -- CommandHook ---------------------------------------------------------------------------------------


class TestCommandHook:
    def test_it_runs_shell_commands(self, ctx: HookContext, project: Path) -> None:
        fire(CommandHook("n", "echo one && echo two > file", [PreToolUse]), DANGEROUS, ctx)

        assert (project / "file").read_text() == "two\n"

    def test_name(self) -> None:
        assert CommandHook("security-check", "true", [PreToolUse]).name == "security-check"

    def test_command(self) -> None:
        assert CommandHook("n", "python check.py", [PreToolUse]).command == "python check.py"

    def test_events(self, ctx: HookContext) -> None:
        hook = CommandHook("n", "exit 2", [HookEvent.PreToolUse, PostToolUse])

        assert hook.events == (HookEvent.PreToolUse, PostToolUse)
        assert fire(hook, DANGEROUS, ctx).runs
        assert not fire(hook, session_end("s"), ctx).runs

    def test_tool_pattern(self, ctx: HookContext) -> None:
        """Called `matcher`, as in the settings."""
        hook = CommandHook("n", "exit 2", [PreToolUse], matcher="Bash|Write")

        assert fire(hook, DANGEROUS, ctx).blocked
        assert not fire(hook, pre_tool_use("s", "Read", {}), ctx).blocked

    def test_tool_pattern_is_optional(self) -> None:
        assert CommandHook("n", "true", [PreToolUse]).matcher is None

    def test_timeout_secs(self, ctx: HookContext) -> None:
        """Called `timeout`: fractions of a second are welcome."""
        assert CommandHook("n", "true", [PreToolUse]).timeout == 60
        assert (
            fire(CommandHook("n", "sleep 30", [PreToolUse], timeout=0.1), DANGEROUS, ctx).runs[0].outcome == "timed out"
        )

    def test_extra_env(self, ctx: HookContext) -> None:
        """Called `env`."""
        hook = CommandHook("n", 'echo "$GREETING" >&2; exit 2', [PreToolUse], env={"GREETING": "hello"})

        assert fire(hook, DANGEROUS, ctx).reason == "hello"


# -- CommandHook: Configuration ------------------------------------------------------------------------

SETTINGS = r"""
{
  "hooks": {
    "preToolUse": {
      "security-check": {
        "command": "python check_security.py",
        "timeout_secs": 30,
        "matcher": "Bash|Write"
      }
    },
    "postToolUse": {
      "audit-log": "echo '{\"event\":\"$EVENT\"}' >> /tmp/audit.log"
    },
    "sessionStart": [
      "notify-send 'Session started'"
    ],
    "sessionEnd": [
      "cleanup-temp.sh"
    ]
  }
}
"""

CHECK_SECURITY = """\
    import json
    import sys

    payload = json.load(sys.stdin)
    if "rm -rf" in payload["tool_input"].get("command", ""):
        print(json.dumps({
            "continue_execution": False,
            "stop_reason": "Dangerous command blocked",
            "updated_input": None,
        }))
    """


class TestConfiguration:
    @pytest.mark.parametrize("place", ["home", "project"])
    def test_in_home_or_project_claude_settings_json(self, place: str, tmp_path: Path) -> None:
        path = tmp_path / place / ".claude" / "settings.json"
        path.parent.mkdir(parents=True)
        path.write_text(SETTINGS)
        manager = HookManager()

        rules = load_rules(path)
        rules.register(manager)

        assert rules.problems == ()
        assert manager.hooks_for_event(HookEvent.PreToolUse) == ["security-check"]
        assert manager.hooks_for_event(HookEvent.PostToolUse) == ["audit-log"]
        assert manager.hooks_for_event(HookEvent.SessionStart) == ["session-start-0"]
        assert manager.hooks_for_event(HookEvent.SessionEnd) == ["session-end-0"]

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("security-check", ("python check_security.py", "Bash|Write", 30, (HookEvent.PreToolUse,))),
            ("audit-log", ("""echo '{"event":"$EVENT"}' >> /tmp/audit.log""", None, 60, (HookEvent.PostToolUse,))),
            ("session-start-0", ("notify-send 'Session started'", None, 60, (HookEvent.SessionStart,))),
            ("session-end-0", ("cleanup-temp.sh", None, 60, (HookEvent.SessionEnd,))),
        ],
        ids=["preToolUse: an object", "postToolUse: a string", "sessionStart: a list", "sessionEnd: a list"],
    )
    def test_each_entry(self, name: str, expected: tuple[object, ...], tmp_path: Path) -> None:
        path = tmp_path / "settings.json"
        path.write_text(SETTINGS)

        (hook,) = (hook for hook in load_rules(path).hooks if hook.name == name)

        assert (hook.command, hook.matcher, hook.timeout, hook.events) == expected


@pytest.fixture
def configured(project: Path) -> HookManager:
    """The document's settings in a project that has its programs. Only the log lies here, not in `/tmp`."""
    program(project / "bin", "python", f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    program(project / "bin", "notify-send", '#!/bin/sh\necho "$@" > notified\n')
    program(project / "bin", "cleanup-temp.sh", "#!/bin/sh\nrm temporary\n")
    (project / "check_security.py").write_text(dedent(CHECK_SECURITY))
    path = program(project / ".claude", "settings.json", SETTINGS.replace("/tmp/audit.log", "audit.log"))
    manager = HookManager()
    load_rules(path).register(manager)
    return manager


class TestConfigurationAtWork:
    def test_security_check_blocks(self, configured: HookManager, ctx: HookContext) -> None:
        result = configured.fire_sync(DANGEROUS, ctx)

        assert result.output == HookOutput.block("Dangerous command blocked")

    @pytest.mark.parametrize(
        ("tool", "asked"), [("Bash", True), ("Write", True), ("Read", False), ("BashOutput", False)]
    )
    def test_security_check_is_asked_about_bash_and_write(
        self,
        configured: HookManager,
        ctx: HookContext,
        tool: str,
        asked: bool,
    ) -> None:
        result = configured.fire_sync(pre_tool_use("abc-123", tool, {"command": "ls"}), ctx)

        assert [(run.name, run.outcome) for run in result.runs] == ([("security-check", "allowed")] if asked else [])

    def test_audit_log(self, configured: HookManager, ctx: HookContext, project: Path) -> None:
        """The document's single quotes keep its `$EVENT` from the shell; without them it is filled in (below)."""
        configured.fire_sync(post_tool_use("abc-123", "Bash", "done"), ctx)
        configured.fire_sync(post_tool_use("abc-123", "Read", "done"), ctx)

        assert (project / "audit.log").read_text() == '{"event":"$EVENT"}\n' * 2

    def test_event_is_in_the_commands_environment(self, ctx: HookContext, project: Path) -> None:
        hook = CommandHook("audit-log", 'echo "{\\"event\\":\\"$EVENT\\"}" >> audit.log', [PostToolUse])

        fire(hook, post_tool_use("abc-123", "Bash", "done"), ctx)

        assert (project / "audit.log").read_text() == '{"event":"post_tool_use"}\n'

    def test_session_start(self, configured: HookManager, ctx: HookContext, project: Path) -> None:
        result = configured.fire_sync(session_start("abc-123"), ctx)

        assert (result.blocked, (project / "notified").read_text()) == (False, "Session started\n")

    def test_session_end(self, configured: HookManager, ctx: HookContext, project: Path) -> None:
        (project / "temporary").touch()

        configured.fire_sync(session_end("abc-123"), ctx)

        assert not (project / "temporary").exists()


# -- CommandHook: Command Interface --------------------------------------------------------------------

INPUT = """
{
  "event": "pre_tool_use",
  "session_id": "abc-123",
  "tool_name": "Bash",
  "tool_input": {"command": "rm -rf /"}
}
"""

OUTPUT = """
{
  "continue_execution": false,
  "stop_reason": "Dangerous command blocked",
  "updated_input": null
}
"""


class TestCommandInterface:
    def test_input_on_stdin_is_a_json_payload(self, ctx: HookContext, project: Path) -> None:
        """The client's own keys come along, so that scripts written for the client work, too."""
        fire(CommandHook("n", "cat > stdin.json", [PreToolUse]), DANGEROUS, ctx)

        told = json.loads((project / "stdin.json").read_text())
        assert told == {**json.loads(INPUT), "hook_event_name": "PreToolUse"}

    def test_output_on_stdout_is_a_json_response(self, ctx: HookContext, project: Path) -> None:
        (project / "answer.json").write_text(OUTPUT)

        result = fire(CommandHook("n", "cat answer.json", [PreToolUse]), DANGEROUS, ctx)

        assert result.output == HookOutput.block("Dangerous command blocked")

    def test_output_may_update_the_input(self, ctx: HookContext, project: Path) -> None:
        (project / "answer.json").write_text('{"updated_input": {"command": "ls"}}')

        result = fire(CommandHook("n", "cat answer.json", [PreToolUse]), DANGEROUS, ctx)

        assert isinstance(result.event, PreToolUse)
        assert (result.blocked, result.event.tool_input) == (False, {"command": "ls"})

    @pytest.mark.parametrize("command", ["true", "echo", "printf ' \\n\\t'", "exec >&-"])
    def test_empty_or_no_output_allows_execution(self, command: str, ctx: HookContext) -> None:
        result = fire(CommandHook("n", command, [PreToolUse]), DANGEROUS, ctx)

        assert (result.output, result.runs[0].outcome) == (HookOutput.allow(), "allowed")


# -- Shared Types: HookRule & HookAction ---------------------------------------------------------------


class TestHookRule:
    def test_matcher_is_an_optional_tool_pattern(self) -> None:
        assert HookRule().matcher is None
        assert HookRule("Write|Edit").matcher == "Write|Edit"

    def test_hooks_is_a_list_of_actions(self) -> None:
        action = HookAction("command", "fmt.sh")

        assert HookRule("Write|Edit", (action,)).hooks == (action,)

    def test_it_is_read_from_a_document(self) -> None:
        document = {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "fmt.sh"}]}

        assert msgspec.convert(document, HookRule) == HookRule("Write|Edit", (HookAction("command", "fmt.sh"),))


class TestHookAction:
    def test_hook_type(self) -> None:
        """`type` in a document."""
        assert HookAction("command").hook_type == "command"
        assert msgspec.convert({"type": "command"}, HookAction) == HookAction("command")

    def test_hook_type_is_currently_only_command(self, tmp_path: Path) -> None:
        path = tmp_path / "hooks.json"
        path.write_text('{"hooks": {"Stop": [{"hooks": [{"type": "prompt", "prompt": "Done?"}]}]}}')

        rules = load_rules(path)

        assert rules.hooks == ()
        (problem,) = rules.problems
        assert (
            str(problem) == f"{path}: hooks.Stop[0].hooks[0].type: type 'prompt' is not run by Fairlead, only 'command'"
        )

    def test_command_is_optional(self) -> None:
        assert HookAction("command").command is None
        assert HookAction("command", "fmt.sh").command == "fmt.sh"

    def test_timeout_is_optional(self) -> None:
        assert HookAction("command").timeout is None
        assert HookAction("command", "fmt.sh", 10).timeout == 10


FRONTMATTER = """\
hooks:
  PreToolUse:
    - matcher: "Write|Edit"
      hooks:
        - type: command
          command: scripts/format.sh
          timeout: 10
"""

HOOKS_JSON = """
{
  "hooks": {
    "PostToolUse": [
      {
        "matcher": "Write|Edit",
        "hooks": [
          { "type": "command", "command": "fmt.sh" }
        ]
      }
    ]
  }
}
"""

FORMATTER = "#!/bin/sh\necho formatted >> log\n"


def fired(rules_file: Path, event: Event, ctx: HookContext, **options: Any) -> HookResult:
    manager = HookManager()
    rules = load_rules(rules_file, **options)
    rules.register(manager)
    assert rules.problems == ()
    return manager.fire_sync(event, ctx)


OWNERS = {"skills/formatter/SKILL.md": "formatter", "agents/reviewer.md": "reviewer"}


class TestUsageInFrontmatter:
    @pytest.fixture(params=OWNERS, ids=["skill", "subagent"])
    def document(self, request: pytest.FixtureRequest, project: Path) -> Path:
        path: Path = project / ".claude" / request.param
        path.parent.mkdir(parents=True)
        path.write_text(f"---\nname: it\ndescription: formats\n{FRONTMATTER}---\n\n# How to\n\nhooks: none\n")
        return path

    def test_it_is_loaded_and_registered(self, document: Path, project: Path) -> None:
        (hook,) = load_rules(document).hooks

        assert hook.name == f"{OWNERS[str(document.relative_to(project / '.claude'))]}:pre-tool-use-0"
        assert (hook.command, hook.matcher, hook.timeout) == ("scripts/format.sh", "Write|Edit", 10)
        assert hook.events == (HookEvent.PreToolUse,)

    @pytest.mark.parametrize(("tool", "runs"), [("Write", 1), ("Edit", 1), ("Bash", 0), ("MultiEdit", 0)])
    def test_it_runs(self, document: Path, ctx: HookContext, project: Path, tool: str, runs: int) -> None:
        program(project / "scripts", "format.sh", FORMATTER)
        (project / "log").touch()

        result = fired(document, pre_tool_use("s", tool, {}), ctx)

        assert [run.outcome for run in result.runs] == ["allowed"] * runs
        assert (result.output, (project / "log").read_text()) == (HookOutput.allow(), "formatted\n" * runs)


class TestOfficialHooksJsonFormat:
    @pytest.fixture
    def document(self, tmp_path: Path) -> Path:
        return program(tmp_path / "plugins" / "tidy" / "hooks", "hooks.json", HOOKS_JSON)

    def test_it_is_loaded_and_registered(self, document: Path) -> None:
        (hook,) = load_rules(document).hooks

        assert (hook.name, hook.command, hook.matcher, hook.timeout) == ("post-tool-use-0", "fmt.sh", "Write|Edit", 60)
        assert hook.events == (HookEvent.PostToolUse,)

    def test_of_a_plugin_it_bears_the_plugins_name(self, document: Path) -> None:
        (hook,) = load_rules(document, plugin_root=document.parents[1]).hooks

        assert hook.name == "tidy:post-tool-use-0"

    @pytest.mark.parametrize(("tool", "runs"), [("Write", 1), ("Edit", 1), ("Bash", 0), ("NotebookEdit", 0)])
    def test_it_runs(self, document: Path, ctx: HookContext, project: Path, tool: str, runs: int) -> None:
        program(project / "bin", "fmt.sh", FORMATTER)
        (project / "log").touch()

        result = fired(document, post_tool_use("s", tool, "done"), ctx, plugin_root=document.parents[1])

        assert [run.outcome for run in result.runs] == ["allowed"] * runs
        assert (project / "log").read_text() == "formatted\n" * runs
