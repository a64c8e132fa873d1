"""The plan of an event: which commands, in which order, with which environment."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead import (
    Event,
    HookEvent,
    parse,
    post_tool_use,
    pre_tool_use,
    session_end,
    stop,
    subagent_start,
    subagent_stop,
    user_prompt_submit,
)
from fairlead.policy.commands._environment import (
    ALL_VARIABLES,
    MAX_VALUE_BYTES,
    PREFIXES,
    command_environment,
    event_variables,
)
from fairlead.policy.commands._plan import Plan, Step
from fairlead.policy.commands._planner import _KINDS, matching_patterns, plan_commands
from fairlead.policy.config._types import Layer, ListSection, PatternSection, Policy
from fairlead.testing import make_payload, samples


def layer(document: dict[str, Any], folder: str = "/project") -> Layer:
    return Layer(f"{folder}/.fairlead.yaml", folder, msgspec.convert(document, Policy))


def commands(*names: str) -> list[dict[str, str]]:
    return [{"run": name} for name in names]


def runs(event: Event, *layers: Layer) -> list[str]:
    return [step.run for step in plan_commands(event, layers).steps]


def stopped(agent_id: str, agent_type: str | None = None) -> Event:
    return parse(make_payload("SubagentStop", agent_id=agent_id, agent_type=agent_type or agent_id))


def started(agent_id: str = "a1", agent_type: str = "coder", **more: Any) -> Event:
    return parse(make_payload("SubagentStart", agent_id=agent_id, agent_type=agent_type, **more))


# -- patterns ------------------------------------------------------------------------------------------


@for_each(
    ("pattern", "matched", "unmatched"),
    [
        ("*", ["coder", "tester", "stuck"], []),
        ("coder", ["coder"], ["auto-coder", "coder-agent", "Coder"]),
        ("test*", ["tester", "test-runner", "testing"], ["runner-test"]),
        ("*coder", ["coder", "auto-coder", "smart-coder"], ["coder-agent"]),
        ("agent_[0-9]*", ["agent_1", "agent_2x", "agent_99test"], ["agent_x", "agent"]),
        ("test?", ["test1"], ["test", "test12"]),
        ("[!a]b", ["cb"], ["ab"]),
        ("src/*.py", ["src/a.py", "src/a/b.py"], ["src/a.pyc"]),
    ],
)
def test_a_pattern_matches_the_whole_name(pattern: str, matched: list[str], unmatched: list[str]) -> None:
    config = layer({"subagentStop": {"commands": {pattern: commands("x")}}})
    assert [name for name in matched + unmatched if runs(stopped(name), config)] == matched


def test_a_pattern_with_many_stars_does_not_backtrack() -> None:
    assert list(matching_patterns(["a*" * 40 + "b"], ("a" * 5000,))) == []


def test_the_commands_of_all_matching_patterns_run_those_of_the_star_first() -> None:
    by_pattern = {"*coder": commands("1", "2"), "auto*": commands("3"), "*": commands("0"), "other": commands("4")}
    assert runs(stopped("auto-coder"), layer({"subagentStop": {"commands": by_pattern}})) == ["0", "1", "2", "3"]


def test_a_subagent_is_matched_by_its_type_as_well_as_its_id() -> None:
    config = layer({"subagentStop": {"commands": {"coder": commands("type"), "a1b2": commands("id")}}})
    assert runs(stopped("a1b2", "coder"), config) == ["type", "id"]


def test_a_pattern_that_matches_both_id_and_type_runs_once() -> None:
    config = layer({"subagentStop": {"commands": {"coder": commands("x")}}})
    assert runs(stopped("coder", "coder"), config) == ["x"]


def test_without_a_match_the_plan_is_empty() -> None:
    config = layer({"subagentStop": {"commands": {"coder": commands("x"), "tester": commands("y")}}})
    planned = plan_commands(stopped("unknown-agent"), (config,))
    assert planned.steps == ()
    assert planned.log[1] == "Agent 'unknown-agent' did not match any configured patterns"


@for_each("document", [{}, {"subagentStop": {}}, {"stop": {"commands": commands("x")}}])
def test_without_a_section_an_event_runs_nothing(document: dict[str, Any]) -> None:
    assert runs(stopped("coder"), layer(document)) == []


def test_subagent_commands_are_for_no_other_event() -> None:
    config = layer({"subagentStop": {"commands": {"*": commands("x")}}})
    assert {event.event_name for event in samples() if runs(event, config)} == {"SubagentStop"}


def test_the_nearest_file_comes_first() -> None:
    near = layer({"subagentStop": {"commands": {"coder": commands("near"), "*": commands("near all")}}})
    far = layer({"subagentStop": {"commands": {"*": commands("far all")}}}, "/home/me/.config/fairlead")
    assert runs(stopped("coder"), near, far) == ["near all", "near", "far all"]


# -- every event ---------------------------------------------------------------------------------------


def test_every_section_of_commands_belongs_to_an_event() -> None:
    """But for the special `userPromptSubmit` and `worktreeCreate`; `skillStart` is part of SubagentStart."""
    sections = {
        field.name
        for field in msgspec.structs.fields(Policy)
        if isinstance(getattr(Policy(), field.name), PatternSection | ListSection)
    }
    assert sections - {"skill_start"} == {kind.section for kind in _KINDS.values()}
    assert {name for name in _KINDS if not hasattr(HookEvent, name)} == set()


@for_each("name", [name for name, kind in _KINDS.items() if kind.subject])
def test_every_pattern_section_is_matched_against_its_subject(name: str) -> None:
    kind = _KINDS[name]
    assert kind.subject
    event = msgspec.structs.replace(next(iter(samples(name))), **{kind.subject: "this-one"})
    section = "".join(part.title() if index else part for index, part in enumerate(kind.section.split("_")))
    config = layer({section: {"commands": {"this-*": commands("yes"), "that": commands("no"), "*": commands("all")}}})
    assert runs(event, config) == ["all", "yes"]
    assert plan_commands(event, (config,)).env["FAIRLEAD_HOOK_EVENT"] == name


@pytest.mark.parametrize(
    ("name", "subject"),
    [
        ("TeammateIdle", "teammate_name"),
        ("TaskCompleted", "task_subject"),
        ("TaskCreated", "task_subject"),
        ("ConfigChange", "source"),
        ("Setup", "trigger"),
        ("PostCompact", "trigger"),
        ("CwdChanged", "new_cwd"),
        ("FileChanged", "file_path"),
        ("InstructionsLoaded", "memory_type"),
        ("PermissionDenied", "tool_name"),
        ("UserPromptExpansion", "command_name"),
        ("Elicitation", "mcp_server_name"),
        ("ElicitationResult", "mcp_server_name"),
        ("PostToolUse", "tool_name"),
    ],
)
def test_the_subject_is_the_one_that_existing_files_expect(name: str, subject: str) -> None:
    assert _KINDS[name].subject == subject


def test_exit_code_2_blocks_where_the_event_may_block() -> None:
    may = {name for name, kind in _KINDS.items() if kind.on_failure == "block-on-2"}
    assert may == {"TeammateIdle", "TaskCompleted", "ConfigChange", "Setup", "PreCompact", "WorktreeRemove"}
    assert {name for name, kind in _KINDS.items() if kind.on_failure == "block-first"} == {"Stop"}


def test_an_organisations_settings_cannot_be_blocked() -> None:
    config = layer({"configChange": {"commands": {"*": commands("x")}}})
    rules = {
        source: plan_commands(parse(make_payload("ConfigChange", source=source)), (config,)).on_failure
        for source in ("policy_settings", "user_settings")
    }
    assert rules == {"policy_settings": "never", "user_settings": "block-on-2"}


def test_a_star_matches_an_event_without_a_subject() -> None:
    assert runs(session_end("s"), layer({"sessionEnd": {"commands": {"*": commands("x"), "?*": commands("y")}}})) == [
        "x"
    ]


def test_commands_for_a_message_run_when_it_is_complete() -> None:
    config = {"commands": commands("x")}
    final, part = (parse(make_payload("MessageDisplay", final=final)) for final in (True, False))
    assert runs(final, layer({"messageDisplay": config})) == ["x"]
    assert runs(part, layer({"messageDisplay": config})) == []
    assert runs(part, layer({"messageDisplay": {**config, "onlyFinal": False}})) == ["x"]


def test_an_event_without_a_section_has_an_empty_plan() -> None:
    planned = plan_commands(
        pre_tool_use("s", "Bash", {"command": "ls"}), (layer({"stop": {"commands": commands("x")}}),)
    )
    assert planned == Plan(event_name="PreToolUse", session_id="s")


def test_a_worktree_is_created_by_the_command_of_the_nearest_file() -> None:
    near, far = ({"worktreeCreate": {"command": name}} for name in ("near", "far"))
    planned = plan_commands(parse(make_payload("WorktreeCreate")), (layer({}), layer(near), layer(far)))
    assert [(step.run, step.timeout) for step in planned.steps] == [("near", 60.0)]
    assert (planned.gives_path, planned.on_failure) == (True, "block-first")
    assert plan_commands(parse(make_payload("WorktreeCreate")), (layer({}),)).steps == ()


# -- steps ---------------------------------------------------------------------------------------------


def test_a_step_has_every_value_of_its_command() -> None:
    command = {
        "run": "npm test",
        "message": "Tests fail",
        "showCommand": False,
        "showStdout": True,
        "showStderr": True,
        "maxOutputLines": 50,
        "timeout": 30,
        "notifyPerCommand": True,
        "workingDir": "web",
        "shell": "zsh",
        "when": ["*.ts", "*.tsx"],
    }
    (step,) = plan_commands(stopped("coder"), (layer({"subagentStop": {"commands": {"c*": [command]}}}),)).steps
    assert step == Step(  # noqa: S604 - a field of that name
        run="npm test",
        folder="/project",
        cwd="/project/web",
        shell="zsh",
        timeout=30,
        message="Tests fail",
        show_command=False,
        show_stdout=True,
        show_stderr=True,
        max_output_lines=50,
        notify=True,
        pattern="c*",
        when=("*.ts", "*.tsx"),
    )


def test_by_default_a_command_runs_in_bash_in_the_folder_of_the_file_and_shows_nothing() -> None:
    (step,) = plan_commands(stop("s"), (layer({"stop": {"commands": commands("make")}}),)).steps
    assert step == Step(run="make", folder="/project", cwd="/project/")
    assert (step.shell, step.timeout, step.show_command, step.show_stdout) == ("bash", None, True, False)


def test_a_working_folder_may_be_absolute_and_when_a_single_pattern() -> None:
    command = {"run": "x", "workingDir": "/srv", "when": "*.py"}
    (step,) = plan_commands(stop("s"), (layer({"stop": {"commands": [command]}}),)).steps
    assert (step.cwd, step.when) == ("/srv", ("*.py",))


def test_a_plan_can_be_encoded_as_json_and_decoded() -> None:
    config = layer({"stop": {"commands": [{"run": "x", "when": ["a"]}], "infinite": True, "parallel": True}})
    planned = plan_commands(parse(make_payload("Stop", stop_hook_active=True)), (config,))
    assert msgspec.json.decode(msgspec.json.encode(planned), type=Plan) == planned


# -- stop ----------------------------------------------------------------------------------------------


def test_by_default_stop_blocks_five_times_at_most_and_is_not_infinite() -> None:
    planned = plan_commands(stop("s"), (layer({"stop": {"commands": commands("a", "b")}}),))
    assert (planned.on_failure, planned.parallel, planned.max_blocks) == ("block-first", False, 5)
    assert (planned.infinite, planned.first_stop) == (None, None)


@pytest.mark.parametrize(
    ("section", "message"),
    [({}, "continue working on the task"), ({"infiniteMessage": "Next task!"}, "Next task!")],
)
def test_an_infinite_stop_has_a_message(section: dict[str, Any], message: str) -> None:
    assert plan_commands(stop("s"), (layer({"stop": {"infinite": True, **section}}),)).infinite == message


def test_settings_of_stop_come_from_the_nearest_file_that_has_them() -> None:
    near = layer({"stop": {"commands": commands("near"), "maxBlocks": 2}})
    far = layer({"stop": {"commands": commands("far"), "maxBlocks": 9, "parallel": True}})
    planned = plan_commands(stop("s"), (near, far))
    assert [step.run for step in planned.steps] == ["near", "far"]
    assert (planned.max_blocks, planned.parallel) == (2, True)


def test_the_client_tells_whether_a_stop_is_the_first_of_a_turn() -> None:
    for active, first in ((True, False), (False, True), (None, None)):
        assert plan_commands(parse(make_payload("Stop", stop_hook_active=active)), ()).first_stop is first


# -- the start of a subagent ---------------------------------------------------------------------------


def test_a_subagents_start_is_logged_whether_or_not_there_are_commands() -> None:
    event = started("a1", session_id="abc123")
    assert plan_commands(event, ()).log == (
        "Processing SubagentStart hook: session_id=abc123, agent_id=a1, subagent_type=coder",
    )


def test_matched_patterns_are_logged() -> None:
    config = layer({"subagentStart": {"commands": {"coder": commands("a"), "*": commands("b", "c")}}})
    assert plan_commands(started("a1", "coder"), (config,)).log[1] == 'Agent \'a1\' matched patterns: ["*", "coder"]'


def test_skill_commands_run_at_a_subagents_start_by_its_type_alone() -> None:
    config = layer(
        {
            "subagentStart": {"commands": {"a1": commands("by id")}},
            "skillStart": {"commands": {"cod*": commands("skill"), "a1": commands("never")}},
        }
    )
    assert runs(started("a1", "coder"), config) == ["by id", "skill"]


def test_the_context_of_a_subagent_is_the_texts_that_match_it() -> None:
    near = layer({"subagentStart": {"context": {"coder": "Write tests.", "*": "Be brief.", "tester": "No."}}})
    far = layer({"subagentStart": {"context": {"a?": "From afar."}}})
    assert plan_commands(started("a1", "coder"), (near, far)).context == "Be brief.\n\nWrite tests.\n\nFrom afar."
    assert plan_commands(started("a1", "coder"), ()).context is None


# -- prompts -------------------------------------------------------------------------------------------


def test_commands_for_prompts_run_if_their_pattern_is_found() -> None:
    patterns: list[dict[str, Any]] = [
        {"run": "all"},
        {"run": "found", "pattern": "dep.oy"},
        {"run": "case", "pattern": "DEPLOY"},
        {"run": "any case", "pattern": "DEPLOY", "caseInsensitive": True},
    ]
    config = layer({"userPromptSubmit": {"commands": patterns}})
    planned = plan_commands(user_prompt_submit("s", "please deploy"), (config,))
    assert [step.run for step in planned.steps] == ["all", "found", "any case"]
    assert all(step.observes for step in planned.steps)
    assert planned.env["CONCLAUDE_USER_PROMPT"] == "please deploy"


@for_each("key", ["commit", "/commit", "com*", "/com*", "*", "/*"])
def test_the_commands_of_a_slash_command_may_block(key: str) -> None:
    section = {"slashCommands": {"commands": {key: commands("check"), "other": commands("no")}}}
    planned = plan_commands(user_prompt_submit("s", "/commit -m 'a b'"), (layer({"userPromptSubmit": section}),))
    assert [(step.run, step.observes) for step in planned.steps] == [("check", False)]
    assert planned.on_failure == "block-on-2"
    assert planned.env["FAIRLEAD_SLASH_COMMAND"] == "commit"
    assert planned.env["FAIRLEAD_SLASH_COMMAND_ARGS"] == "-m 'a b'"


def test_a_blank_prompt_runs_nothing() -> None:
    rules = {"commands": commands("x"), "contextRules": [{"pattern": ".?", "prompt": "x"}]}
    planned = plan_commands(user_prompt_submit("s", " \n"), (layer({"userPromptSubmit": rules}),))
    assert (planned.steps, planned.context) == ((), None)


def test_the_context_of_a_prompt_is_read_by_the_function_that_is_passed() -> None:
    rules = {"contextRules": [{"pattern": "db", "prompt": "See @schema.sql"}]}
    planned = plan_commands(
        user_prompt_submit("s", "change the db"),
        (layer({"userPromptSubmit": rules}),),
        read=lambda folder, path: f"<{folder} {path}>",
    )
    assert planned.context == "See </project schema.sql>"


# -- the environment -----------------------------------------------------------------------------------


def without_prefix(event: Event) -> dict[str, str]:
    return {
        name.removeprefix("FAIRLEAD_"): value
        for name, value in event_variables(event).items()
        if name.startswith("FAIRLEAD_")
    }


def test_the_variables_of_a_subagents_stop() -> None:
    payload = {
        "session_id": "abc",
        "transcript_path": "/t/main.json",
        "hook_event_name": "SubagentStop",
        "cwd": "/home/user/project",
        "agent_id": "coder",
        "agent_type": "Coder",
        "agent_transcript_path": "/t/agent_coder.json",
    }
    assert without_prefix(parse(payload)) == {
        "SESSION_ID": "abc",
        "TRANSCRIPT_PATH": "/t/main.json",
        "HOOK_EVENT": "SubagentStop",
        "CWD": "/home/user/project",
        "AGENT_ID": "coder",
        "AGENT_TYPE": "Coder",
        "SUBAGENT_TYPE": "Coder",
        "AGENT_NAME": "Coder",
        "AGENT_TRANSCRIPT_PATH": "/t/agent_coder.json",
    }


def test_every_variable_has_both_names() -> None:
    for event in samples():
        found = event_variables(event)
        assert {name.removeprefix("FAIRLEAD_") for name in found if name.startswith("FAIRLEAD_")} == {
            name.removeprefix("CONCLAUDE_") for name in found if name.startswith("CONCLAUDE_")
        }
        assert set(found) <= ALL_VARIABLES
        assert all(name.startswith(PREFIXES) for name in found)


def test_a_transcript_path_that_was_not_sent_is_derived() -> None:
    event = started("a1", transcript_path="/t/main.jsonl", agent_transcript_path=None)
    assert without_prefix(event)["AGENT_TRANSCRIPT_PATH"] == "/t/main/subagents/agent-a1.jsonl"
    assert without_prefix(event)["SKILL_NAME"] == "coder"


@for_each("key", ["file_path", "notebook_path"])
def test_a_tool_event_names_the_tool_and_its_file(key: str) -> None:
    event = parse(make_payload("PostToolUse", tool_name="Edit", tool_input={key: "/p/a.py"}, tool_use_id="t1"))
    given = without_prefix(event)
    assert (given["TOOL_NAME"], given["FILE_PATH"], given["TOOL_USE_ID"]) == ("Edit", "/p/a.py", "t1")
    assert given["TOOL_INPUT"] == f'{{"{key}":"/p/a.py"}}'


def test_the_response_of_a_tool_is_json() -> None:
    assert without_prefix(post_tool_use("s", "Bash", {"stdout": "hi"}))["TOOL_OUTPUT"] == '{"stdout":"hi"}'


@for_each(
    ("name", "fields", "expected"),
    [
        ("TeammateIdle", {"teammate_name": "bo", "team_name": "red"}, {"TEAMMATE_NAME": "bo", "TEAM_NAME": "red"}),
        (
            "TaskCompleted",
            {"task_id": "7", "task_subject": "s", "task_description": "d"},
            {"TASK_ID": "7", "TASK_SUBJECT": "s", "TASK_DESCRIPTION": "d"},
        ),
        (
            "ConfigChange",
            {"source": "skills", "file_path": "/f"},
            {"CONFIG_SOURCE": "skills", "CONFIG_FILE_PATH": "/f"},
        ),
        ("Setup", {"trigger": "init"}, {"SETUP_TRIGGER": "init"}),
        (
            "PostCompact",
            {"trigger": "auto", "compact_summary": "s"},
            {"COMPACT_TRIGGER": "auto", "COMPACT_SUMMARY": "s"},
        ),
        ("CwdChanged", {"old_cwd": "/a", "new_cwd": "/b"}, {"OLD_CWD": "/a", "NEW_CWD": "/b"}),
        ("FileChanged", {"file_path": "/f", "event": "add"}, {"FILE_PATH": "/f", "FILE_EVENT": "add"}),
        (
            "InstructionsLoaded",
            {"file_path": "/f", "memory_type": "User", "load_reason": "start"},
            {"INSTRUCTIONS_FILE_PATH": "/f", "MEMORY_TYPE": "User", "LOAD_REASON": "start"},
        ),
        ("PermissionDenied", {"tool_name": "Bash", "reason": "no"}, {"TOOL_NAME": "Bash", "DENY_REASON": "no"}),
        (
            "UserPromptExpansion",
            {"command_name": "c", "command_args": "a", "command_source": "s", "expansion_type": "t", "prompt": "p"},
            {
                "COMMAND_NAME": "c",
                "COMMAND_ARGS": "a",
                "COMMAND_SOURCE": "s",
                "EXPANSION_TYPE": "t",
                "EXPANDED_PROMPT": "p",
            },
        ),
        (
            "Elicitation",
            {"mcp_server_name": "m", "message": "q", "mode": "form", "elicitation_id": "e"},
            {"MCP_SERVER_NAME": "m", "ELICITATION_MESSAGE": "q", "ELICITATION_MODE": "form", "ELICITATION_ID": "e"},
        ),
        ("ElicitationResult", {"action": "accept"}, {"ELICITATION_ACTION": "accept"}),
        (
            "MessageDisplay",
            {"message_id": "m", "turn_id": "t", "index": 3, "final": True, "delta": "d"},
            {
                "MESSAGE_ID": "m",
                "TURN_ID": "t",
                "MESSAGE_INDEX": "3",
                "MESSAGE_FINAL": "true",
                "MESSAGE_DELTA": "d",
            },
        ),
        ("WorktreeCreate", {"name": "w"}, {"WORKTREE_NAME": "w"}),
        ("StopFailure", {"error": "overloaded"}, {"STOP_ERROR": "overloaded"}),
        (
            "PostToolBatch",
            {"tool_calls": [{"tool_name": "Read"}, {"tool_name": "Bash"}]},
            {"TOOL_BATCH_SIZE": "2", "TOOL_BATCH_NAMES": "Read,Bash"},
        ),
    ],
)
def test_each_event_has_its_own_variables(name: str, fields: dict[str, Any], expected: dict[str, str]) -> None:
    given = without_prefix(parse(make_payload(name, **fields)))
    assert {key: given.get(key) for key in expected} == expected


def test_a_value_that_cannot_be_a_variable_is_left_out() -> None:
    for prompt in ("x" * (MAX_VALUE_BYTES + 1), "a\0b"):
        assert "USER_PROMPT" not in without_prefix(user_prompt_submit("s", prompt))
    assert without_prefix(user_prompt_submit("s", "x" * MAX_VALUE_BYTES))["USER_PROMPT"] == "x" * MAX_VALUE_BYTES


def test_the_environment_of_a_command_is_the_callers_and_that_of_the_event() -> None:
    """Variables of another event are not passed on."""
    inherited = {"PATH": "/bin", "HOME": "/h", "FAIRLEAD_HOME": "/f", "CONCLAUDE_AGENT_ID": "stale", "SESSION_ID": "x"}
    assert command_environment({"FAIRLEAD_CWD": "/p"}, inherited, "/project", b"{}") == {
        "PATH": "/bin",
        "HOME": "/h",
        "FAIRLEAD_HOME": "/f",
        "SESSION_ID": "x",
        "FAIRLEAD_CWD": "/p",
        "FAIRLEAD_CONFIG_DIR": "/project",
        "CONCLAUDE_CONFIG_DIR": "/project",
        "FAIRLEAD_PAYLOAD_JSON": "{}",
        "CONCLAUDE_PAYLOAD_JSON": "{}",
    }


def test_a_large_payload_is_on_stdin_alone() -> None:
    assert "FAIRLEAD_PAYLOAD_JSON" not in command_environment({}, {}, "/p", b" " * (MAX_VALUE_BYTES + 1))


def test_events_of_the_hook_system_are_planned_too() -> None:
    config = layer(
        {"subagentStart": {"commands": {"*": commands("a")}}, "subagentStop": {"commands": {"*": commands("b")}}}
    )
    assert runs(subagent_start("s", "x", "coder", "d"), config) == ["a"]
    assert runs(subagent_stop("s", "x", success=True), config) == ["b"]
