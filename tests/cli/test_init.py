"""`fairlead init`: a policy that is valid as written, with the project's own checks, and nothing lost."""

from __future__ import annotations

import json
import os
import re
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from fairlead.cli.main import main
from fairlead.events import PreToolUse
from fairlead.policy import Guards, Layer, find_hints
from fairlead.policy.config._conclaude import is_narrower
from fairlead.policy.config._reader import read_policy
from fairlead.policy.config._schema import schema_text
from fairlead.policy.init._detect import detect_checks
from fairlead.policy.init._template import TEMPLATE, render_policy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Tools = Callable[..., None]

GUIDE = Path(__file__).parents[2] / "docs/howto/policy.md"
SCHEMA_LINE = "# yaml-language-server: $schema=fairlead.schema.json"
NEXT = "  fairlead validate\n  fairlead explain --tool Bash --command 'rm -rf build'\n  fairlead hooks install\n"


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty project, in which we are, with no program on the PATH."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "bin").mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return project


@pytest.fixture
def tools(folder: Path) -> Tools:
    """Puts programs on the PATH."""

    def add(*names: str) -> None:
        for name in names:
            executable(folder.parent / "bin" / name)

    return add


def executable(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def init(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    """Runs the command."""

    def call(*args: str) -> Said:
        return Said(main(["init", *args]), *capsys.readouterr())

    return call


# -- the template --------------------------------------------------------------------------------------


def is_example(line: str) -> bool:
    return line.lstrip().startswith("# ") and not line.startswith("# yaml-language-server")


def uncommented(text: str, only: range | None = None) -> str:
    lines = text.splitlines()
    chosen = only or range(len(lines))
    return "\n".join(
        line.replace("# ", "", 1) if at in chosen and is_example(line) else line for at, line in enumerate(lines)
    )


def examples(text: str) -> list[range]:
    """The runs of commented lines."""
    found: list[range] = []
    for at, line in enumerate(text.splitlines()):
        if is_example(line) and found and found[-1].stop == at:
            found[-1] = range(found[-1].start, at + 1)
        elif is_example(line):
            found.append(range(at, at + 1))
    return found


def test_the_template_and_each_of_its_examples_are_valid_alone_and_together() -> None:
    template = TEMPLATE.read_text()

    read_policy(template, "template.yaml")
    for block in examples(template):
        read_policy(uncommented(template, block), "template.yaml")
    whole = read_policy(uncommented(template), "template.yaml")

    assert len(examples(template)) == 16
    assert [rule.command_pattern for rule in whole.pre_tool_use.tool_usage_validation] == [
        None,
        "git push --force*",
        "git *",
    ]
    assert whole.permission_request is not None
    assert [case.expect for case in whole.tests] == ["block"]


def test_the_template_protects_itself_and_says_why() -> None:
    template = TEMPLATE.read_text()

    assert read_policy(template, "").pre_tool_use.protect_own_files
    assert "it could switch the rules off" in template


def test_what_the_template_sets_is_what_holds_without_it() -> None:
    """A user who deletes a line gets no surprise."""
    assert read_policy(TEMPLATE.read_text(), "") == read_policy("", "")


@pytest.mark.parametrize("found", [(), ("ruff",), ("ruff", "mypy", "pytest")])
def test_the_checks_are_valid_as_written_and_as_uncommented(folder: Path, tools: Tools, found: tuple[str, ...]) -> None:
    (folder / "pyproject.toml").write_text("[tool.ruff]\n[tool.mypy]\n[tool.pytest.ini_options]\n")
    tools(*found)

    text = render_policy(detect_checks(folder)[0])

    assert [command.run.split()[0] for command in read_policy(text, "").stop.commands] == list(found)
    assert [command.run for command in read_policy(uncommented(text), "").stop.commands] == [
        "ruff check .",
        "mypy .",
        "pytest -q",
    ]


def test_a_check_is_written_out_in_full(folder: Path, tools: Tools) -> None:
    (folder / "go.mod").write_text("module example.com/m\n")
    (folder / ".golangci.yml").write_text("")
    tools("go")

    text = render_policy(detect_checks(folder)[0])

    assert (
        text.partition("\nstop:\n")[2].partition("\n\n")[0]
        == """\
  commands:
    ## Off: golangci-lint is not on the PATH.
    # - run: golangci-lint run
    #   message: Fix what the linter reports.
    #   when: ["*.go", "go.mod", "go.sum"]
    #   timeout: 120
    #   showStdout: true
    #   showStderr: true
    #   maxOutputLines: 60
    - run: go vet ./...
      message: Fix what the linter reports.
      when: ["*.go", "go.mod", "go.sum"]
      timeout: 120
      showStdout: true
      showStderr: true
      maxOutputLines: 60
    - run: go test ./...
      message: Fix what makes the tests fail.
      when: ["*.go", "go.mod", "go.sum"]
      timeout: 300
      showStdout: true
      showStderr: true
      maxOutputLines: 100"""
    )


def test_it_names_no_schema_because_a_path_of_this_machine_is_wrong_on_others() -> None:
    assert "yaml-language-server" not in render_policy([])
    assert render_policy([]).startswith("## What coding agents may do")


# -- what is found -------------------------------------------------------------------------------------

PYPROJECT = '[project]\nname = "x"\n'
SCRIPTS = '{"scripts": {"lint": "eslint .", "test": "vitest run", "type-check": "tsc", "build": "vite"}}'


@pytest.mark.parametrize(
    ("files", "runs"),
    [
        ({}, []),
        ({"pyproject.toml": PYPROJECT}, []),
        ({"pyproject.toml": "[tool.ruff]\n"}, ["ruff check ."]),
        ({"pyproject.toml": '[tool.mypy]\nfiles = ["src"]\n'}, ["mypy"]),
        ({"pyproject.toml": "[tool.pyright]\n"}, ["pyright"]),
        ({"pyproject.toml": f'{PYPROJECT}dependencies = ["pytest>=8", "Ruff"]\n'}, ["ruff check .", "pytest -q"]),
        ({"pyproject.toml": f'{PYPROJECT}keywords = ["pytest"]\n'}, []),
        ({"pyproject.toml": "[dependency-groups]\ndev = [\"mypy[x]; os_name == 'nt'\"]\n"}, ["mypy ."]),
        ({"pyproject.toml": "[tool.ruff]\n", "uv.lock": ""}, ["uv run ruff check ."]),
        ({"pyproject.toml": '[tool.poetry.group.dev.dependencies]\npytest = "^8"\n'}, ["poetry run pytest -q"]),
        ({"pyproject.toml": "[tool.pytest]\n", "pdm.lock": ""}, ["pdm run pytest -q"]),
        ({"pyproject.toml": '[tool.hatch.envs.default]\ndependencies = ["pytest"]\n'}, ["hatch run pytest -q"]),
        ({"ruff.toml": "", "mypy.ini": "", "pytest.ini": ""}, ["ruff check .", "mypy .", "pytest -q"]),
        ({"requirements-dev.txt": "pytest==8\npytest-cov\n"}, ["pytest -q"]),
        ({"requirements-dev.txt": "pytest-cov\n"}, []),
        ({"package.json": SCRIPTS}, ["npm run lint", "npm run type-check", "npm run test"]),
        ({"package.json": '{"scripts": {"test": "x"}}', "pnpm-lock.yaml": ""}, ["pnpm run test"]),
        ({"package.json": '{"scripts": {"test": "x"}}', "yarn.lock": ""}, ["yarn run test"]),
        ({"package.json": '{"scripts": {"test": "x"}}', "bun.lockb": ""}, ["bun run test"]),
        ({"package.json": '{"packageManager": "pnpm@9.1.0", "scripts": {"lint": "x"}}'}, ["pnpm run lint"]),
        ({"package.json": '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'}, []),
        ({"package.json": '{"scripts": {"test": "jest --watch", "lint": "eslint ."}}'}, ["npm run lint"]),
        ({"package.json": '{"scripts": ["lint"]}'}, []),
        ({"package.json": "[]"}, []),
        ({"Cargo.toml": "[package]\n"}, ["cargo clippy --all-targets -- -D warnings", "cargo test"]),
        (
            {"Cargo.toml": "[workspace]\n"},
            ["cargo clippy --workspace --all-targets -- -D warnings", "cargo test --workspace"],
        ),
        ({"go.mod": "module m\n"}, ["go vet ./...", "go test ./..."]),
        ({"Makefile": "CHECK := 1\ncheck: lint\n\tlint\nbuild:\n"}, ["make check"]),
        ({"GNUmakefile": "lint test: all\n"}, ["make lint", "make test"]),
        ({"Makefile": "test:=1\nlint = 2\n.PHONY: check\n\tcheck: x\n"}, []),
        ({".pre-commit-config.yaml": "repos: []\n"}, ["pre-commit run --all-files"]),
        ({"composer.json": '{"scripts": {"lint": "x", "test": ["y"]}}'}, ["composer run lint", "composer run test"]),
        (
            {"composer.json": "{}", "phpunit.xml.dist": "", "phpstan.neon": ""},
            ["vendor/bin/phpstan analyse", "vendor/bin/phpunit"],
        ),
        ({"Gemfile": 'gem "rspec"\ngem "rubocop"\n'}, ["bundle exec rubocop", "bundle exec rspec"]),
        ({"Gemfile": "", "Rakefile": "Rake::TestTask.new\n"}, ["bundle exec rake test"]),
        ({"Rakefile": "task :test do\nend\n"}, ["rake test"]),
        (
            {"mix.exs": "{:credo, '~> 1'}", ".formatter.exs": "[]"},
            ["mix format --check-formatted", "mix credo", "mix test"],
        ),
        ({"build.gradle.kts": ""}, ["gradle check"]),
        ({"build.gradle": "", "gradlew": ""}, ["./gradlew check"]),
        ({"pom.xml": ""}, ["mvn -q verify"]),
        ({"pom.xml": "", "mvnw": ""}, ["./mvnw -q verify"]),
    ],
)
def test_the_project_s_own_linters_and_tests_are_found(folder: Path, files: dict[str, str], runs: list[str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)

    checks, unreadable = detect_checks(folder)

    assert ([check.run for check in checks], unreadable) == (runs, [])
    assert all(check.disabled_reason for check in checks)


def test_a_tool_in_the_project_s_environment_needs_no_path(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.ruff]\n")
    (folder / "uv.lock").write_text("")
    executable(folder / ".venv/bin/ruff")

    assert [(check.run, check.disabled_reason) for check in detect_checks(folder)[0]] == [
        (".venv/bin/ruff check .", None)
    ]


def test_a_wrapper_is_run_from_the_folder(folder: Path) -> None:
    (folder / "build.gradle").write_text("")
    executable(folder / "gradlew")

    assert [(check.run, check.disabled_reason) for check in detect_checks(Path())[0]] == [("./gradlew check", None)]


def test_what_make_or_pre_commit_covers_is_an_example_only(folder: Path, tools: Tools) -> None:
    (folder / "Makefile").write_text("test:\n\tpytest\n")
    (folder / ".pre-commit-config.yaml").write_text("")
    (folder / "pyproject.toml").write_text("[tool.ruff]\n[tool.mypy]\n[tool.pytest]\n")
    tools("make", "pre-commit", "ruff", "mypy", "pytest")

    assert {check.run: check.disabled_reason for check in detect_checks(folder)[0]} == {
        "make test": None,
        "pre-commit run --all-files": None,
        "ruff check .": "`pre-commit run --all-files` seems to cover it",
        "mypy .": None,
        "pytest -q": "`make test` seems to cover it",
    }


def test_broken_files_are_named_and_passed_over(folder: Path) -> None:
    (folder / "pyproject.toml").write_text("[tool.ruff")
    (folder / "package.json").write_text('{"scripts": ' + "[" * 100_000)
    (folder / "composer.json").write_bytes(b"\xff")
    os.mkfifo(folder / "Makefile")
    (folder / "go.mod").mkdir()

    assert detect_checks(folder) == ([], ["pyproject.toml", "package.json", "composer.json"])


def test_a_link_out_of_the_folder_is_not_looked_at(folder: Path) -> None:
    (folder.parent / "pyproject.toml").write_text("[tool.ruff]\n")
    (folder / "pyproject.toml").symlink_to("../pyproject.toml")

    assert detect_checks(folder) == ([], [])


# -- writing -------------------------------------------------------------------------------------------


def test_it_writes_the_policy_and_says_what_to_do_next(folder: Path, tools: Tools, init: Callable[..., Said]) -> None:
    (folder / "pyproject.toml").write_text("[tool.ruff]\n[tool.pytest]\n")
    tools("ruff")

    assert init() == Said(
        0,
        "wrote .fairlead.yaml: guards, and 1 check before the agent may stop\n"
        "  ruff check .  from pyproject.toml\n"
        "  pytest -q     from pyproject.toml; off: pytest is not on the PATH\n"
        f"next:\n{NEXT}",
        "",
    )
    written = folder / ".fairlead.yaml"
    assert written.read_text().startswith("## What coding agents may do")
    assert stat.S_IMODE(written.stat().st_mode) == 0o644
    assert names(folder) == [".fairlead.yaml", "pyproject.toml"]
    assert len(read_policy(written.read_text(), "").stop.commands) == 1


def test_another_folder_may_be_named(folder: Path, init: Callable[..., Said]) -> None:
    (folder / "sub").mkdir()
    (folder / "sub/package.json").write_text("{")

    assert init("sub") == Said(
        0,
        "wrote sub/.fairlead.yaml: guards, and 0 checks before the agent may stop\n"
        "  package.json cannot be read, so it was skipped\n"
        f"next, in sub:\n{NEXT}",
        "",
    )


def test_secrets_lock_files_and_ci_become_rules_on_files(folder: Path, init: Callable[..., Said]) -> None:
    for name in (
        ".env",
        ".env.example",
        "api/server.pem",
        "yarn.lock",
        ".github/workflows/test.yml",
        "node_modules/x.key",
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()

    assert init().out == (
        "wrote .fairlead.yaml: guards, 4 rules on files, and 0 checks before the agent may stop\n"
        "  .env*                neither read nor edited; there is .env\n"
        "  *.pem                neither read nor edited; there is api/server.pem\n"
        "  yarn.lock            a warning if it is edited; there is yarn.lock\n"
        "  /.github/workflows/  not edited; there is .github/workflows/\n"
        f"next:\n{NEXT}"
    )
    text = (folder / ".fairlead.yaml").read_text()
    layer = Layer(str(folder / ".fairlead.yaml"), str(folder), read_policy(text, ""))
    verdicts = {
        (tool, name): Guards((layer,)).check(
            PreToolUse(session_id="s", cwd=str(folder), tool_name=tool, tool_input={"file_path": name})
        )
        for tool in ("Read", "Edit")
        for name in (".env", ".env.example", "api/server.pem", "yarn.lock", ".github/workflows/test.yml")
    }
    blocked = [call for call, verdict in verdicts.items() if verdict.output.blocked]
    assert blocked == [
        ("Read", ".env"),
        ("Read", "api/server.pem"),
        ("Edit", ".env"),
        ("Edit", "api/server.pem"),
        ("Edit", ".github/workflows/test.yml"),
    ]
    assert verdicts["Edit", "yarn.lock"].output.system_message is not None
    read_policy(uncommented(text), "")


def test_it_installs_the_hooks_if_asked(
    folder: Path, init: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "client"))
    monkeypatch.setenv("FAIRLEAD_HOME", str(tmp_path / "home"))
    said = init("--install")

    assert (said.code, "fairlead hooks install" in said.out.partition("\n\n")[0]) == (0, False)
    assert "fairlead-hook" in (tmp_path / "client/settings.json").read_text()
    assert (folder / ".fairlead.yaml").exists()


def test_the_schema_is_written_beside_the_policy_if_asked(folder: Path, init: Callable[..., Said]) -> None:
    (folder / "sub").mkdir()
    dry = init("sub", "--schema", "--dry-run")
    assert (dry.code, dry.out.partition("\n")[0], names(folder / "sub")) == (0, SCHEMA_LINE, [])

    assert init("sub", "--schema") == Said(
        0,
        "wrote sub/.fairlead.yaml: guards, and 0 checks before the agent may stop\n"
        "  fairlead.schema.json  the schema for editors, which the policy names; commit both\n"
        f"next, in sub:\n{NEXT}",
        "",
    )
    assert names(folder / "sub") == [".fairlead.yaml", "fairlead.schema.json"]
    assert (folder / "sub/.fairlead.yaml").read_text() == f"{SCHEMA_LINE}\n{render_policy([])}"
    assert (folder / "sub/fairlead.schema.json").read_text() == schema_text()
    assert find_hints(str(folder / "sub/.fairlead.yaml")) == ()


def test_an_older_schema_is_replaced_and_another_file_is_left_alone(folder: Path, init: Callable[..., Said]) -> None:
    schema = folder / "fairlead.schema.json"
    schema.write_text('{"$id": "urn:fairlead:policy"}')
    assert init("--schema").code == 0
    assert schema.read_text() == schema_text()

    (folder / ".fairlead.yaml").unlink()
    schema.write_text("{}")
    assert init("--schema") == Said(
        1,
        "",
        "fairlead: fairlead.schema.json exists, and is no schema of Fairlead; rename it, or run init without "
        "--schema\n",
    )
    assert (names(folder), schema.read_text()) == ([schema.name], "{}")


def test_a_dry_run_prints_the_file_and_writes_nothing(folder: Path, init: Callable[..., Said]) -> None:
    said = init("--dry-run")

    assert said.code == 0
    assert said.out == render_policy([])
    assert said.err == "would write .fairlead.yaml: guards, and 0 checks before the agent may stop\n"
    assert names(folder) == []


@pytest.mark.parametrize("name", [".fairlead.yaml", ".fairlead.yml"])
def test_a_policy_that_is_there_stays(folder: Path, init: Callable[..., Said], name: str) -> None:
    (folder / name).write_text("stop: {}\n")

    for args in ((), ("--dry-run",), ("--from-conclaude",)):
        assert init(*args) == Said(
            1,
            "",
            f"fairlead: {name} exists already; edit it, or run init with --force, which keeps it as {name}.bak\n",
        )
    assert names(folder) == [name]
    assert (folder / name).read_text() == "stop: {}\n"


@pytest.mark.parametrize("name", [".fairlead.yaml", ".fairlead.yml"])
def test_with_force_it_is_kept_beside(folder: Path, init: Callable[..., Said], name: str) -> None:
    (folder / name).write_text("stop: {}\n")
    (folder / name).chmod(0o600)

    said = init("--force", "--yes")

    assert (said.code, said.err) == (0, "")
    assert f"\n  the previous file is kept as {name}.bak\n" in said.out
    assert names(folder) == [".fairlead.yaml", f"{name}.bak"]
    assert (folder / f"{name}.bak").read_text() == "stop: {}\n"
    assert stat.S_IMODE((folder / f"{name}.bak").stat().st_mode) == 0o600
    assert (folder / ".fairlead.yaml").read_text() == render_policy([])


def test_no_link_is_followed(folder: Path, init: Callable[..., Said]) -> None:
    outside = folder.parent / "outside"
    outside.write_text("theirs")
    (folder / ".fairlead.yaml").symlink_to("../outside")
    (folder / ".fairlead.yaml.bak").symlink_to("../outside")

    assert init().code == 1
    assert init("--force", "--yes").code == 0

    assert outside.read_text() == "theirs"
    assert not (folder / ".fairlead.yaml").is_symlink()
    assert (folder / ".fairlead.yaml.bak").readlink() == Path("../outside")
    assert names(folder) == [".fairlead.yaml", ".fairlead.yaml.bak"]


def test_a_link_that_leads_nowhere_is_a_policy_that_is_there(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".fairlead.yaml").symlink_to("nowhere")

    assert init().code == 1
    assert not (folder / "nowhere").exists()


@contextmanager
def as_one_who_may_not_write(folder: Path) -> Iterator[None]:
    folder.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        folder.chmod(0o755)


def test_without_permission_nothing_changes(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".fairlead.yaml").write_text("stop: {}\n")

    with as_one_who_may_not_write(folder):
        said = init("--force", "--yes")

    assert said == Said(1, "", "fairlead: .fairlead.yaml.bak: Permission denied; nothing was changed\n")
    assert names(folder) == [".fairlead.yaml"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["nowhere"], "nowhere: no such folder; make it first"),
        (["file"], "file: is a file; name its folder"),
        (["a", "b"], "init: unexpected argument 'b'; see fairlead init --help"),
        (["--forced"], "unknown option '--forced'; did you mean --force?"),
        (
            ["--from-conclaude"],
            "there is no .conclaude.yaml or .conclaude.yml in .; run init without --from-conclaude",
        ),
    ],
)
def test_bad_usage_is_told_in_one_line(folder: Path, init: Callable[..., Said], args: list[str], message: str) -> None:
    (folder / "file").write_text("")

    assert init(*args) == Said(1, "", f"fairlead: {message}\n")
    assert names(folder) == ["file"]


def test_a_folder_in_the_place_of_the_policy_is_left_alone(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".fairlead.yaml").mkdir()

    assert init("--force", "--yes") == Said(1, "", "fairlead: .fairlead.yaml: Is a directory; nothing was changed\n")


# -- from conclaude ------------------------------------------------------------------------------------

THEIRS = """\
# yaml-language-server: $schema=https://example.com/conclaude-schema.json
# Our rules. Ask Ann before you change them.
stop:
  commands:
    - run: |
        npm run lint
        npm test   # slow
      message: Fix it
      maxOutputLines: 20
      timeout: 60

preToolUse:
  preventRootAdditions: false
  uneditableFiles:
    - .conclaude.yaml   # itself
    - "src/*.gen.ts"
    - pattern: /etc/hosts
      message: Not yours
  toolUsageValidation:
    - {tool: Bash, pattern: "*", action: block, commandPattern: "git push --force*"}
subagentStop:
  commands:
    coder: [{run: ./check.sh}]
permissionRequest: {default: deny, allow: [Read]}
"""


def test_conclaude_s_file_works_unchanged_and_init_says_so(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".conclaude.yaml").write_text(THEIRS)

    assert init() == Said(
        1,
        "",
        "fairlead: .conclaude.yaml works unchanged, so nothing was written; run init with --from-conclaude to make "
        ".fairlead.yaml of it, or with --force to start from the template\n",
    )
    assert names(folder) == [".conclaude.yaml"]


def test_it_is_taken_over_with_its_comments(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".conclaude.yaml").write_text(THEIRS)

    said = init("--from-conclaude")

    assert said == Said(
        0,
        "wrote .fairlead.yaml: all of .conclaude.yaml\n"
        "  copied: stop: commands (1)\n"
        "  copied: preToolUse: preventRootAdditions, uneditableFiles (3), toolUsageValidation (1)\n"
        "  copied: subagentStop: commands (1)\n"
        "  copied: permissionRequest: default, allow (1)\n"
        "  left out: the line that names the schema of conclaude for editors\n"
        "  differs: file patterns are those of .gitignore: `.env` matches in every folder, and `*` does not match `/`\n"
        "  differs: file rules apply to shell commands too (`sed -i`, `>`, `mv`, ...), however a path is written\n"
        "  differs: these match less than before; write `**/` where there may be folders in between: src/*.gen.ts\n"
        "  differs: these are now relative to this folder; for absolute paths write two slashes: /etc/hosts\n"
        "  differs: commandPattern is matched with each command of a Bash call: `cd x && git push --force` is found\n"
        "  differs: edits of generated files are blocked; `preToolUse.preventGeneratedFileEdits: false` allows them\n"
        "  differs: a `run` of several lines is one script: `cd` and `if` work, and the first failing line ends it\n"
        "  differs: maxOutputLines keeps the first and the last lines, and reports how many were left out\n"
        "  differs: timeout: after that time the command and all processes that it started are killed\n"
        "  differs: after 5 blocks in a row the agent may stop; `stop.maxBlocks: 0` removes the limit\n"
        "  differs: subagents: a pattern matches the agent's type or its id, so `coder` works\n"
        "  differs: permissionRequest: an allowed tool is approved without asking you\n"
        "  differs: a broken file fails closed: the last good version is used, or tool calls are blocked\n"
        "  differs: the agent cannot edit the policy and the client's settings; `preToolUse.protectOwnFiles: false` "
        "allows it\n"
        "  .conclaude.yaml is no longer in force, and may be removed\n"
        f"next:\n{NEXT}",
        "",
    )
    taken = (folder / ".fairlead.yaml").read_text()
    assert taken == THEIRS.partition("\n")[2]
    assert read_policy(taken, "") == read_policy(THEIRS, "")
    assert (folder / ".conclaude.yaml").read_text() == THEIRS


def test_its_line_ends_and_marks_stay_as_they_are(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".conclaude.yml").write_bytes(b"\xef\xbb\xbf# caf\xc3\xa9\r\nstop: {}\r\n")

    assert init("--from-conclaude", "--schema").code == 0

    header = f"{SCHEMA_LINE}\r\n".encode()
    assert (folder / ".fairlead.yaml").read_bytes() == header + b"# caf\xc3\xa9\r\nstop: {}\r\n"


def test_mistakes_in_it_are_all_told_at_their_place_and_nothing_is_written(
    folder: Path, init: Callable[..., Said]
) -> None:
    (folder / ".conclaude.yaml").write_text("stop:\n  comands: []\nruless: {}\npreToolUse:\n  uneditableFiles: 3\n")

    said = init("--from-conclaude")

    assert (said.code, said.out) == (1, "")
    assert re.findall(r"^(?:fairlead: )?(\.conclaude\.yaml:\d+:\d+): ", said.err, re.MULTILINE) == [
        ".conclaude.yaml:2:3",
        ".conclaude.yaml:3:1",
        ".conclaude.yaml:5:20",
    ]
    assert names(folder) == [".conclaude.yaml"]


def test_a_link_to_a_policy_outside_is_not_taken_over(folder: Path, init: Callable[..., Said]) -> None:
    (folder.parent / "theirs.yaml").write_text("stop: {}\n")
    (folder / ".conclaude.yaml").symlink_to("../theirs.yaml")

    assert init("--from-conclaude") == Said(
        1, "", "fairlead: .conclaude.yaml is a link out of the folder; put the file itself there\n"
    )


def test_what_is_no_file_is_not_taken_over(folder: Path, init: Callable[..., Said]) -> None:
    os.mkfifo(folder / ".conclaude.yaml")

    assert init("--from-conclaude") == Said(
        1, "", "fairlead: .conclaude.yaml is no regular file, so it cannot be copied\n"
    )


def test_beginning_anew_says_that_the_old_rules_no_longer_hold(folder: Path, init: Callable[..., Said]) -> None:
    (folder / ".conclaude.yaml").write_text(THEIRS)

    said = init("--force", "--yes")

    assert said.code == 0
    assert "  .conclaude.yaml is no longer in force; its rules are not in .fairlead.yaml\n" in said.out


@pytest.mark.parametrize(
    ("pattern", "narrower"),
    [
        (".env", False),
        ("*.lock", False),
        ("src/*.py", True),
        ("src/**/*.py", False),
        ("**/*.md", False),
        ("docs/*", False),
        ("docs/**", False),
        ("src/gen*", False),
        ("src/*/x.py", True),
        ("a*b/c", True),
        ("!src/*.py", True),
    ],
)
def test_patterns_that_mean_less_than_with_conclaude_are_known(pattern: str, *, narrower: bool) -> None:
    assert is_narrower(pattern) is narrower


# -- the guide -----------------------------------------------------------------------------------------


def test_every_example_of_the_guide_is_valid() -> None:
    blocks = re.findall(r"^```yaml[^\n]*\n(.*?)^```$", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)

    for block in blocks:
        read_policy(block, "policy.md")

    assert len(blocks) == 20


def test_the_guide_has_every_section_and_every_key() -> None:
    keys = {key for definition in json.loads(schema_text())["$defs"].values() for key in definition["properties"]}
    named = set(re.findall(r"\w+", GUIDE.read_text("utf-8")))

    assert keys - named == set()
    assert {"stop", "worktreeCreate", "notifyPerCommand"} <= keys
