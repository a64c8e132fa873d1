"""The documents are complete, up to date, and true: what they show as run is run here."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import scratch_home
from e2e import sealed
from e2e.conftest import client  # noqa: F401 - a fixture
from e2e.model import bash
from test_architecture import LIGHT, MAY_IMPORT

import fairlead
import fairlead.errors
import fairlead.sdk
import fairlead.testing
from fairlead import HookEvent
from fairlead.cli.commands import SECTIONS
from fairlead.cli.event import HELP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src/fairlead"
REFERENCE = ROOT / "docs/reference"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what else stands on the fence, its text, and its line in the page."""

    language: str
    info: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    fences = re.finditer(r"^```(\w+) ?([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    return [Block(f[1], f[2], f[3], text[: f.start()].count("\n") + 2) for f in fences]


# -- up to date and complete ---------------------------------------------------------------------------


def test_what_is_generated_is_up_to_date(home: DaemonHome) -> None:
    done = run([sys.executable, str(ROOT / "docs/generate.py"), "--check"], ROOT, home)

    assert (done.returncode, done.stdout) == (0, "")


def test_every_event_is_documented_with_all_its_fields() -> None:
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", read("events.md"), re.DOTALL | re.MULTILINE))
    common = read("events.md").partition("## Fields of every event")[2].partition("\n## ")[0]

    for event in HookEvent:
        assert f"| `{event.snake}` |" in read("events.md")
        for field in event.type.__struct_fields__:
            assert f"| `{field}` |" in sections[event.value] + common, (event, field)


def test_every_public_name_is_documented() -> None:
    api = read("api.md")
    packages = (fairlead, fairlead.testing, fairlead.sdk)

    missing = [name for package in packages for name in package.__all__ if not re.search(rf"\b{name}\b", api)]

    assert missing == []


def test_every_error_is_documented() -> None:
    missing = [name for name in fairlead.errors.__all__ if f"| `{name}` |" not in read("errors.md")]

    assert missing == []


def test_every_command_and_option_is_documented() -> None:
    page = read("cli.md")
    entries = [entry for section in SECTIONS for entry in section.entries]
    commands = [*(entry.name for entry in entries), *(f"{e.name} {s.name}" for e in entries for s in e.subcommands)]

    assert HELP in page
    assert {"--hooks", "--rules", "--timeout", "--client", "--version", "--help"} <= set(re.findall(r"--\w+", page))
    assert [name for name in commands if f"\n## fairlead {name}\n" not in page] == []


def test_every_message_of_an_error_is_explained() -> None:
    """In whatever words a mistake is told, a person can look them up."""
    explained = " ".join((ROOT / "docs/troubleshooting.md").read_text("utf-8").split())

    missing = [f"{place}: {part}" for place, message in messages() for part in message if part not in explained]

    assert missing == []


def messages() -> list[tuple[str, list[str]]]:
    """The constant parts of every text that is raised or reported as an error."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        if file.parent.name == "structs":  # raises what msgspec raises, for programmers
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in TELLS:
                found += [(f"{file.name}:{node.lineno}", parts(argument)) for argument in node.args]
    return found


TELLS = {*fairlead.errors.__all__, "Fault", "Problem", "report", "remark", "deny", "TypeError"}


def parts(text: ast.expr) -> list[str]:
    """What is constant in a text, where it is long enough to be looked for."""
    nodes = text.values if isinstance(text, ast.JoinedStr) else [text]
    constants = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return [constant.strip(" :;,'`()") for constant in constants if len(constant.strip(" :;,'`()")) >= 12]


def test_the_table_of_packages_is_the_one_that_is_checked() -> None:
    page = (ROOT / "docs/architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", page, re.MULTILINE)

    table = {package: packages_in(imports) for package, imports in rows}

    assert table == {name: may for name, may in MAY_IMPORT.items() if not name.startswith("__")}


def packages_in(cell: str) -> set[str]:
    named = set(re.findall(r"`(\w+)`", cell))
    return named | LIGHT if cell.startswith("light") else named


def read(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


# -- links ---------------------------------------------------------------------------------------------


@each_page
def test_every_link_leads_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"", text)

    broken = [link for link in (a or b for a, b in links) if not leads_somewhere(page, link)]

    assert broken == []


def leads_somewhere(page: Path, link: str) -> bool:
    if link.startswith("https://"):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path) if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@cache
def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as they are made where Markdown is shown."""
    headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, left = set[Path](), [ROOT / "README.md"]
    while left:
        page = left.pop().resolve()
        if page not in reached and page.suffix == ".md" and page.exists():
            reached.add(page)
            left += [page.parent / link for link in re.findall(r"\]\(([^)#\s:]+)", page.read_text("utf-8"))]

    assert [page for page in PAGES if page not in reached] == []


def test_the_index_lists_every_page() -> None:
    listed = set(re.findall(r"\]\(([^)#\s:]+)\)", (ROOT / "docs/index.md").read_text("utf-8")))

    pages = {os.path.relpath(page, ROOT / "docs") for page in [*PAGES, ROOT / "CONTRIBUTING.md"]}

    assert pages - {"index.md"} <= listed


def test_no_page_tells_of_the_machine_it_was_written_on() -> None:
    for page in [*PAGES, ROOT / "docs/images/demo.svg"]:
        assert not re.search(r"/work\b|/root\b|/tmp/", page.read_text("utf-8")), page


# -- code ----------------------------------------------------------------------------------------------


@each_page
def test_every_python_block_compiles_and_every_json_block_parses(page: Path) -> None:
    for block in blocks(page):
        if block.language == "python":
            compile(block.text, f"{page.name}:{block.line}", "exec")
        elif block.language == "json":
            json.loads(block.text)


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home of its own: whoever runs these tests may have a daemon, settings and a policy."""
    with scratch_home() as made:
        yield made


@each_page
def test_what_a_page_shows_is_what_happens(page: Path, tmp_path: Path, home: DaemonHome) -> None:
    """Plays a page from top to bottom in a folder and a home of its own.

    ```LANGUAGE file=NAME   the block is that file
    ```python test          the block is run; a block `text output` after it is what it prints
    ```console              lines that begin with `$` are run; the others are what they print
    """
    printed = ""
    for block in blocks(page):
        if block.info.startswith("file="):
            (tmp_path / block.info.removeprefix("file=")).write_text(block.text)
        elif (block.language, block.info) == ("python", "test"):
            printed = succeeding([sys.executable, "-W", "error", "-c", block.text], tmp_path, home)
        elif (block.language, block.info) == ("text", "output"):
            assert_printed(printed, block.text)
        elif block.language == "console":
            lines = block.text.splitlines(keepends=True)
            commands = "".join(line.removeprefix("$ ") for line in lines if line.startswith("$ "))
            shown = "".join(line for line in lines if not line.startswith("$ "))
            assert_printed(run(["/bin/sh", "-c", commands], tmp_path, home).stdout, shown)
        else:
            assert not block.info, f"{page.name}:{block.line}: {block.info!r} means nothing"


def succeeding(command: list[str], folder: Path, home: DaemonHome) -> str:
    done = run(command, folder, home)
    assert done.returncode == 0, done.stdout
    return done.stdout


def run(command: list[str], folder: Path, home: DaemonHome) -> subprocess.CompletedProcess[str]:
    """Run as a reader would, with the installed commands on the PATH; both outputs in the order they came."""
    not_the_readers = ("PYTEST", "FAIRLEAD", "CLAUDE", "XDG_", "TMUX")
    env = {key: value for key, value in os.environ.items() if not key.startswith(not_the_readers)}
    env |= home.environment()
    env["PATH"] = f"{Path(sys.executable).parent}:{env['PATH']}"
    env["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the plugins of this project are not the reader's
    env["PYTHONUNBUFFERED"] = "1"  # so that stdout and stderr come in the order of a terminal
    return subprocess.run(
        command, cwd=folder, env=env, text=True, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def assert_printed(printed: str, shown: str) -> None:
    """Three dots stand for anything within a line."""
    pattern = ".*".join(re.escape(part) for part in shown.split("..."))
    if not re.fullmatch(pattern, printed):
        assert printed == shown


# -- shipping ------------------------------------------------------------------------------------------


def test_the_real_client_honours_the_settings_that_the_page_shows(client: Path, tmp_path: Path) -> None:  # noqa: F811
    guards = {block.info: block.text for block in blocks(ROOT / "README.md")}["file=guards.py"]
    (tmp_path / "guards.py").write_text(guards)
    page = ROOT / "docs/howto/claude-code.md"
    shown = next(block.text for block in blocks(page) if block.language == "json")
    settings = shown.replace("/path/to/guards.py", str(tmp_path / "guards.py"))
    settings = settings.replace("/path/to/fairlead", str(Path(sys.executable).with_name("fairlead")))

    done = sealed.run(
        sealed.claude(client, "Go."),
        folder=tmp_path,
        script=[[bash("git push -f")], "I may not."],
        settings=json.loads(settings),
    )

    assert (done.exit_code, done.stdout, done.asked) == (0, "I may not.\n", ["main", "main"])
    assert done.requests[-1].results == ["PreToolUse:Bash hook error: Do not force a push. Ask the user to do it."]
