"""Programs that the guards do not know: a question, if they are given a protected file, and only then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.cases import for_each

from fairlead.events import HookOutput, PreToolUse
from fairlead.policy import Guards, Layer, read_policy
from fairlead.policy.bash._analysis import analyse

if TYPE_CHECKING:
    from pathlib import Path

POLICY = """
preToolUse:
  preventRootAdditions: false
  uneditableFiles: [.env, "*.pem", /vault, "src/generated/**"]
"""
UNREADABLE = POLICY + "  unreadableFiles: [.env]\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path.resolve() / "home" / "project"
    for folder in ("src/generated", "docs", "vault", ".claude", "tests", "certs"):
        (project / folder).mkdir(parents=True)
    for file in (
        *(".env", ".env.example", "src/main.py", "src/generated/api.py", "docs/a.md", "vault/key", "README.md"),
        *("tests/test_a.py", "certs/server.pem", ".claude/settings.json"),
    ):
        (project / file).write_text("text\n")
    (project / ".fairlead.yaml").write_text(POLICY)
    return project


def check(project: Path, command: str, policy: str = POLICY) -> HookOutput:
    file = str(project / ".fairlead.yaml")
    guards = Guards((Layer(file, str(project), read_policy(policy, file)),))
    event = PreToolUse(session_id="s", cwd=str(project), tool_name="Bash", tool_input={"command": command})
    return guards.check(event).output


@for_each(
    "command",
    [
        *("frob .env", "frob ./.env", "frob {p}/.env", "frob '.env'", "frob .e*", "frob ~/project/.env"),
        *("frob --file=.env", "frob -f .env", "frob -f.env", "frob file=.env", "frob @.env", "frob --in @.env"),
        *("frob file://{p}/.env", "frob 'file://localhost{p}/%2eenv'", "frob a,.env", "frob x:.env", 'frob "rm .env"'),
        *("frob '(delete-file \".env\")'", 'frob \'{{"path": ".env"}}\'', 'frob --json \'{{"f":[".env"]}}\''),
        *("F=.env frob", "export F=.env; frob", "export F=.env && cd src && frob", "env F=.env frob"),
        *("frob vault", "frob vault/", "frob vault/key", "frob .", "frob certs", "cd vault && frob key"),
        *("cd src && frob ../.env", "sudo frob .env", "npx frob .env", "timeout 5 frob .env", "frob < x .env"),
        *("frob .fairlead.yaml", "frob .claude", "frob .claude/settings.json", "frob src/generated/api.py"),
        *("docker run -v {p}/.env:/x alpine true", "docker run -v {p}:/w alpine frob /w/.env", "guile -c '\".env\"'"),
        *("cargo run -- .env", "go run ./cmd .env", "pytest --junitxml=.env", "pytest --junitxml .env"),
        *("mypy --html-report .env src", "frob --env-file .env", "npx -y frob@1.2 .env", "ls | frob .env"),
    ],
)
def test_an_unknown_program_with_a_protected_file_asks(command: str, project: Path) -> None:
    output = check(project, command.format(p=project))

    assert (output.blocked, output.permission) == (False, "ask"), output.reason


@for_each(
    "command",
    [
        *(
            "prettier --write .env",
            "black src/generated/api.py",
            "black src",
            "black .",
            "ruff format .",
            "ruff format",
        ),
        *("ruff check --fix src", "isort src/generated", "python -m black .", "ruff check --fix", "autopep8 -i -r src"),
        *("docker run --rm -v {p}:/w alpine rm /w/.env", "docker run -v {p}:/w -w /w alpine sh -c 'rm .env'"),
        *(
            "docker cp c:/x .env",
            "kubectl cp pod:/x .env",
            "ssh localhost rm {p}/.env",
            "ssh -o ProxyCommand='rm .env' h",
        ),
        *("ssh -E .env host", "docker run --mount type=bind,src={p},dst=/w alpine tee /w/.env"),
    ],
)
def test_what_everyday_programs_write_is_known(command: str, project: Path) -> None:
    assert check(project, command.format(p=project)).blocked


@for_each(
    "command",
    [
        *("pytest .", "pytest tests -q", "ruff check .", "ruff format --check .", "eslint .", "mypy src", "mypy ."),
        *("cargo build", "cargo test", "go test ./...", "go vet ./...", "docker build -t x .", "npx eslint ."),
        *("prettier --check .", "tsc -p .", "pip install -e .", "uv pip install -e .", "npm install .", "cloc ."),
        *(
            "docker compose up -d",
            "docker run --rm -v {p}:/app -w /app node npm test",
            "docker run -v {p}:/a img ls /a",
        ),
        *("gh pr create --title 'a .env fix' --body 'writes > .env, see .env'", "frob src/main.py", "frob tests"),
        *("frob --version", "frob -v 1.0.1 --url https://example.org/.env", "echo .env", "test -f .env", "du -sh ."),
        *(
            "printf '%s\\n' .env vault",
            "black tests",
            "black --check .",
            "ruff check --fix tests",
            "prettier --write docs",
        ),
        *("ssh host 'rm .env'", "ssh -i ~/.ssh/id host ls", "kubectl apply -f k8s/", "kubectl get pods -n x"),
        *("terraform plan", "terraform fmt", "trivy fs .", "pre-commit run --all-files", "gcc -o out src/main.c"),
        *(
            "shellcheck .env",
            "yamllint .fairlead.yaml",
            "fairlead validate .fairlead.yaml",
            "which frob",
            "ls -la vault",
        ),
        *("git commit -m 'frob .env'", "docker compose --env-file .env up", "frob 'a sentence about nothing'"),
        *("NODE_ENV=test frob tests", "export PATH=$PATH:/x; frob tests", "frob $X", "docker exec c cat /app/.env"),
    ],
)
def test_everyday_programs_pass(command: str, project: Path) -> None:
    output = check(project, command.format(p=project))

    assert (output.blocked, output.permission) == (False, None), output.reason


@for_each(
    "command", ["shellcheck .env", "docker compose --env-file .env up", "kubectl create configmap x --from-file=.env"]
)
def test_a_program_that_may_show_an_unreadable_file_asks(command: str, project: Path) -> None:
    assert check(project, command, UNREADABLE).permission == "ask"


def test_the_question_names_the_program_the_file_and_the_rule(project: Path) -> None:
    reason = check(project, "frob vault/key").reason or ""

    assert "what frob does with vault/key is not known; preToolUse.uneditableFiles[2] '/vault' protects it" in reason


def test_a_folder_that_is_given_to_a_program_is_named_with_the_file_below_it(project: Path) -> None:
    assert "what frob does with certs/server.pem, below certs is not known" in (
        check(project, "frob certs").reason or ""
    )


def test_unknown_programs_are_listed() -> None:
    assert analyse("frob a | pytest; ./x b; ls").programs[0] == "frob"
    assert analyse("pytest .; ruff check .; echo").programs == ()
