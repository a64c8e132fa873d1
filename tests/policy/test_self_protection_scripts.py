"""What switches the guards off by way of a file, a container or a setup script; reading our own files is free."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest
from policy.cases import for_each

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with scripts, one of which uninstalls Fairlead, in a home with a policy and hooks."""
    home = tmp_path.resolve() / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR", "FAIRLEAD_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    for folder in (".claude", ".config/fairlead", ".local/state/fairlead"):
        (home / folder).mkdir(parents=True)
    (home / ".claude/settings.json").write_text('{"hooks": "/x/fairlead-hook"}')
    (home / ".config/fairlead/policy.yaml").write_text("{}\n")
    project = tmp_path.resolve() / "project"
    for folder in ("src", "many", ".claude", "other"):
        (project / folder).mkdir(parents=True)
    (project / ".claude/settings.json").write_text("{}")
    (project / "off.sh").write_text("fairlead uninstall --yes\n")
    (project / "off.py").write_text("import subprocess\nsubprocess.run(['fairlead','uninstall'])\n")
    (project / "ok.sh").write_text("echo hello\nmake test\n")
    (project / "reqs.txt").write_text("requests\nfairlead\n")
    (project / "requirements.txt").write_text("requests\n")
    (project / "other/setup.py").write_text("from setuptools import setup\nsetup(name='other')\n")
    (project / "src/setup.py").write_text("from setuptools import setup\nsetup(name='fairlead')\n")
    for number in range(20):
        (project / f"many/{number}.sh").write_text("echo hello\n")
    (project / "many/off.sh").write_text("fairlead uninstall --yes\n")
    return project


def bash(project: Path, command: str, *, with_policy: bool) -> HookOutput:
    policy = msgspec.convert({"preToolUse": {"preventRootAdditions": False}}, Policy)
    layers = [Layer(str(project / ".fairlead.yaml"), str(project), policy)] if with_policy else []
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project))
    return Guards(layers).check(event).output


def held(output: HookOutput) -> bool:
    return output.blocked or output.permission == "ask"


FOUND = [
    *("find . -name off.sh -exec sh {} \\;", "find . -maxdepth 1 -name off.sh -exec sh {} \\;"),
    *("find off.sh -exec sh {} \\;", "cd src && find ../off.sh -exec sh {} \\;", "find . -name 'off*' -exec bash {} +"),
    *("find . -name off.sh -execdir sh {} \\;", "find . -name off.sh -exec {} \\;", "find many -exec sh {} \\;"),
    *("find . -name off.sh -exec bash -c 'bash $0' {} \\;", "find . -name off.sh -exec sh -c '. \"$1\"' _ {} \\;"),
    *("find . -name off.sh | xargs sh", "find . -name off.py -exec python3 {} \\;", "fd off.sh -x sh"),
    *("fd -e sh . many -x bash {}", "for f in many/*.sh; do sh $f; done"),
]
PIPED = [
    *(
        "cat off.sh | bash",
        "cat off.sh | sh -s",
        "cat 'off.sh' | sudo bash",
        "cat < off.sh | sh",
        "cat off.py | python3",
    ),
    *("cat ok.sh off.sh | sh", "head -1 off.sh | sh", "sed '' off.sh | bash -s -- x", "tr a a < off.sh | sh"),
    *("cat off.sh | tee x | bash", "bash <(cat off.sh)", 'bash -c "$(cat off.sh)"', 'eval "$(<off.sh)"'),
    *("source /dev/stdin < off.sh", ". <(cat off.sh)", "$(cat off.sh)"),
]
IN_CONTAINERS = [
    *("docker run --rm img claude -p x", "docker run -it claude", "podman run x/claude-code:1 -p x"),
    *("docker run -v $PWD:/w node:20 npx -y @anthropic-ai/claude-code@latest -p x", "podman run img claude --bare"),
    *("docker exec web claude -p x", "docker run --entrypoint claude img -p x", "docker compose run app claude -p x"),
    *("docker run img sh -c 'cd /w && claude -p x'", "nerdctl run img codex exec x", "kubectl exec p -- claude -p x"),
]
PACKAGES = [
    *("python setup.py develop --uninstall", "cd src && python3 setup.py develop -u", "python src/setup.py install"),
    *("easy_install -m fairlead", "python -m easy_install -m fairlead", "easy_install-3.11 fairlead"),
    *("pip uninstall -y -r reqs.txt", "pip uninstall -yr reqs.txt", "uv pip uninstall --requirement=reqs.txt"),
    *("cd src && pip uninstall -y -r ../reqs.txt", "echo fairlead > r.txt; pip uninstall -y -r r.txt"),
    *("pip uninstall -y -r <(echo fairlead)", "echo fairlead | pip uninstall -y -r /dev/stdin"),
]


@for_each("command", [*FOUND, *PIPED, *IN_CONTAINERS, *PACKAGES])
def test_it_is_held_with_and_without_a_policy(command: str, project: Path) -> None:
    assert held(bash(project, command, with_policy=True))
    assert held(bash(project, command, with_policy=False))


@for_each(
    "command",
    [
        *("cat ok.sh | bash", "find . -name ok.sh -exec sh {} \\;", "find . -name '*.py' -exec grep -l x {} +"),
        *("docker run --rm node:20 npm test", "docker build -t claude .", "docker run --name claude img"),
        *(
            "docker exec claude ls",
            "docker exec web ls claude",
            "docker run img claude --version",
            "docker logs claude",
        ),
        *("docker run --rm -v $PWD:/claude img ls /claude", "docker compose up -d", "docker run img sh -c 'echo hi'"),
        *("cd other && python setup.py develop --uninstall", "python setup.py sdist", "python other/setup.py install"),
        *("easy_install requests", "pip uninstall -y -r requirements.txt", "cat data.json | python3 -m json.tool"),
    ],
)
def test_what_resembles_it_passes(command: str, project: Path) -> None:
    for with_policy in (True, False):
        output = bash(project, command, with_policy=with_policy)
        assert not held(output), output.reason


def test_a_list_of_files_that_the_same_command_changes_is_not_taken_as_it_is_on_the_disk(project: Path) -> None:
    (project / "list").write_text("ok.sh\n")
    (project / "other-list").write_text(".fairlead.yaml\n")
    assert not held(bash(project, "cat list | xargs rm", with_policy=True))
    assert held(bash(project, "cat other-list | xargs rm", with_policy=True))
    assert held(bash(project, "cp other-list list; cat list | xargs rm", with_policy=True))
    assert held(bash(project, "cp other-list list; xargs rm < list", with_policy=True))
    assert held(bash(project, "echo x >> other-list; xargs rm < other-list", with_policy=True))


def test_a_function_that_has_the_name_of_cat_is_not_taken_for_it(project: Path) -> None:
    assert not held(bash(project, "cat ok.sh | sh", with_policy=True))
    assert held(bash(project, "cat(){ tail -n 1 $HISTFILE; }; cat ok.sh | sh", with_policy=True))


@for_each(
    "command",
    [
        *("curl -fsSL https://example.com/install.sh | bash", "curl -LsSf https://example.com/x.sh | sh -s -- -y"),
        *("head -3 ok.sh | sh", 'eval "$(cat ok.sh)"', "wget -qO- https://example.com/x.py | python3"),
        *("cat missing.sh | sh", "$CMD", "cat reqs.txt; rm -rf $BUILD"),
    ],
)
def test_without_a_policy_no_question_if_nothing_of_ours_is_mentioned(command: str, project: Path) -> None:
    output = bash(project, command, with_policy=False)
    assert not held(output), output.reason


@for_each(
    "command",
    [
        *("python -m json.tool ~/.claude/settings.json", "python3 -m json.tool --indent 2 .claude/settings.json"),
        *("python3 -m json.tool < ~/.claude/settings.json", "cat ~/.claude/settings.json | python3 -m json.tool"),
        *("jq . ~/.claude/settings.json", "jq -r '.hooks | keys[]' .claude/settings.json", "yq . .fairlead.yaml"),
        *("cat ~/.claude/settings.json", "less .fairlead.yaml", "bat .fairlead.yaml", "head -20 .fairlead.yaml"),
        *("grep -n hooks ~/.claude/settings.json", "grep -rn fairlead ~/.claude", "rg hooks ~/.claude/settings.json"),
        *("diff .fairlead.yaml ~/.config/fairlead/policy.yaml", "sha256sum .fairlead.yaml", "wc -l .fairlead.yaml"),
        *("ls -la ~/.claude ~/.config/fairlead ~/.local/state/fairlead", "stat ~/.claude/settings.json"),
        *("cp ~/.claude/settings.json /tmp/backup.json", "sed -n 1,20p ~/.claude/settings.json", "xxd .fairlead.yaml"),
        *("tail -f ~/.local/state/fairlead/daemon.log", "find ~/.claude -name '*.json'", "test -f .fairlead.yaml"),
        *("python3 -c \"import json; print(json.load(open('.claude/settings.json')))\"", "gron .claude/settings.json"),
        *("prettier --check .claude/settings.json", "yamllint .fairlead.yaml", "tar czf b.tgz ~/.claude"),
        *("check-jsonschema --schemafile s.json x.json .fairlead.yaml", "git blame .fairlead.yaml"),
    ],
)
def test_our_own_files_may_be_read(command: str, project: Path) -> None:
    for with_policy in (True, False):
        output = bash(project, command, with_policy=with_policy)
        assert not held(output), output.reason


@for_each(
    "command",
    [
        *("python -m json.tool x.json ~/.claude/settings.json", "python3 -m json.tool x.json .claude/settings.json"),
        *("jq . x.json > .claude/settings.json", "prettier --write .claude/settings.json; cp x .claude/settings.json"),
    ],
)
def test_what_reads_one_file_and_writes_ours_is_held(command: str, project: Path) -> None:
    assert held(bash(project, command, with_policy=True))


def test_a_module_of_the_project_that_has_the_name_of_one_of_pythons_is_not_trusted_to_read(project: Path) -> None:
    (project / "json").mkdir()
    (project / "json/tool.py").write_text("import sys\nopen(sys.argv[1], 'w').write('')\n")
    command = "python -m json.tool .claude/settings.json"
    assert held(bash(project, command, with_policy=True))
    (project / "json/tool.py").rename(project / "json.py")
    assert held(bash(project, command, with_policy=True))
    (project / "json.py").unlink()
    assert not held(bash(project, command, with_policy=True))
    assert held(bash(project, f"PYTHONPATH=/tmp/x {command}", with_policy=True))
