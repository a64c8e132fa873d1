"""CONTRIBUTING.md is true: its paths exist, and each recipe works in a copy of the source."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from test_docs import leads_somewhere

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
TEXT = PAGE.read_text("utf-8")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what else is on the fence, and its text."""

    language: str
    info: str
    text: str


def blocks(text: str) -> list[Block]:
    fences = re.finditer(r"^( *)```(\w+) ?([^\n]*)\n(.*?)^\1```$", text, re.DOTALL | re.MULTILINE)
    return [Block(f[2], f[3], re.sub(rf"^{f[1]}", "", f[4], flags=re.MULTILINE)) for f in fences]


# -- what the page names -------------------------------------------------------------------------------


def test_every_path_on_the_page_exists() -> None:
    """A path is written from the root of the repository, or, as in the map, from `src/fairlead`."""
    prose = re.sub(r"^ *```.*?^ *```$", "", TEXT, flags=re.DOTALL | re.MULTILINE)
    paths = {name for name in re.findall(r"`([\w./-]+)`", prose) if "/" in name or name.endswith((".py", ".md"))}

    missing = [path for path in sorted(paths) if not any((base / path).exists() for base in BASES)]

    assert len(paths) > 30
    assert missing == []


BASES = (ROOT, ROOT / "src/fairlead", ROOT / "launcher")


def test_every_link_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", TEXT)

    assert [link for link in links if not leads_somewhere(PAGE, link)] == []


def test_every_make_target_exists() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))

    assert set(re.findall(r"\bmake ([\w-]+)(?=[`\s])", TEXT)) - {"sure"} <= targets


# -- the recipes ---------------------------------------------------------------------------------------


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the source, in a folder of its own."""
    shutil.copytree(ROOT / "src", tmp_path / "src")  # with what Python has compiled: that is most of the time here
    return tmp_path


def follow(recipe: str, copy: Path) -> None:
    """Apply the blocks of a recipe: `file=` creates a file, `diff` edits one."""
    section = TEXT.partition(f"## Recipe: {recipe}\n")[2].partition("\n## ")[0]
    assert section, f"there is no recipe: {recipe}"
    for block in blocks(section):
        if block.info.startswith("file="):
            path = copy / block.info.removeprefix("file=")
            assert not path.exists(), f"{path.name} is not new"
            path.write_text(block.text, "utf-8")
        elif block.language == "diff":
            for name, edit in re.findall(r"^--- (\S+)\n((?:[ +-].*\n|\n)*?)(?=^--- |\Z)", block.text, re.MULTILINE):
                apply(edit.splitlines(), copy / name)


def apply(edit: list[str], file: Path) -> None:
    """Insert each `+` line behind the line before it. Lines between those that are shown are skipped."""
    lines = file.read_text("utf-8").splitlines()
    at = 0
    for line in edit:
        if line.startswith("+"):
            lines.insert(at, line[1:])
        else:
            assert line[1:] in lines[at:], f"{file.name} has no such line from line {at + 1} on: {line[1:]}"
            at = lines.index(line[1:], at)
        at += 1
    file.write_text("\n".join(lines) + "\n", "utf-8")


def run(copy: Path, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run Python on the copy, in a home of its own."""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(copy / "src"), "HOME": str(copy), "FAIRLEAD_NO_DAEMON": "1"}
    env["FAIRLEAD_HOME"] = str(copy / "home")
    return subprocess.run(
        [sys.executable, *words], cwd=copy, env=env, input=stdin, capture_output=True, text=True, check=False
    )


def code(copy: Path, text: str) -> str:
    """Run a program on the copy and return what it prints."""
    done = run(copy, "-c", dedent(text))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_capability_is_one_file_and_one_line(copy: Path) -> None:
    handle = """
        from fairlead.daemon._runtime import Daemon
        from fairlead.daemon.events._handler import EventHandler
        from fairlead.daemon.events._messages import HookRequest

        daemon = Daemon("0.1.0")
        handler = EventHandler(daemon.extensions, daemon.recorder)
        request = HookRequest(event="UserPromptSubmit", id="1", cwd="/")
        reply = handler.handle(request, b'{"session_id": "s1", "prompt": "hello"}')
        print(reply.stdout.decode() or "nothing")
        """
    assert code(copy, handle) == "nothing\n"

    follow("add a capability to the daemon", copy)

    answer = json.loads(code(copy, handle))["hookSpecificOutput"]
    assert answer["additionalContext"] == "The working directory is /."


def test_an_event_is_a_type_and_a_name(copy: Path) -> None:
    follow("add an event", copy)

    assert (
        code(
            copy,
            """
            from fairlead import BranchSwitched, HookEvent, parse, to_payload

            event = parse({"hook_event_name": "BranchSwitched", "session_id": "s1", "branch": "main", "new": 1})
            assert isinstance(event, BranchSwitched)
            print(HookEvent.parse("branch_switched"), event.subject, event.extra)
            """,
        )
        == "branch_switched main {'new': 1}\n"
    )


def test_a_client_is_one_file_and_one_line(copy: Path) -> None:
    (copy / ".fairlead.yaml").write_text("preToolUse: {uneditableFiles: [.env]}\n")
    payload = '{"session_id": "s1", "tool_name": "save", "tool_input": {"target": ".env"}}'
    words = ("-m", "fairlead", "PreToolUse", "--client", "minimal")
    assert "got 'minimal'" in run(copy, *words, stdin=payload).stderr

    follow("add a client", copy)

    blocked = run(copy, *words, stdin=payload)
    assert blocked.returncode == 2
    assert "uneditableFiles pattern '.env'" in blocked.stderr
    allowed = run(copy, *words, stdin=payload.replace(".env", "docs/a.md"))
    assert (allowed.returncode, allowed.stderr) == (0, "")


def test_a_guard_rule_is_a_setting_and_a_check(copy: Path) -> None:
    follow("add a guard rule", copy)
    (copy / ".fairlead.yaml").write_text("preToolUse: {deniedTools: [WebFetch]}\n")
    payload = '{"session_id": "s1", "tool_name": "WebFetch", "tool_input": {"url": "https://example.com"}}'

    blocked = run(copy, "-m", "fairlead", "PreToolUse", stdin=payload)
    allowed = run(copy, "-m", "fairlead", "PreToolUse", stdin=payload.replace("WebFetch", "WebSearch"))

    assert blocked.returncode == 2
    assert "Blocked WebFetch operation: denied by preToolUse.deniedTools[0]" in blocked.stderr
    assert (allowed.returncode, allowed.stdout) == (0, "")


def test_a_command_is_one_file_and_one_line(copy: Path) -> None:
    follow("add a command", copy)

    counted = run(copy, "-m", "fairlead", "count", "--json")
    listed = run(copy, "-m", "fairlead", "--help").stdout

    assert (counted.returncode, counted.stdout, counted.stderr) == (0, '{"events": 0}\n', "")
    assert re.search(r"^ +count +Count the recorded events\.$", listed, re.MULTILINE)
