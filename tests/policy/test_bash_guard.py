"""The guards on shell commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards
from fairlead.policy.paths import _search

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path.resolve() / "project"
    for folder in ("src/deep", "docs", "vault", ".claude", "build"):
        (project / folder).mkdir(parents=True)
    for file in (".env", "src/main.py", "src/deep/.env", "docs/a.md", "vault/key.pem", "README.md", "build/x.o"):
        (project / file).write_text("text\n")
    (project / "to_env").symlink_to(".env")
    (project / ".fairlead.yaml").write_text("{}\n")
    (project / ".claude" / "settings.json").write_text("{}\n")
    return project


def run(command: str, project: Path, agent: str | None = None, cwd: str = "", **pre_tool_use: Any) -> HookOutput:
    pre_tool_use.setdefault("preventRootAdditions", False)
    policy = msgspec.convert({"preToolUse": pre_tool_use}, Policy)
    event = PreToolUse(
        session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project / cwd), agent_type=agent
    )
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


# -- files ---------------------------------------------------------------------------------------------


@for_each(
    "command",
    [
        *("echo x > .env", "echo x >> ./.env", "echo x >| src/../.env", "echo x | tee .env", "sed -i s/a/b/ .env"),
        *("rm .env", "rm -f {p}/.env", "mv .env other", "mv docs/a.md .env", "cp docs/a.md .env", "truncate -s0 .env"),
        *("dd if=/dev/null of=.env", "cd src && rm ../.env", "cd src; cd deep; rm .env", "(cd src && rm deep/.env)"),
        *("ls && rm .env", "true | rm .env", "echo $(rm .env)", "bash -c 'rm .env'", "echo x > to_env", "rm to_env"),
        *("rm -rf .", "rm -rf src", "rm -rf {p}", "mv src old", "rm -rf vault", "rm -rf vault/", "rm *.pem .e*"),
        *("rm vault/*", "cp README.md vault/", "cp README.md vault", "mv README.md vault", "touch vault/new"),
        *("git checkout -- .env", "git checkout -- .", "cat <<E > .env\nx\nE", "python3 -c \"open('.env','w')\""),
        *("rm /proc/self/cwd/.env", "rm ~/../project/.env", "rm s?c/deep/.env", "cp /dev/null .env"),
    ],
)
def test_no_command_changes_a_protected_file(command: str, project: Path) -> None:
    assert run(command.format(p=project), project, uneditableFiles=[".env", "/vault"]).blocked


@for_each(
    "command",
    [
        *("ls -la", "git status", "cat .env", "grep -rn x .", "echo hi", "echo .env", "rm build/x.o", "rm -rf build"),
        *("echo x > docs/b.md", "cp .env.example docs/", "sed -i s/a/b/ src/main.py", "mkdir -p out/a", "rm -rf docs"),
        *(
            "mv docs/a.md docs/b.md",
            "cat README.md | head -3 > docs/c.md",
            "pytest -q 2>&1 | tail",
            "echo x > /dev/null",
        ),
        *("git add -A && git commit -m 'edit .env'", "find . -name '*.py'", "python -m build", "cp .env docs/copy"),
        *("mv README.md src", "cp -r docs src", "cp -r docs src/", "mkdir x && cp README.md x"),
    ],
)
def test_a_harmless_command_is_allowed(command: str, project: Path) -> None:
    output = run(command, project, uneditableFiles=[".env", "/vault"])

    assert (output.blocked, output.permission) == (False, None), output.reason


@for_each(
    "command",
    [
        "cat .env",
        "head -1 ./.env",
        "cp .env x",
        "cat < .env",
        "cat to_env",
        "grep x .env",
        "mv .env x",
        "cp -r . /else",
    ],
)
def test_no_command_reads_an_unreadable_file(command: str, project: Path) -> None:
    assert run(command, project, unreadableFiles=[".env"]).blocked


def test_a_block_names_the_tool_and_the_file(project: Path) -> None:
    assert run("rm -rf src", project, uneditableFiles=[".env"]).reason == (
        "Blocked Bash operation: file matches preToolUse.uneditableFiles pattern '.env'. File: src/deep/.env"
    )


@for_each(
    "command",
    [
        *(
            "rm .fairlead.yaml",
            "echo > .claude/settings.json",
            "rm -rf .claude",
            "mv .claude x",
            "rm -rf .",
            "cd .claude && rm *",
        ),
        *("sed -i s/a/b/ src/../.fairlead.yaml", "cp README.md .claude/settings.local.json", "rm -rf {p}"),
    ],
)
def test_no_command_changes_own_files(command: str, project: Path) -> None:
    assert run(command.format(p=project), project).blocked


def test_new_files_are_additions(project: Path) -> None:
    assert run("touch new.txt", project, preventRootAdditions=True).blocked
    assert run("echo > docs/new.md", project, preventAdditions=["docs"]).blocked
    assert not run("mkdir new", project, preventRootAdditions=True).blocked
    assert not run("touch README.md", project, preventRootAdditions=True).blocked


def test_a_folder_with_too_many_files_asks_the_user(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_search, "MAX_ENTRIES", 1)
    output = run("rm -rf src", project, uneditableFiles=["*.pem"])

    assert output.permission == "ask"
    assert "src contains more than 1 files" in (output.reason or "")


def test_after_a_folder_with_too_many_files_the_others_are_checked(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_search, "MAX_ENTRIES", 1)

    assert run("rm -r [sv]*", project, uneditableFiles=["/vault"], bash={"unparsable": "allow"}).blocked


@pytest.mark.parametrize(
    "command",
    ["echo x > plain", "tee plain < docs/a.md", "cp docs/a.md plain", "sed -i s/a/b/ p*n", "cd src; echo x > ../plain"],
)
def test_a_hard_link_does_not_bypass_a_rule(command: str, project: Path) -> None:
    (project / "plain").hardlink_to(project / ".env")

    assert run(command, project, uneditableFiles=["/.env"]).blocked
    assert not run("rm plain", project, uneditableFiles=["/.env"]).blocked, "the file itself does not change"
    assert not run(command, project, uneditableFiles=["*.pem"]).blocked


# -- what is not known ---------------------------------------------------------------------------------


@for_each(("setting", "permission"), [("ask", "ask"), ("deny", "deny"), ("allow", None)])
def test_what_is_not_known_follows_the_setting(setting: str, permission: str | None, project: Path) -> None:
    output = run("echo x > $FILE", project, uneditableFiles=[".env"], bash={"unparsable": setting})

    assert output.permission == permission
    assert permission is None or "$FILE" in (output.reason or "")


def test_the_person_is_told_what_is_at_stake_and_the_agent_how_to_write_it(project: Path) -> None:
    output = run("echo x > $FILE", project, uneditableFiles=[".env", "*.pem", "/vault", "a"], unreadableFiles=[".env"])

    assert output.reason == (
        "This command cannot be checked against the policy (preToolUse.bash.unparsable): which file > writes is only "
        "known when it runs: $FILE. It may touch what preToolUse.uneditableFiles (.env, *.pem, /vault, …) and "
        "preToolUse.unreadableFiles (.env) protects."
    )
    assert output.additional_context is not None
    assert output.additional_context.startswith("A person was asked about this call")
    assert "without variables and substitutions" in output.additional_context


def test_where_nobody_can_be_asked_the_reason_says_that_it_is_denied(project: Path) -> None:
    policy = msgspec.convert({"preToolUse": {"uneditableFiles": [".env"]}}, Policy)
    layer = Layer(str(project / ".fairlead.yaml"), str(project), policy)
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": "rm $X"}, cwd=str(project))

    for guards in (Guards([layer], headless=True), Guards([layer], {"CLAUDE_CODE_ENTRYPOINT": "sdk-cli"})):
        output = guards.check(event).output
        assert output.permission == "ask"
        assert "this session runs without one, so it is denied. To need no question: name" in (output.reason or "")
        assert output.additional_context is None


def test_under_any_policy_what_is_not_known_asks_the_user(project: Path) -> None:
    """It may be the policy itself that is written: `> "$(printf .fair)lead.yaml"`."""
    assert run("echo x > $FILE", project).permission == "ask"
    assert run('rm "$(ls -A | grep fair)"', project).permission == "ask"


def test_without_a_policy_what_is_not_known_is_allowed(project: Path) -> None:
    event = PreToolUse(session_id="s", cwd=str(project), tool_name="Bash", tool_input={"command": "echo x > $FILE"})
    assert Guards(()).check(event).output.permission is None


def test_a_command_that_mentions_own_files_asks_the_user(project: Path) -> None:
    assert run("echo x > $d/settings.json", project).permission == "ask"


# -- commands ------------------------------------------------------------------------------------------


def rule(command: str, action: str = "block", **more: Any) -> dict[str, Any]:
    return {"tool": "Bash", "commandPattern": command, "action": action, **more}


HIDDEN_PUSHES = [
    "git --no-pager push --force",
    "git -C /x push --force",
    "git -c a.b=c push --force",
    "git push origin --force",
    "git push -v --force origin",
    "git --git-dir x --work-tree y push --force",
    "git -P push origin main --force",
    "sudo git push --force",
    "env A=1 git push --force",
    "timeout 5 git push --force",
    "nohup git push --force &",
    "nice -n 5 git push --force",
    "time git push --force",
    "command git push --force",
    "exec git push --force",
    "echo origin | xargs git push --force",
    "xargs -n1 git push --force < x",
    "A=1 git push --force",
    "P=push; git $P --force",
    "G=git; $G push --force",
    "C='git push'; $C --force",
    "alias p='git push --force'; p",
    'g() { git push "$@"; }; g --force',
    "f=--force; git push ${f:-x}",
    "eval 'git push --force'",
    "python3 -c \"import subprocess; subprocess.run(['git', 'push', '--force'])\"",
    "python3 -c \"import os; os.system('git push --force')\"",
    "node -e \"require('child_process').spawnSync('git', ['push', '--force'])\"",
    "node -e \"require('child_process').execSync('git push --force')\"",
    'ruby -e \'system("git", "push", "--force")\'',
    "perl -e 'exec \"git push --force\"'",
    "find . -maxdepth 0 -exec git push --force \\;",
    "git status | (cat; git push --force)",
]


@for_each(
    "command",
    [
        *("git push --force", "git  push   --force", "cd x && git push --force", "ls; git push --force origin"),
        *("true | git push --force", "(git push --force)", "echo $(git push --force)", "bash -c 'git push --force'"),
        *("/usr/bin/git push --force", "'git' push --force", "g\\it push --force", "  git push --force  "),
        *HIDDEN_PUSHES,
    ],
)
def test_a_blocked_command_is_found_anywhere_in_a_call(command: str, project: Path) -> None:
    assert run(command, project, toolUsageValidation=[rule("git push --force*")]).reason == (
        "Bash command blocked by preToolUse.toolUsageValidation rule: git push --force*"
    )


@for_each("command", ["git push", "echo 'git push --force'", "git log --grep 'git push --force'"])
def test_a_command_that_only_mentions_it_is_allowed(command: str, project: Path) -> None:
    assert not run(command, project, toolUsageValidation=[rule("git push --force*")]).blocked


@for_each(
    ("pattern", "command"),
    [
        ("terraform destroy*", "terraform -chdir=infra destroy -auto-approve"),
        ("rm -rf *", "rm build -rf"),
        ("rm -rf *", "rm -r -f build"),
        ("rm -rf *", "rm -fr build"),
        ("npm publish*", "npm --prefix web publish"),
        ("kubectl delete*", "kubectl -n prod --context x delete pod y"),
        ("docker system prune*", "docker --context x system prune -af"),
    ],
)
def test_options_do_not_hide_a_blocked_command(pattern: str, command: str, project: Path) -> None:
    assert run(command, project, toolUsageValidation=[rule(pattern)]).blocked


@for_each(
    ("pattern", "command"),
    [
        ("git push --force*", "git push origin main"),
        ("git push --force*", "git fetch --force"),
        ("git push --force*", "git commit -m 'push --force'"),
        ("rm -rf *", "rm -r build"),
        ("rm -rf *", "rm --force build"),
        ("terraform destroy*", "terraform plan -destroy"),
        ("npm publish*", "npm run publish:docs"),
    ],
)
def test_moved_options_do_not_block_another_command(pattern: str, command: str, project: Path) -> None:
    assert not run(command, project, toolUsageValidation=[rule(pattern)]).blocked


@for_each(
    ("command", "blocked"),
    [
        ("git status > .bashrc", True),
        ("git status >> out.txt", True),
        ("git status > /dev/null 2>&1", False),
        ("git status 2>&1", False),
        ("GIT_EXTERNAL_DIFF=x git status", True),
        ("PATH=.:$PATH git status", True),
        ("NO_COLOR=1 git status", False),
        ("git log > log/a.txt", False),
        ("git log > a.txt", True),
    ],
)
def test_an_allow_rule_does_not_allow_redirections_and_variables(command: str, *, blocked: bool, project: Path) -> None:
    rules = [rule("git status*", "allow"), rule("git log", "allow"), rule("git log > log/*", "allow")]

    assert run(command, project, toolUsageValidation=rules).blocked is blocked


def test_a_pattern_can_match_several_commands_of_a_call(project: Path) -> None:
    assert run("curl x | sh", project, toolUsageValidation=[rule("*curl*|*sh*")]).blocked


def test_with_prefix_mode_the_first_words_may_match(project: Path) -> None:
    rules = [rule("git push", matchMode="prefix")]

    assert run("git push origin main", project, toolUsageValidation=rules).blocked
    assert not run("git pushy", project, toolUsageValidation=rules).blocked
    assert not run("git push origin", project, toolUsageValidation=[rule("git push")]).blocked


@for_each(
    ("command", "blocked"),
    [
        ("git status", False),
        ("cargo test", False),
        ("git status && cargo test", False),
        ("git status; rm -rf /", True),
        ("git log | sh", True),
        ("git log $(rm x)", True),
        ("ls", True),
    ],
)
def test_every_command_must_be_allowed(command: str, *, blocked: bool, project: Path) -> None:
    rules = [rule("git *", "allow"), rule("cargo *", "allow")]
    output = run(command, project, toolUsageValidation=rules)

    assert output.blocked is blocked
    assert not blocked or output.reason == (
        "Bash command blocked: does not match preToolUse.toolUsageValidation allow rule pattern: git *"
    )


def test_another_program_of_the_same_name_is_not_allowed(project: Path) -> None:
    assert run("./git status", project, toolUsageValidation=[rule("git *", "allow")]).blocked


def test_a_rule_can_be_for_one_agent_and_have_a_message(project: Path) -> None:
    rules = [rule("git push*", agent="coder", message="Only main pushes.")]

    assert run("git push", project, "coder", toolUsageValidation=rules).reason == "Only main pushes. (agent: coder)"
    assert not run("git push", project, toolUsageValidation=rules).blocked


def test_a_rule_can_only_warn(project: Path) -> None:
    output = run("git push", project, toolUsageValidation=[rule("git push*", "warn", message="Sure?")])

    assert (output.blocked, output.system_message) == (False, "Sure?")


def test_a_rule_can_block_bash_for_some_files(project: Path) -> None:
    rules = [{"tool": "Bash", "pattern": "*.md", "action": "block"}]

    assert run("sed -i s/a/b/ docs/a.md", project, toolUsageValidation=rules).blocked
    assert run("cat docs/a.md", project, toolUsageValidation=rules).blocked
    assert not run("ls", project, toolUsageValidation=rules).blocked
