"""Rules from files: every valid form, and the problems of invalid entries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.events import HookEvent, post_tool_use, pre_tool_use, session_start, stop
from fairlead.hooks import HookAction, HookManager, HookRule, Problem, Rules, load_rules
from fairlead.hooks.rules._document import rules_from

if TYPE_CHECKING:
    from pathlib import Path

SEED_SETTINGS = {
    "permissions": {"deny": ["WebFetch"]},
    "hooks": {
        "preToolUse": {
            "security-check": {"command": "python check_security.py", "timeout_secs": 30, "matcher": "Bash|Write"}
        },
        "postToolUse": {"audit-log": 'echo "$EVENT" >> audit.log'},
        "sessionStart": ["notify-send 'Session started'"],
        "sessionEnd": ["cleanup-temp.sh"],
    },
}


def written(path: Path, content: object) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def read(hooks: object) -> Rules:
    return rules_from({"hooks": hooks}, "settings.json")


def commands(rules: Rules) -> list[str]:
    return [hook.command for hook in rules.hooks]


def names(rules: Rules) -> list[str]:
    return [hook.name for hook in rules.hooks]


def problems_of(rules: Rules) -> list[str]:
    return [str(problem) for problem in rules.problems]


# -- forms ---------------------------------------------------------------------------------------------


def test_settings_in_the_short_forms_give_hooks_in_file_order(tmp_path: Path) -> None:
    rules = load_rules(written(tmp_path / "settings.json", SEED_SETTINGS))
    assert rules.problems == ()
    assert [(hook.name, hook.events, hook.matcher, hook.timeout) for hook in rules.hooks] == [
        ("security-check", (HookEvent.PreToolUse,), "Bash|Write", 30.0),
        ("audit-log", (HookEvent.PostToolUse,), None, 60.0),
        ("session-start-0", (HookEvent.SessionStart,), None, 60.0),
        ("session-end-0", (HookEvent.SessionEnd,), None, 60.0),
    ]


FORMS = {
    "a string": "fmt",
    "a list of strings": ["fmt"],
    "an object": {"command": "fmt", "timeout_secs": 2.5, "matcher": "Write|Edit"},
    "a list of objects": [{"command": "fmt", "timeout": 2.5, "matcher": "Write|Edit"}],
    "a named string": {"formatter": "fmt"},
    "a named object": {"formatter": {"command": "fmt", "timeout": 2.5, "matcher": "Write|Edit"}},
    "a rule": {"matcher": "Write|Edit", "hooks": [{"type": "command", "command": "fmt", "timeout": 2.5}]},
    "a list of rules": [
        {"matcher": "Write|Edit", "hooks": [{"hook_type": "command", "command": "fmt", "timeout": 2.5}]}
    ],
    "a rule of strings": [{"matcher": "Write|Edit", "hooks": ["fmt"]}],
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_command(form: str) -> None:
    rules = read({"PostToolUse": FORMS[form]})
    text = json.dumps(FORMS[form])
    assert rules.problems == ()
    assert [(hook.command, hook.matcher, hook.timeout) for hook in rules.hooks] == [
        ("fmt", "Write|Edit" if "matcher" in text else None, 2.5 if "timeout" in text else 60.0)
    ]


def test_a_list_may_mix_the_forms_and_keeps_their_order() -> None:
    rules = read({"Stop": ["a", {"command": "b"}, {"hooks": [{"command": "c"}, {"command": "d"}]}, "e"]})
    assert commands(rules) == ["a", "b", "c", "d", "e"]
    assert names(rules) == ["stop-0", "stop-1", "stop-2", "stop-3", "stop-4"]


@pytest.mark.parametrize("name", ["PreToolUse", "preToolUse", "pre_tool_use", "pre-tool-use"])
def test_an_event_may_be_spelled_in_any_case(name: str) -> None:
    (hook,) = read({name: "guard"}).hooks
    assert hook.events == (HookEvent.PreToolUse,)


def test_one_event_in_two_spellings_keeps_both_sections() -> None:
    rules = read({"preToolUse": ["a"], "PreToolUse": ["b"]})
    assert names(rules) == ["pre-tool-use-0", "pre-tool-use-1"]


def test_exec_form_and_shell_reach_the_hook() -> None:
    direct, by_bash = read({"Stop": [{"command": "fmt", "args": ["-w", ""]}, {"command": "x", "shell": "bash"}]}).hooks
    assert (direct.args, by_bash.args, by_bash.shell) == (("-w", ""), None, "bash")


def test_hooks_by_name_may_be_called_like_a_key() -> None:
    """Only objects as values: that can be no single entry."""
    assert names(read({"Stop": {"shell": {"command": "a"}, "hooks": {"command": "b"}}})) == ["shell", "hooks"]


@pytest.mark.parametrize("matcher", ["", "*", " * "])
def test_a_matcher_for_all_is_no_matcher(matcher: str) -> None:
    rules = read({event: [{"matcher": matcher, "hooks": ["x"]}] for event in ("PreToolUse", "Stop")})
    assert [hook.matcher for hook in rules.hooks] == [None, None]
    assert rules.problems == ()


def test_a_timeout_without_end_is_one_that_a_clock_can_hold() -> None:
    rules = read({"Stop": [{"command": "x", "timeout": timeout} for timeout in (float("inf"), 10**5000)]})
    assert [hook.timeout for hook in rules.hooks] == [1_000_000.0, 1_000_000.0]


@pytest.mark.parametrize("document", [{}, {"permissions": {}, "env": {}}, {"hooks": {}}, {"hooks": {"Stop": []}}])
def test_a_document_without_hooks_is_no_problem(document: object) -> None:
    assert rules_from(document, "settings.json") == Rules()


# -- actions and rules ---------------------------------------------------------------------------------


def test_a_rule_survives_the_way_to_json_and_back() -> None:
    rule = HookRule(
        "Write|Edit", (HookAction("command", "fmt.sh", timeout=0.5), HookAction("command", "x", args=("-v",)))
    )
    text = msgspec.json.encode(rule)
    assert json.loads(text) == {
        "matcher": "Write|Edit",
        "hooks": [
            {"type": "command", "command": "fmt.sh", "timeout": 0.5},
            {"type": "command", "command": "x", "args": ["-v"]},
        ],
    }
    assert msgspec.json.decode(text, type=HookRule) == rule


@pytest.mark.parametrize(
    ("action", "matcher", "config"),
    [
        (HookAction("command", "fmt"), None, "fmt"),
        (HookAction("command", "fmt"), "Write", {"command": "fmt", "matcher": "Write"}),
        (HookAction("command", "fmt", 10), None, {"command": "fmt", "timeout_secs": 10}),
        (HookAction("command", "fmt", 10), "Write", {"command": "fmt", "timeout_secs": 10, "matcher": "Write"}),
        (HookAction("command", "fmt", args=("-w",)), None, {"command": "fmt", "args": ("-w",)}),
        (HookAction("prompt", "fmt"), None, None),
        (HookAction("command"), "Write", None),
    ],
)
def test_an_action_gives_its_short_form(action: HookAction, matcher: str | None, config: object) -> None:
    assert action.to_hook_config(matcher) == config


# -- names ---------------------------------------------------------------------------------------------


def test_files_that_use_the_same_names_can_share_a_manager(tmp_path: Path) -> None:
    manager = HookManager()
    for level in ("user", "project"):
        (tmp_path / level).mkdir()
        load_rules(written(tmp_path / level / "settings.json", SEED_SETTINGS)).register(manager)
    assert manager.hooks_for_event(HookEvent.PreToolUse) == ["security-check", "security-check-2"]
    assert manager.hooks_for_event(HookEvent.SessionStart) == ["session-start-0", "session-start-0-2"]


def test_registering_gives_handles_and_leaves_the_rules_as_they_are() -> None:
    rules, manager = read({"Stop": "x"}), HookManager()
    assert [handle.name for _ in range(2) for handle in rules.register(manager)] == ["stop-0", "stop-0-2"]
    assert names(rules) == ["stop-0"]
    assert [handle.remove() for handle in rules.register(HookManager())] == [True]


def test_a_name_used_twice_in_a_file_gets_a_number() -> None:
    rules = read({"PreToolUse": {"log": "a"}, "PostToolUse": {"log": "b"}, "Stop": {"log": {"hooks": ["c", "d"]}}})
    assert names(rules) == ["log", "log-2", "log-3", "log-4"]


def test_a_blank_name_is_none() -> None:
    assert names(read({"Stop": {" ": "a"}})) == ["stop-0"]


@pytest.mark.parametrize(
    ("file", "plugin_root", "name"),
    [
        ("settings.json", None, "stop-0"),
        ("/home/user/.claude/agents/reviewer.md", None, "reviewer:stop-0"),
        ("/home/user/.claude/skills/deploy/SKILL.md", None, "deploy:stop-0"),
        ("/opt/linter/hooks/hooks.json", "/opt/linter", "linter:stop-0"),
        ("/opt/linter/hooks/hooks.json", "/opt/linter/hooks/..", "linter:stop-0"),
        ("/opt/linter/skills/deploy/SKILL.md", "/opt/linter", "linter:deploy:stop-0"),
        ("hooks.json", "/", "stop-0"),
    ],
)
def test_a_name_says_whose_the_hook_is(file: str, plugin_root: str | None, name: str) -> None:
    assert names(rules_from({"hooks": {"Stop": "x"}}, file, plugin_root=plugin_root)) == [name]


# -- problems ------------------------------------------------------------------------------------------

COMMAND = "expected a command or an object with `command`, got"

DROPPED: list[tuple[object, str]] = [
    (None, f"Stop: {COMMAND} null"),
    (7, f"Stop: {COMMAND} a number"),
    (True, f"Stop: {COMMAND} a boolean"),
    ("  ", "Stop: empty; expected a command"),
    ("a\0b", "Stop: contains a NUL character"),
    ("\ud800", "Stop: contains an unpaired surrogate"),
    ([["x"]], f"Stop[0]: {COMMAND} a list"),
    ([{}], "Stop[0]: missing `command`"),
    ({"a": None}, f"Stop.a: {COMMAND} null"),
    ({"a b": 1}, f"Stop['a b']: {COMMAND} a number"),
    ({"\ud800": "x"}, "Stop['\\ud800']: the name contains an unpaired surrogate"),
    ({2: "x"}, "Stop: expected a string as key, got a number"),
    ({"command": None}, "Stop.command: expected a string, got null"),
    ({"command": ["x"]}, "Stop.command: expected a string, got a list"),
    ({"command": ""}, "Stop.command: empty; expected a command"),
    ({"timeout": 5}, "Stop: missing `command`"),
    ({"command": "x", "timeout": "5"}, "Stop.timeout: expected a number of seconds, got a string"),
    ({"command": "x", "timeout": True}, "Stop.timeout: expected a number of seconds, got a boolean"),
    ({"command": "x", "timeout_secs": 0}, "Stop.timeout_secs: expected a number of seconds above 0"),
    ({"command": "x", "timeout": -1.5}, "Stop.timeout: expected a number of seconds above 0"),
    ({"command": "x", "timeout": float("nan")}, "Stop.timeout: expected a number of seconds above 0"),
    ({"command": "x", "args": "-v"}, "Stop.args: expected a list of strings, got a string"),
    ({"command": "x", "args": ["-v", 1]}, "Stop.args[1]: expected a string, got a number"),
    ({"command": "x", "shell": {}}, "Stop.shell: expected a string, got an object"),
    ({"command": "x", "shell": ""}, "Stop.shell: empty; expected a command"),
    ({"command": "x", "matcher": 1}, "Stop.matcher: expected a string, got a number"),
    ({"type": "http", "url": "http://x"}, "Stop.type: type 'http' is not run by Fairlead, only 'command'"),
    (
        [{"hooks": [{"hook_type": "agent"}]}],
        "Stop[0].hooks[0].hook_type: type 'agent' is not run by Fairlead, only 'command'",
    ),
    ({"type": ["command"], "command": "x"}, "Stop.type: expected a string, got a list"),
    ([{"hooks": {"command": "x"}}], "Stop[0].hooks: expected a list, got an object"),
    ([{"hooks": None}], "Stop[0].hooks: expected a list, got null"),
    ([{"hooks": [None]}], f"Stop[0].hooks[0]: {COMMAND} null"),
    ([{"hooks": [], "command": "x"}], "Stop[0].command: ignored: it belongs in an entry of `hooks`"),
]


@pytest.mark.parametrize(("section", "message"), DROPPED, ids=[message for _, message in DROPPED])
def test_a_bad_entry_is_reported_and_drops_nothing_else(section: object, message: str) -> None:
    rules = read({"SessionStart": "before", "Stop": section, "SessionEnd": "after"})
    assert problems_of(rules) == [f"settings.json: hooks.{message}"]
    assert [(problem.dropped, problem.event) for problem in rules.problems] == [(True, HookEvent.Stop)]
    assert commands(rules) == ["before", "after"]


def test_a_bad_action_leaves_the_others_of_its_rule() -> None:
    rules = read({"PreToolUse": [{"matcher": "Bash", "hooks": ["a", {"command": "b", "timeout": "1"}, "c"]}]})
    assert problems_of(rules) == [
        "settings.json: hooks.PreToolUse[0].hooks[1].timeout: expected a number of seconds, got a string"
    ]
    assert [(hook.command, hook.matcher) for hook in rules.hooks] == [("a", "Bash"), ("c", "Bash")]


@pytest.mark.parametrize("entry", [{"command": "x", "matcher": "["}, {"hooks": ["x", "y"], "matcher": "["}])
def test_a_matcher_that_is_no_pattern_drops_its_entry(entry: object) -> None:
    rules = read({"PreToolUse": [entry, "good"]})
    (problem,) = rules.problems
    assert (problem.path, problem.dropped) == ("hooks.PreToolUse[0].matcher", True)
    assert problem.message == ("matcher '[': not a valid regular expression: unterminated character set at position 0")
    assert commands(rules) == ["good"]


def test_a_matcher_that_python_warns_of_is_dropped_where_warnings_are_errors() -> None:
    rules = read({"PreToolUse": [{"command": "x", "matcher": "[[a]"}, "good"]})
    flaw = "matcher '[[a]': not a valid regular expression: Possible nested set at position 1"
    assert problems_of(rules) == [f"settings.json: hooks.PreToolUse[0].matcher: {flaw}"]
    assert commands(rules) == ["good"]


def test_an_unknown_event_is_reported_with_the_nearest_name() -> None:
    rules = read({"PreToolUsed": "a", "zzz": "b", "Stop": "c", 5: "d"})
    assert problems_of(rules) == [
        "settings.json: hooks.PreToolUsed: unknown event 'PreToolUsed'; did you mean PreToolUse?",
        "settings.json: hooks.zzz: unknown event 'zzz'",
        "settings.json: hooks: expected a string as key, got a number",
    ]
    assert [problem.event for problem in rules.problems] == [HookEvent.PreToolUse, None, None]
    assert all(problem.dropped for problem in rules.problems)
    assert commands(rules) == ["c"]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (None, "expected an object, got null"),
        (["x"], "expected an object, got a list"),
        ({"hooks": None}, "hooks: expected an object with the names of events, got null"),
        ({"hooks": ["x"]}, "hooks: expected an object with the names of events, got a list"),
    ],
)
def test_a_document_of_another_shape_is_reported(document: object, problem: str) -> None:
    rules = rules_from(document, "settings.json")
    assert problems_of(rules) == [f"settings.json: {problem}"]
    assert rules.problems[0].dropped


REMARKS: list[tuple[dict[str, Any], list[str]]] = [
    ({"timout": 3}, ["timout: unknown key, ignored; did you mean `timeout`?"]),
    ({"xyz": 3}, ["xyz: unknown key, ignored"]),
    ({"matcher": "Bash"}, ["matcher: ignored, as in the client: Stop has nothing to match"]),
    ({"if": "Bash(rm *)"}, []),
    (
        {"if": "(rm)"},
        ["if: expected a tool call as Bash(git *); ignored, so the command runs for every such event"],
    ),
    ({"async": True}, ["async: not supported here: the event waits for the command"]),
    ({"asyncRewake": True}, ["asyncRewake: not supported here: the event waits for the command"]),
    ({"once": True}, ["once: not supported here: the command runs for every such event"]),
    ({"async": False, "once": False, "onFailure": "block", "statusMessage": "…"}, []),
    ({"timeout": 1, "timeout_secs": 2}, ["timeout_secs: ignored: `timeout` is set too"]),
    ({"timeout": None, "args": None}, ["timeout: null, treated as missing", "args: null, treated as missing"]),
]


@pytest.mark.parametrize(("keys", "messages"), REMARKS)
def test_a_key_without_effect_is_remarked_on_and_drops_nothing(keys: dict[str, Any], messages: list[str]) -> None:
    rules = read({"Stop": [{"command": "x", **keys}]})
    assert problems_of(rules) == [f"settings.json: hooks.Stop[0].{message}" for message in messages]
    assert [problem.dropped for problem in rules.problems] == [False] * len(messages)
    assert [(hook.command, hook.matcher, hook.args) for hook in rules.hooks] == [("x", None, None)]


def test_a_key_that_stands_in_the_wrong_place_is_remarked_on() -> None:
    rules = read({"PreToolUse": [{"timeout": 3, 4: 5, "hooks": [{"command": "x", "matcher": "Bash"}]}]})
    assert problems_of(rules) == [
        "settings.json: hooks.PreToolUse[0].timeout: ignored: it belongs in an entry of `hooks`",
        "settings.json: hooks.PreToolUse[0]: expected a string as key, got a number; ignored",
        "settings.json: hooks.PreToolUse[0].hooks[0].matcher: ignored: it belongs beside `hooks`",
    ]
    assert [(hook.command, hook.matcher) for hook in rules.hooks] == [("x", None)]


# -- plugins -------------------------------------------------------------------------------------------


def test_a_plugin_may_leave_the_word_hooks_out(tmp_path: Path) -> None:
    flat = {
        "description": "…",
        "$schema": "…",
        "PostToolUse": [{"matcher": "Write", "hooks": ["fmt"]}],
        "PreTolUse": "x",
    }
    path = written(tmp_path / "hooks.json", flat)
    rules = load_rules(path)
    assert commands(rules) == ["fmt"]
    assert problems_of(rules) == [f"{path}: PreTolUse: unknown event 'PreTolUse'; did you mean PreToolUse?"]


def test_a_flat_file_whose_only_event_is_misspelled_is_not_taken_for_settings() -> None:
    assert len(rules_from({"PreTolUse": "x"}, "plugin/hooks/hooks.json").problems) == 1
    assert rules_from({"PreTolUse": "x"}, "settings.json") == Rules()


def test_a_plugin_finds_its_own_folder_with_and_without_a_shell(tmp_path: Path) -> None:
    """A path with a blank: nothing is pasted into a shell's text."""
    root = tmp_path / "my plugin"
    root.mkdir()
    script = written(root / "say.sh", '#!/bin/sh\ncat > /dev/null\necho "$1" >> "$CLAUDE_PLUGIN_ROOT/log"\n')
    script.chmod(0o755)
    actions = [
        {"type": "command", "command": '"${CLAUDE_PLUGIN_ROOT}"/say.sh shell'},
        {"type": "command", "command": "${CLAUDE_PLUGIN_ROOT}/say.sh", "args": ["${CLAUDE_PLUGIN_ROOT}"]},
    ]
    path = written(root / "hooks.json", {"hooks": {"Stop": [{"hooks": actions}]}})
    manager = HookManager()
    load_rules(path, plugin_root=root).register(manager)
    assert manager.fire_sync(stop("s")).failures == ()
    assert (root / "log").read_text() == f"shell\n{root}\n"


def test_a_plugin_root_may_be_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (hook,) = rules_from({"Stop": "x"}, "linter/hooks.json", plugin_root="linter").hooks
    assert hook.env == {"CLAUDE_PLUGIN_ROOT": str(tmp_path / "linter")}


# -- files ---------------------------------------------------------------------------------------------


def only_problem(path: Path) -> str:
    """Return the problem of a file that could not be read."""
    rules = load_rules(path)
    (problem,) = rules.problems
    assert rules == Rules((), (Problem(str(path), "$", problem.message, dropped=True),))
    return problem.message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", b'{"hooks": {\n  "Stop" "x"}}', "not valid JSON at 2:10: Expecting ':' delimiter"),
        ("a.json", b'{"hooks": NaN}', "not valid JSON: JSON is malformed: invalid character (byte 10)"),
        ("a.json", b"[NaN, " + b"[" * 100_000, "not valid JSON: JSON is malformed: invalid character (byte 1)"),
        ("a.json", b'"\\ud800" x', "not valid JSON at 1:10: Extra data"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.json", b"\xff\xfe{\x00", "not valid UTF-8"),
        ("a.json", b" " * (4 * 1024 * 1024 + 1), "larger than 4194304 bytes"),
        ("a.toml", b"x = 1", "expected a file named .json, .md, .yaml or .yml, not '.toml'"),
        ("a.md", b"---\nhooks:\n  Stop: x\n", "the frontmatter opened in line 1 has no closing line ---"),
        ("a.yaml", b"- hooks", "expected an object, got a list"),
        ("a.yaml", b"hooks: !!int x", "not valid YAML: invalid literal for int() with base 10: 'x'"),
        ("a.yaml", b"hooks: !x y", "not valid YAML at 1:8: could not determine a constructor for the tag '!x'"),
        ("a.yaml", b"? [a]\n: b", "not valid YAML at 1:3: found unhashable key"),
        ("a.yaml", b"hooks: " + b"[" * 100_000, "nested too deeply"),
        ("a.yaml", b"hooks: &h\n  Stop: [*h]", "the alias *h is inside the value that it repeats"),
    ],
)
def test_a_broken_file_is_one_problem(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    assert only_problem(path) == message


def test_a_file_that_cannot_be_read_is_one_problem(tmp_path: Path) -> None:
    assert only_problem(tmp_path / "absent.json") == "cannot be read: No such file or directory"
    assert only_problem(tmp_path) == "cannot be read: Is a directory"
    assert only_problem(tmp_path / "a\0b.json") == "cannot be read: embedded null byte"


@pytest.mark.parametrize(
    "bomb", ["[*{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}, *{0}]", "{{<<: [*{0}, *{0}, *{0}, *{0}]}}"]
)
def test_aliases_that_multiply_are_refused_before_they_do(tmp_path: Path, bomb: str) -> None:
    lines = ["a0: &a0 {x: 1, y: 2}", *(f"a{n + 1}: &a{n + 1} {bomb.format(f'a{n}')}" for n in range(20)), "hooks: *a20"]
    path = written(tmp_path / "bomb.yaml", "\n".join(lines))
    assert only_problem(path) == "contains more than 100000 values, including those that aliases repeat"


@pytest.mark.parametrize("name", ["a.json", "a.md", "a.yaml", "a.yml"])
@pytest.mark.parametrize("content", ["", " \n\n", "\ufeff"])
def test_an_empty_file_has_no_hooks_and_no_problem(tmp_path: Path, name: str, content: str) -> None:
    assert load_rules(written(tmp_path / name, content)) == Rules()


def test_a_byte_order_mark_is_no_problem(tmp_path: Path) -> None:
    assert commands(load_rules(written(tmp_path / "a.json", '\ufeff{"hooks": {"Stop": "x"}}'))) == ["x"]


FRONTMATTER = """---
name: deploy
Stop: not ours to read
hooks:
  PreToolUse:
    - matcher: "Write|Edit"
      hooks:
        - type: command
          command: scripts/format.sh
          timeout: 10
  Stop: 2024-01-01
---
# Deploy
"""


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_frontmatter_holds_rules(tmp_path: Path, line_end: str) -> None:
    path = tmp_path / "deploy.md"
    path.write_bytes(FRONTMATTER.replace("\n", line_end).encode())
    rules = load_rules(path)
    assert [(hook.name, hook.command, hook.matcher, hook.timeout) for hook in rules.hooks] == [
        ("deploy:pre-tool-use-0", "scripts/format.sh", "Write|Edit", 10.0)
    ]
    assert problems_of(rules) == [f"{path}: hooks.Stop: {COMMAND} a date"]


@pytest.mark.parametrize(
    "text",
    [
        "# No frontmatter\nhooks: x\n---\n",
        "---\nname: x\n---\nhooks:\n  Stop: x\n",
        "---\ndescription: Use when: you need hooks\n---\n",
        "---\ndescription: 'say hooks: never'\n---\n",
        "---\n---\n",
    ],
)
def test_a_markdown_file_without_hooks_is_no_problem(tmp_path: Path, text: str) -> None:
    assert load_rules(written(tmp_path / "a.md", text)) == Rules()


def test_a_mistake_in_frontmatter_is_shown_by_the_line_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "a.md", "---\nname: x\nhooks: y: z\n---\n")
    assert only_problem(path).startswith("not valid YAML at 3:9: ")


def test_yaml_without_the_key_hooks_has_none(tmp_path: Path) -> None:
    assert load_rules(written(tmp_path / "a.yaml", "Stop: x\n")) == Rules()


def test_yaml_may_repeat_a_section_by_an_alias(tmp_path: Path) -> None:
    path = written(tmp_path / "a.YML", "Stop: x\nhooks:\n  PreToolUse: &guards [a, b]\n  PostToolUse: *guards\n")
    assert names(load_rules(path)) == ["pre-tool-use-0", "pre-tool-use-1", "post-tool-use-0", "post-tool-use-1"]


# -- whatever comes ------------------------------------------------------------------------------------

WORDS = ["hooks", "matcher", "command", "type", "timeout", "timeout_secs", "args", "shell", "async", "*", "["]
KEYS = st.sampled_from([*WORDS, *(event.value for event in HookEvent)]) | st.text(max_size=5)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | KEYS
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))


@given(JSON)
def test_any_document_gives_hooks_that_register_and_problems_that_can_be_said(document: object) -> None:
    rules, manager = rules_from(document, "settings.json"), HookManager()
    assert [handle.name for handle in rules.register(manager)] == names(rules)
    assert all(line.startswith("settings.json: ") for line in problems_of(rules))


@given(JSON, JSON)
def test_whatever_stands_beside_it_a_good_entry_is_kept(neighbour: object, other: object) -> None:
    rules = read({"Notification": other, "PreToolUse": [neighbour, {"matcher": "Bash", "command": "good"}]})
    assert (rules.hooks[-1].command, rules.hooks[-1].matcher) == ("good", "Bash")


@given(st.text(max_size=40) | JSON.map(str))
def test_any_text_is_read_or_reported(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(f"hooks: {text}".encode(errors="replace"))
    rules = load_rules(path)
    assert all(problem.source == str(path) for problem in rules.problems)


# -- end to end ----------------------------------------------------------------------------------------


def test_rules_of_a_file_guard_a_real_tool_call(tmp_path: Path) -> None:
    """One rule blocks by exit 2, one answers in JSON, one only looks on; a bad one does not disturb them."""
    log = tmp_path / "log"
    deny = {"continue_execution": False, "stop_reason": "not on a Friday"}
    settings = {
        "hooks": {
            "PreToolUse": [
                {"matcher": "Bash", "hooks": [{"type": "command", "command": "grep -q 'rm -rf' || exit 0; exit 2"}]},
                {"matcher": "Write|[", "hooks": [{"type": "command", "command": "exit 2"}]},
                {"matcher": "Deploy.*", "command": f"echo '{json.dumps(deny)}'"},
            ],
            "sessionStart": {"greet": {"command": "cat", "args": ["/dev/null"]}},
            "postToolUse": f'echo "$EVENT" >> {log}',
        }
    }
    rules = load_rules(written(tmp_path / "settings.json", settings))
    manager = HookManager()
    rules.register(manager)
    assert [problem.path for problem in rules.problems] == ["hooks.PreToolUse[1].matcher"]
    assert manager.fire_sync(pre_tool_use("s", "Bash", {"command": "rm -rf /"})).blocked
    assert not manager.fire_sync(pre_tool_use("s", "Bash", {"command": "ls"})).blocked
    assert not manager.fire_sync(pre_tool_use("s", "Write", {})).blocked
    assert manager.fire_sync(pre_tool_use("s", "DeployNow", {})).reason == "not on a Friday"
    assert manager.fire_sync(session_start("s")).failures == ()
    assert manager.fire_sync(post_tool_use("s", "Bash", "ok")).failures == ()
    assert log.read_text() == "post_tool_use\n"
