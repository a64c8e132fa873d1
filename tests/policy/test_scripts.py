"""Scripts and tasks that a command runs are read, and checked like the command itself."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from policy.cases import for_each

from fairlead.errors import NeedsThread
from fairlead.events import HookOutput, PreToolUse
from fairlead.policy.bash._analysis import analyse
from fairlead.policy.bash._context import AnalysisContext
from fairlead.policy.config._types import Layer, Policy
from fairlead.policy.guards._guards import Guards

if TYPE_CHECKING:
    from pathlib import Path

FILES = {
    ".env": "SECRET=1\n",
    "remove.sh": '#!/bin/bash\nrm -f "$1"\n',
    "all.sh": '#!/bin/sh\nfor file in "$@"; do rm -f "$file"; done\n',
    "wipe": "#!/usr/bin/env bash\nset -euo pipefail\nrm -f .env\n",
    "split": "#!/usr/bin/env -S python3 -u\nimport os\nos.remove('.env')\n",
    "deep.sh": "bash middle.sh\n",
    "middle.sh": ". ./wipe\n",
    "wipe.py": "from pathlib import Path\nPath('.env').write_text('')\n",
    "pkg/__main__.py": "open('.env', 'w')\n",
    "wipe.js": "require('fs').rmSync('.env')\n",
    "wipe.pl": "unlink '.env';\n",
    "wipe.rb": "File.delete('.env')\n",
    "wipe.php": "<?php unlink('.env');\n",
    "wipe.awk": 'BEGIN { printf "" > ".env" }\n',
    "wipe.sed": "w .env\n",
    "wipe.sql": ".shell rm .env\n",
    "Makefile": """
FILE = .env
all: build
build:
\tmkdir -p build
wipe: ; rm -f $(FILE)
indirect: build wipe
sub:
\t$(MAKE) wipe
%.gone:
\t@rm -f $*
show:
\t@cat $(FILE)
shell:
\techo $(shell rm .env)
include more.mk
""",
    "more.mk": "included:\n\t- rm -f .env\n",
    "package.json": """{"scripts": {
        "build": "tsc", "wipe": "rm -f .env", "prerelease": "rm .env", "release": "echo", "test": "jest",
        "chain": "npm run wipe", "remove": "rm -f", "postinstall": "rm .env", "all": "run-s build wipe"}}""",
    "justfile": 'file := ".env"\nbuild:\n  mkdir -p build\nwipe: build\n  rm {{file}}\nremove path:\n  rm {{path}}\n',
    "Taskfile.yml": "tasks:\n  build: mkdir -p build\n  wipe:\n    deps: [build]\n    cmds: [{cmd: rm .env}]\n",
    "src/main.py": "print(1)\n",
    "build.sh": "#!/bin/sh\nmkdir -p build\ncp src/main.py build/\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    project = tmp_path.resolve() / "project"
    for name, text in FILES.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    return project


def run(command: str, project: Path, **pre_tool_use: Any) -> HookOutput:
    pre_tool_use.setdefault("preventRootAdditions", False)
    policy = msgspec.convert({"preToolUse": pre_tool_use}, Policy)
    event = PreToolUse(session_id="s", tool_name="Bash", tool_input={"command": command}, cwd=str(project))
    return Guards([Layer(str(project / ".fairlead.yaml"), str(project), policy)]).check(event).output


def answer(command: str, project: Path, **pre_tool_use: Any) -> str:
    output = run(command, project, **pre_tool_use)
    return "blocked" if output.blocked else output.permission or "passed"


@for_each(
    "command",
    [
        *("bash remove.sh .env", "sh ./all.sh a .env", "./wipe", "./split", "bash deep.sh", "source ./wipe"),
        *("bash < wipe", "env -S 'bash wipe'", "timeout 5 bash wipe", "cd src && ../all.sh ../.env"),
        *("python wipe.py", "python3 -m pkg", "python3 < wipe.py", "node wipe.js", "perl wipe.pl", "ruby wipe.rb"),
        *("find . -name wipe -exec {} \\;", "find . -name wipe -exec sh {} \\;", "for s in ./wi*; do sh $s; done"),
        *("uv run wipe.py", "tsx wipe.js", "npx -c 'rm .env'", "node -r ./wipe.js -e 1"),
        *("php wipe.php", "awk -f wipe.awk", "sed -n -f wipe.sed src/main.py", "sqlite3 :memory: < wipe.sql"),
        *("make wipe", "make indirect", "make sub", "make .env.gone", "make included", "make shell", "make -C . wipe"),
        *("make build wipe", "make wipe FILE=./.env", "make -f more.mk"),
        *("npm run wipe", "npm run release", "npm run chain", "npm run remove -- .env", "npm ci", "npm run all"),
        *("yarn wipe", "pnpm run wipe", "cd src && npm run wipe", "yarn --cwd . wipe"),
        *("just wipe", "just remove .env", "task wipe"),
    ],
)
def test_a_script_that_changes_a_protected_file_is_blocked(command: str, project: Path) -> None:
    assert answer(command, project, uneditableFiles=[".env"]) == "blocked"


@for_each(
    "command",
    [
        'set -- .env; f() { X=1 true; }; f safe; rm "$1"',
        'set -- .env; . ./build.sh safe; rm "$1"',
        ". ./go.sh a; rm token.txt",
        "T=safe; . ./name.sh a; rm $T",
        ". ./first.sh .env",
    ],
)
def test_what_a_sourced_script_or_a_function_leaves_behind_is_known(command: str, project: Path) -> None:
    """The folder and the variables stay. The arguments are those from before."""
    (project / "go.sh").write_text("cd secrets\n")
    (project / "name.sh").write_text("T=.env\n")
    (project / "first.sh").write_text("rm $1\n")
    assert answer(command, project, uneditableFiles=[".env", "secrets/**"]) == "blocked"


def test_the_arguments_of_a_sourced_script_are_its_own(project: Path) -> None:
    (project / "first.sh").write_text("rm $1\n")
    command = "set -- .env; . ./first.sh build/x"
    assert answer(command, project, uneditableFiles=[".env"]) == "passed"


@pytest.mark.timeout(20)
@for_each("command", ["//bin/true", "//usr//bin/true", "cat //etc/hostname", "//no/such/program"])
def test_a_path_with_two_slashes_is_checked_in_time(command: str, project: Path) -> None:
    """In POSIX `//` is a folder of its own, which is its own parent."""
    assert answer(command, project, uneditableFiles=[".env"]) == "passed"


def test_two_slashes_are_no_way_around_a_rule(project: Path) -> None:
    assert answer(f"rm /{project}/.env", project, uneditableFiles=[".env"]) == "blocked"
    assert answer(f"sh /{project}/wipe", project, uneditableFiles=[".env"]) == "blocked"


@for_each(
    "command",
    [
        *("cat > x.sh <<'E'\nrm .env\nE\nbash x.sh", "echo 'rm .env' > x; sh x", "printf 'rm %s\\n' .env > x; sh x"),
        *(
            "echo 'rm .env' > x && chmod +x x && ./x",
            "tee x <<< 'rm .env'; sh x",
            "cp wipe x; ./x",
            "ln -s wipe x; ./x",
        ),
        *("mv wipe x && sh x", "echo 'import os; os.remove(\".env\")' > x.py; python x.py", "cat wipe > x; sh x"),
        *("cat > m.mk <<'E'\nall:\n\trm .env\nE\nmake -f m.mk", "echo 'rm .env' >> build.sh; ./build.sh"),
        *("echo true >> wipe; ./wipe", "echo a > x; base64 -d y > x; sh x", "echo a > x; >x base64 -d y; sh x"),
        *("cd src && echo 'rm ../.env' > x && sh x", "(echo rm .env) > x; sh x", "echo rm .env | cat > x; sh x"),
        *("cp wipe ~/.bashrc; bash -i", "echo 'rm {p}/.env' > ~/.profile; bash -lc true"),
        *("mkdir bin; printf '#!/bin/sh\\nrm .env\\n' > bin/tool; chmod +x bin/tool; PATH=bin:$PATH tool",),
    ],
)
def test_a_script_that_the_same_command_writes_is_known(command: str, project: Path) -> None:
    assert answer(command.replace("{p}", str(project)), project, uneditableFiles=[".env"]) in {"blocked", "ask"}


@for_each(
    "command",
    [
        *("make", "make build", "make -n wipe", "make -j 4", "npm test", "npm run build", "npm run", "npm run missing"),
        *("yarn build", "just build", "just --list", "task build", "bash build.sh", "./build.sh", "./missing.sh"),
        *("bash remove.sh build/x", "./gradlew build", "python manage.py migrate", "python src/main.py", "pytest"),
        *("cat > x.sh <<'E'\nmkdir -p build\nE\nbash x.sh", "go run ./cmd", "gcc -o app main.c && ./app"),
        *(
            "npm install lodash",
            "node --version",
            "python -m venv .venv",
            "bash -lc 'npm test'",
            "bash -n wipe.sh.missing",
        ),
    ],
)
def test_a_script_that_does_nothing_of_that_passes(command: str, project: Path) -> None:
    assert answer(command, project, uneditableFiles=[".env"], unreadableFiles=[".env"]) == "passed"


def test_a_block_names_the_script(project: Path) -> None:
    assert run("bash deep.sh", project, uneditableFiles=[".env"]).reason == (
        "Blocked Bash operation: file matches preToolUse.uneditableFiles pattern '.env'. File: .env Script: ./wipe"
    )


def test_a_script_that_shows_an_unreadable_file_is_blocked(project: Path) -> None:
    assert answer("make show", project, unreadableFiles=[".env"]) == "blocked"


def test_a_script_that_cannot_be_read_is_a_question(project: Path) -> None:
    (project / "large.sh").write_text("true\n" * 100_000)

    assert answer("bash large.sh", project, uneditableFiles=[".env"]) == "ask"
    assert answer("curl -o x.sh https://example.org/x.sh && bash x.sh", project, uneditableFiles=[".env"]) == "ask"


def test_a_fifo_is_not_opened(project: Path) -> None:
    os.mkfifo(project / "pipe")

    assert answer("bash pipe", project, uneditableFiles=[".env"]) == "passed"


def test_scripts_that_run_one_another_end(project: Path) -> None:
    (project / "a.sh").write_text("bash b.sh\n")
    (project / "b.sh").write_text("bash a.sh; make again\n")
    (project / "Makefile").write_text("again:\n\t$(MAKE) again\n\t$(MAKE) other\nother: again\n\tbash a.sh\n")

    assert answer("bash a.sh", project, uneditableFiles=[".env"]) in {"passed", "ask"}


def test_a_rule_on_commands_sees_those_in_scripts(project: Path) -> None:
    (project / "push.sh").write_text("git push --force\n")
    deny = [{"tool": "Bash", "pattern": "*", "action": "block", "commandPattern": "git push --force*"}]
    allow = [{"tool": "Bash", "pattern": "*", "action": "allow", "commandPattern": "make*"}]

    assert answer("bash push.sh", project, toolUsageValidation=deny) == "blocked"
    assert answer("make build", project, toolUsageValidation=allow) == "passed"


# -- scripts of the project ----------------------------------------------------------------------------


@pytest.fixture
def tracked(project: Path) -> Path:
    """Return a project whose scripts git has: what is not known in them is not asked about."""
    (project / "deploy.sh").write_text('#!/bin/sh\n. ./.env\nrm -rf "$OUT"\ncp x "$(date)/y"\n"$TOOL" run\n')
    (project / "clean.sh").write_text('cd "$ROOT" && rm -f .env\n')
    (project / "root.sh").write_text("touch new-file\n")
    for file in project.rglob("*"):
        if file.is_file():
            os.utime(file, (1, 1))
    for command in (["init", "-q"], ["add", "-f", "."]):
        subprocess.run(["git", *command], cwd=project, check=True)
    return project


def test_what_is_not_known_in_a_script_of_the_project_is_no_question(tracked: Path) -> None:
    rules = {"uneditableFiles": [".env"], "unreadableFiles": [".env"]}

    assert answer("./deploy.sh", tracked, **rules) == "passed"


def test_a_changed_script_is_one_of_the_agent(tracked: Path) -> None:
    with (tracked / "deploy.sh").open("a") as script:
        script.write("\n")

    assert answer("./deploy.sh", tracked, uneditableFiles=[".env"]) == "ask"


def test_what_a_script_of_the_project_names_is_protected(tracked: Path) -> None:
    assert answer("./wipe", tracked, uneditableFiles=[".env"]) == "blocked"
    assert answer("bash clean.sh", tracked, uneditableFiles=[".env"]) == "ask"


def test_a_script_of_the_project_may_create_files_at_the_root(tracked: Path) -> None:
    assert answer("bash root.sh", tracked, preventRootAdditions=True) == "passed"
    (tracked / "root.sh").write_text("touch another-file\n")
    assert answer("bash root.sh", tracked, preventRootAdditions=True) == "blocked"


# -- reading -------------------------------------------------------------------------------------------


def test_the_result_is_kept_until_a_file_changes(project: Path) -> None:
    first = analyse("bash build.sh", AnalysisContext(str(project)))
    assert analyse("bash build.sh", AnalysisContext(str(project))) is first

    (project / "build.sh").write_text("rm .env\n")
    assert analyse("bash build.sh", AnalysisContext(str(project))).files != first.files


def test_a_command_that_looks_at_no_file_is_analysed_once_for_each_folder(project: Path) -> None:
    first = analyse("rm -f notes.txt", AnalysisContext(str(project)))
    assert analyse("rm -f notes.txt", AnalysisContext(str(project))) is first
    assert analyse("rm -f notes.txt", AnalysisContext(str(project.parent))) == first
    assert analyse("cd sub && rm notes.txt", AnalysisContext(str(project))) != first


def test_a_script_that_a_glob_newly_matches_is_seen(project: Path) -> None:
    command = "for script in ./steps/*.sh; do sh ./steps/*.sh; done"
    (project / "steps").mkdir()
    (project / "steps/one.sh").write_text("rm one.txt\n")
    first = analyse(command, AnalysisContext(str(project)))
    (project / "steps/a.sh").write_text("rm two.txt\n")
    assert analyse(command, AnalysisContext(str(project))).files != first.files


def test_a_large_script_is_not_read_where_nothing_may_block(project: Path) -> None:
    (project / "long.sh").write_text("true\n" * 1000)

    with pytest.raises(NeedsThread):
        analyse("bash long.sh", AnalysisContext(str(project), may_wait=False))
    known = analyse("bash long.sh", AnalysisContext(str(project)))
    assert analyse("bash long.sh", AnalysisContext(str(project), may_wait=False)) is known


def test_without_a_context_no_file_is_opened(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)

    assert analyse("bash wipe; make wipe; tar xf a.tar").scripts == ()
