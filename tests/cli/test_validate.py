"""`fairlead validate` and `fairlead schema`, as a person or an editor runs them."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from cli.command_line import error_of, run

from fairlead.cli.policy.validate import describe_count
from fairlead.policy import find_layers, load_policy, matched_files, write_trusted
from fairlead.policy.config._schema import schema_text

if TYPE_CHECKING:
    from pathlib import Path

VALID = """\
preToolUse:
  uneditableFiles: [.env, {pattern: "*.lock"}]
  toolUsageValidation: [{tool: Bash, action: block, commandPattern: "rm*"}]
permissionRequest: {default: deny, allow: [Read]}
stop: {commands: [{run: make test}, {run: make lint}]}
subagentStop: {commands: {"*": [{run: echo done}]}}
userPromptSubmit:
  contextRules: [{pattern: a, prompt: b}]
  slashCommands: {commands: {"/deploy": [{run: echo deploy}]}}
"""
GUARDS = ["protectOwnFiles", "preventRootAdditions", "preventGeneratedFileEdits", "bash.unparsable: ask"]
PATTERNS = "  preToolUse.uneditableFiles[0]  .env: no file now\n  preToolUse.uneditableFiles[1]  *.lock: no file now\n"
IN_FORCE = f"in force besides the rules: {', '.join(GUARDS)}\n"
BROKEN = "stop:\n  rounds: many\n  infinite: 1\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "project/src").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project/src")
    return tmp_path / "project"


def test_a_valid_policy_is_summed_up(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    assert run("validate") == 0
    assert capsys.readouterr() == (f"{project}/.fairlead.yaml: valid: 5 rules, 4 commands\n{IN_FORCE}{PATTERNS}", "")


def test_the_user_wide_policy_is_checked_too(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".conclaude.yml").write_text("")
    (home / "config.yaml").write_text("stop: {commands: [{run: make}]}")
    assert run("validate", [str(project)]) == 0
    assert capsys.readouterr().out == (
        f"{project}/.conclaude.yml: valid: 0 rules, 0 commands\n{home}/config.yaml: valid: 0 rules, 1 command\n"
        f"{IN_FORCE}"
    )


def test_every_mistake_is_a_line_on_stderr(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text(BROKEN)
    assert run("validate", ["../policy.yaml"]) == 1
    advice = "use `infinite: true` to keep the agent going, and `maxBlocks` to limit it"
    assert capsys.readouterr() == (
        "",
        (
            f"../policy.yaml:2:3: unknown key `rounds` in `stop`; {advice}\n"
            "../policy.yaml:3:13: the number 1 for `stop.infinite`; expected true or false\n"
            "2 mistakes\n"
        ),
    )


def test_a_file_is_checked_by_itself(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "config.yaml").write_text(BROKEN)
    (project / "policy.yaml").write_text(VALID)
    assert run("validate", ["../policy.yaml"]) == 0
    assert capsys.readouterr().out == f"../policy.yaml: valid: 5 rules, 4 commands\n{IN_FORCE}{PATTERNS}"


def test_programs_read_json(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text(VALID)
    assert run("validate", ["--json", "../policy.yaml"]) == 0
    files = [{"file": "../policy.yaml", "rules": 5, "commands": 4, "hooks": 0, "deleted": False}]
    assert json.loads(capsys.readouterr().out) == {
        "valid": True,
        "files": files,
        "mistakes": [],
        "hints": [],
        "guards": GUARDS,
        "warnings": [],
        "patterns": [
            {
                "setting": f"preToolUse.uneditableFiles[{at}]",
                "pattern": pattern,
                "policy": "../policy.yaml",
                "count": 0,
                "complete": True,
            }
            for at, pattern in enumerate([".env", "*.lock"])
        ],
        "changes": [],
        "hooks": [],
    }

    (project / "policy.yaml").write_text("stop: {infinite: 1}")
    assert run("validate", ["../policy.yaml", "--json"]) == 1
    message = "the number 1 for `stop.infinite`; expected true or false"
    mistakes = [{"file": "../policy.yaml", "line": 1, "column": 18, "message": message}]
    found = json.loads(capsys.readouterr().out)
    assert (found["valid"], found["files"], found["mistakes"]) == (False, [], mistakes)


def test_what_holds_is_told_as_it_is_set(project: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    off = "preToolUse: {protectOwnFiles: false, preventUpdateGitIgnored: true, bash: {unparsable: deny}}\n"
    (project / ".fairlead.yaml").write_text(off)
    run("validate")
    told = "preventRootAdditions, preventGeneratedFileEdits, preventUpdateGitIgnored, bash.unparsable: deny"
    assert capsys.readouterr().out.endswith(f"in force besides the rules: {told}\n")

    (project / ".fairlead.yaml").unlink()
    shutil.rmtree(home / "policies")
    (home / "config.yaml").write_text("stop: {infinite: true}\n")
    run("validate")
    assert "preventRootAdditions" not in capsys.readouterr().out


def test_a_fresh_file_says_what_holds(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("init", [str(project)])
    capsys.readouterr()
    assert run("validate") == 0
    assert capsys.readouterr() == (f"{project}/.fairlead.yaml: valid: 0 rules, 0 commands\n{IN_FORCE}", "")


def test_a_hint_is_told_and_the_file_is_valid(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rule = (
        "preToolUse:\n  toolUsageValidation:\n    - {tool: Write, commandPattern: 'rm *', pattern: '', action: block}\n"
    )
    (project / ".conclaude.yaml").write_text(rule)
    assert run("validate") == 0
    what = "`preToolUse.toolUsageValidation[0]` never matches: Write has no command"
    out, err = capsys.readouterr()
    place = f"{project}/.conclaude.yaml:3:7"
    assert err == f"{place}: hint: {what}; write `tool: Bash`, or `pattern` for the file\n"
    assert out == f"{project}/.conclaude.yaml: valid: 1 rule, 0 commands\n{IN_FORCE}"

    run("validate", ["--json"])
    (hint,) = json.loads(capsys.readouterr().out)["hints"]
    assert (hint["line"], hint["column"], hint["message"].partition(";")[0]) == (3, 7, what)


def test_one_mistake_is_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text("stop: {infinite: 1}")
    run("validate", ["../policy.yaml"])
    assert capsys.readouterr().err.endswith("\n1 mistake\n")


def test_where_there_are_too_many_mistakes_it_is_said(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policy.yaml").write_text("".join(f"k{number}: 1\n" for number in range(200)))
    run("validate", ["../policy.yaml"])
    assert capsys.readouterr().err.endswith("\n100 mistakes; there may be more\n")


# -- hook files ----------------------------------------------------------------------------------------


def hooks_in_each_state(project: Path) -> None:
    """Write hook files of all states, and a policy that lists them."""
    for name in ("guards.py", "mended.py", "new.py"):
        (project / name).write_text("# hooks\n")
    write_trusted(str(project / "guards.py"), b"# hooks\n")
    write_trusted(str(project / "mended.py"), b"# before\n")
    (project / ".fairlead.yaml").write_text("hooks: [guards.py, mended.py, new.py, gone.py]\n")


def test_hook_files_are_counted_and_listed_with_their_states(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks_in_each_state(project)
    assert run("validate") == 0
    stop = "so its hooks do not run. Read it, and if its hooks may run: fairlead trust"
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out == (
        f"{project}/.fairlead.yaml: valid: 0 rules, 0 commands, 4 hook files\n"
        f"{IN_FORCE}"
        "  hooks[0]  guards.py: trusted\n"
        f"  hooks[1]  mended.py: changed; {project}/mended.py has changed since it was trusted, {stop} "
        f"{project}/mended.py\n"
        f"  hooks[2]  new.py: untrusted; {project}/new.py is not trusted, {stop} {project}/new.py\n"
        f"  hooks[3]  gone.py: missing; {project}/gone.py cannot be read: No such file or directory. Restore it, or "
        f"take {project}/gone.py out of `hooks` in the policy\n"
    )


def test_programs_read_the_states_of_hook_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hooks_in_each_state(project)
    run("validate", ["--json", "../.fairlead.yaml"])
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == [{"file": "../.fairlead.yaml", "rules": 0, "commands": 0, "hooks": 4, "deleted": False}]
    assert [(hook["setting"], hook["name"], hook["state"], bool(hook["problem"])) for hook in found["hooks"]] == [
        ("hooks[0]", "guards.py", "trusted", False),
        ("hooks[1]", "mended.py", "changed", True),
        ("hooks[2]", "new.py", "untrusted", True),
        ("hooks[3]", "gone.py", "missing", True),
    ]
    assert {hook["policy"] for hook in found["hooks"]} == {"../.fairlead.yaml"}
    assert [hook["file"] for hook in found["hooks"]] == [
        str(project / name) for name in ("guards.py", "mended.py", "new.py", "gone.py")
    ]


def test_the_hook_files_of_several_policies_are_listed_with_their_policy(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".fairlead.yaml").write_text("hooks: [guards.py]\n")
    (home / "config.yaml").write_text(f"hooks: [audit.py, {project}/guards.py]\n")
    run("validate")
    out = capsys.readouterr().out
    assert f"{project}/.fairlead.yaml: valid: 0 rules, 0 commands, 1 hook file\n" in out
    assert [line.partition(": missing; ")[0] for line in out.splitlines() if "hooks[" in line] == [
        f"  {project}/.fairlead.yaml: hooks[0]  guards.py",
        f"  {home}/config.yaml: hooks[0]  audit.py",
    ]


# -- the last good version -----------------------------------------------------------------------------


@pytest.mark.parametrize("target", [".", "..", "../.fairlead.yaml"])
def test_what_is_valid_is_kept_as_the_last_good_version(project: Path, target: str) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    run("validate", [target])
    (project / ".fairlead.yaml").write_text(BROKEN)
    (layer,) = load_policy(str(project)).layers
    assert layer.policy.pre_tool_use.uneditable_files[0] == ".env"


def test_what_is_not_valid_is_not_kept(project: Path, home: Path) -> None:
    (project / ".fairlead.yaml").write_text(BROKEN)
    run("validate")
    assert not (home / "policies").exists()


@pytest.mark.parametrize("name", ["policy.yaml", ".conclaude.yaml"])
def test_a_file_that_no_event_would_load_is_not_kept(project: Path, home: Path, name: str) -> None:
    """Else a file that the agent may write could take the place of one that it may not."""
    (project / ".fairlead.yaml").write_text(VALID)
    (project / name).write_text("preToolUse: {protectOwnFiles: false}\n")
    assert run("validate", [f"../{name}"]) == 0
    assert not (home / "policies").exists()


def test_what_was_only_tried_goes_with_its_file(project: Path) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    run("validate")
    (project / ".fairlead.yaml").unlink()
    assert load_policy(str(project)).layers == ()


def test_what_an_event_was_decided_by_stays_whatever_is_tried_before_or_after(project: Path) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    run("validate")
    load_policy(str(project))
    (project / ".fairlead.yaml").write_text("stop: {infinite: true}\n")
    run("validate")
    (project / ".fairlead.yaml").unlink()
    (layer,) = load_policy(str(project)).layers
    assert layer.policy.stop.infinite


def test_a_policy_that_holds_although_it_is_gone_is_told_of(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    (project / "src/.fairlead.yaml").write_text("")
    load_policy(str(project / "src"))
    (project / "src/.fairlead.yaml").unlink()
    capsys.readouterr()
    assert run("validate") == 0
    assert (
        f"{project}/src/.fairlead.yaml: the file was deleted. Its last good version is used. "
        in capsys.readouterr().err
    )


def test_a_policy_that_cannot_be_kept_is_valid_all_the_same(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".fairlead.yaml").write_text(VALID)
    (home / "policies").write_text("in the way")
    assert run("validate") == 0
    assert capsys.readouterr().err.startswith(f"{home}/policies: cannot cache the policy: ")


# -- the command line ----------------------------------------------------------------------------------


def test_no_policy_is_told_with_what_to_do(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("validate") == 1
    expected = f"{project}/src: no policy here or in the folders above; `fairlead init` writes one\n"
    assert capsys.readouterr() == ("", expected)
    assert run("validate", ["gone.yaml"]) == 1
    assert capsys.readouterr() == ("", "gone.yaml: no such file or folder; `fairlead init` writes a policy\n")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--jsno"], "unknown option '--jsno'; did you mean --json?"),
        (["a", "b"], "validate: unexpected argument 'b'; see fairlead validate --help"),
    ],
)
def test_a_slip_on_the_command_line_is_told(args: list[str], expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "validate", args) == expected


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema") == 0
    assert json.loads(capsys.readouterr().out) == json.loads(schema_text())
    assert error_of(capsys, "schema", ["x"]) == "schema: unexpected argument 'x'; see fairlead schema --help"


def test_a_schema_with_a_path_of_one_machine_is_told(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Earlier builds of `fairlead init` wrote one."""
    told = (
        "the schema for editors is named by an absolute path, which is wrong on other machines; run `fairlead schema > "
        "fairlead.schema.json`, and write `$schema=fairlead.schema.json` here"
    )
    for schema, expected in {"file:///opt/x/schema.json": told, "/opt/x.json": told, "x.json": ""}.items():
        line = f"# yaml-language-server: $schema={schema}\n"
        (project / ".fairlead.yaml").write_text(f"## Ours\n{line}")
        (home / "config.yaml").write_text(line)
        assert run("validate") == 0
        assert capsys.readouterr().err == (f"{project}/.fairlead.yaml:2:1: hint: {expected}\n" if expected else "")


def test_each_pattern_is_counted_and_one_that_matches_nothing_gets_advice(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = '["*.{py,js}", "!keep.py", ./src, README/, /etc/hosts]'
    (project / ".fairlead.yaml").write_text(f"preToolUse: {{uneditableFiles: {rules}}}\n")
    for name in ("a.py", "keep.py", "src/b.js", "README", ".git/c.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()

    assert run("validate") == 0

    lines = capsys.readouterr().out.splitlines()[2:]
    name = "  preToolUse.uneditableFiles"
    relative = f"it is relative to {project}"
    assert lines == [
        f"{name}[0]  *.{{py,js}}: 2 files now",
        f"{name}[2]  ./src: 1 file now",
        f"{name}[3]  README/: no file now; it matches folders only; for the file write `README`",
        f"{name}[4]  /etc/hosts: no file now; {relative}; for the path on the disk write `//etc/hosts`",
    ]


def test_of_several_files_each_pattern_is_listed_with_its_file(
    project: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    (home / "config.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    (project / ".env").touch()

    assert run("validate") == 0

    line = "preToolUse.uneditableFiles[0]  .env: 1 file now"
    assert capsys.readouterr().out.splitlines()[3:] == [
        f"  {project}/.fairlead.yaml: {line}",
        f"  {home}/config.yaml: {line}",
    ]


def test_a_count_of_too_many_files_is_not_complete(project: Path) -> None:
    (project / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    layers = find_layers(str(project))

    assert [found.complete for found in matched_files(layers)] == [True]
    (found,) = matched_files(layers, seconds=-1)
    assert (found.complete, describe_count(found)) == (False, "no file among the first that were checked now")


# -- visualize -----------------------------------------------------------------------------------------

SHOWN = """\
preToolUse:
  uneditableFiles: ["*.py", {pattern: .env, action: warn, agent: coder}]
  toolUsageValidation:
    - {tool: Bash, action: block, commandPattern: "rm *"}
    - {tool: Write, action: block, pattern: "src/**"}
  preventRootAdditions: false
  protectOwnFiles: false
"""


def test_visualize_shows_what_each_rule_matches(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".fairlead.yaml").write_text(SHOWN)
    for at in range(7):
        (project / f"src/{at}.py").touch()

    assert run("visualize") == 0

    name = "  preToolUse"
    assert capsys.readouterr().out.splitlines() == [
        f"{project}/.fairlead.yaml",
        f"{name}.uneditableFiles[0]  *.py: 7 files now",
        *(f"      src/{at}.py" for at in range(5)),
        "      and 2 more; --show-matches lists them",
        f"{name}.uneditableFiles[1]  .env (action: warn, agent: coder): no file now",
        f"{name}.toolUsageValidation[0]  block Bash with the command rm *",
        f"{name}.toolUsageValidation[1]  block Write on src/**: 7 files now",
        *(f"      src/{at}.py" for at in range(5)),
        "      and 2 more; --show-matches lists them",
        f"{name}.preventGeneratedFileEdits  changes to files that are marked as generated are blocked",
    ]


def test_visualize_shows_one_rule_with_all_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".fairlead.yaml").write_text(SHOWN)
    for at in range(7):
        (project / f"src/{at}.py").touch()

    assert run("visualize", ["--rule", "toolUsageValidation", "--show-matches"]) == 0
    assert capsys.readouterr().out.splitlines()[3:] == [f"      src/{at}.py" for at in range(7)]

    assert run("visualize", ["-r", "uneditableFiles", "--json"]) == 0
    rules = json.loads(capsys.readouterr().out)
    assert [(rule["setting"], rule["count"]) for rule in rules] == [
        ("preToolUse.uneditableFiles[0]", 7),
        ("preToolUse.uneditableFiles[1]", 0),
    ]


def test_visualize_names_the_rules_and_the_mistakes(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert error_of(capsys, "visualize", ["--rule", "rm"]).startswith("no such rule: rm; the rules are uneditableFiles")
    (project / ".fairlead.yaml").write_text("stop: {infinite: 1}\n")
    assert "the number 1 for `stop.infinite`" in error_of(capsys, "visualize", [])
