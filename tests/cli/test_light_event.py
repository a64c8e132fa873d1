"""A tool call that the launcher passes on without a daemon, decided without msgspec: the answer is the same."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from time import sleep, time_ns
from typing import TYPE_CHECKING, Any

import pytest
from policy.corpus.lines import FOLDER

import fairlead
from fairlead.journal import read_spool
from fairlead.policy.config._disk_cache import MIN_AGE

if TYPE_CHECKING:
    from collections.abc import Iterator

LAUNCHED = "from fairlead.cli.main import launched; launched()"
MAIN = "import sys; from fairlead.cli.main import main; sys.exit(main())"
NOT_LIGHT = "fairlead: not light"

POLICY = """\
preToolUse:
  uneditableFiles: ["*.lock", {pattern: migrations/, message: "Write a new one: ü"}, {pattern: docs/, action: warn}]
  unreadableFiles: [".env*", "!.env.example"]
  preventAdditions: [dist/]
  toolUsageValidation:
    - {tool: Bash, commandPattern: "git push*", action: block, message: "No pushing."}
"""

DECIDE_MANY = """
import json, os, sys
if sys.argv[1] == "light":
    from fairlead.lazy import use_light_structs
    use_light_structs()
from fairlead.clients import client_named
from fairlead.decide import decide, find_policy, settle
from fairlead.policy import Guards
policy = find_policy(os.getcwd())
guards = Guards(policy.layers)
client = client_named("claude")
for line in sys.stdin.buffer:
    event = client.parse(line, "PreToolUse")
    output = settle(event, decide(event, policy, guards)).output
    print(json.dumps([client.to_json(event, output), output.reason]))
assert ("msgspec" in sys.modules) == (sys.argv[1] != "light")
"""


class Project:
    """A folder with a policy, and a home of its own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder = folder / "home", folder / "project"
        self.home.mkdir()
        self.folder.mkdir()
        self.policy = self.folder / ".fairlead.yaml"
        self.policy.write_text(POLICY)
        os.utime(self.policy, (1, 1))
        self.spool = self.home / ".local/state/fairlead/spool"

    def payload(self, tool: str = "Edit", **rest: Any) -> dict[str, Any]:
        """Return a payload as the client sends it."""
        file = {"file_path": str(self.folder / "src/a.py"), "old_string": "a", "new_string": "b"}
        return {
            "session_id": "s1",
            "transcript_path": str(self.home / "t.jsonl"),
            "cwd": str(self.folder),
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": file,
            "tool_use_id": "toolu_1",
            **rest,
        }

    def run(self, program: str, payload: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the project."""
        environment = {"HOME": str(self.home), "PATH": os.environ["PATH"], "FAIRLEAD_NO_DAEMON": "1"}
        return subprocess.run(
            [sys.executable, "-E", "-P", "-c", program, *words],
            input=payload,
            capture_output=True,
            cwd=self.folder,
            env={**environment, "XDG_RUNTIME_DIR": str(self.home)},
            check=False,
        )

    def decide(self, program: str, payload: bytes, name: str = "0000000000000001-1") -> tuple[int, bytes, bytes]:
        """Decide a tool call, and return the exit code and what was printed."""
        done = self.run(program, payload, "PreToolUse", "--launched", f"{name},1,1")
        return done.returncode, done.stdout, done.stderr

    def records(self) -> dict[str, dict[str, Any]]:
        """Return what the processes have left for the daemon."""
        found: dict[str, dict[str, Any]] = {}
        for name, _ in read_spool(str(self.spool)):
            record = json.loads(self.spool.joinpath(name).read_bytes())
            found[name] = {key: value for key, value in record.items() if key not in {"id", "at", "seconds"}}
        return found


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose policy is cached, and whose session has begun."""
    made = Project(tmp_path)
    while time_ns() - made.policy.stat().st_ctime_ns <= MIN_AGE:  # a younger file is not cached
        sleep(0.01)
    assert made.decide(MAIN, json.dumps(made.payload()).encode())[0] == 0
    return made


def light_only(program: str) -> str:
    """Return a program that fails instead of starting the one with msgspec."""
    return f"import os\nos.execv = lambda *_: (_ for _ in ()).throw(SystemExit({NOT_LIGHT!r}))\n{program}"


# -- the same answer -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "tool_input"),
    [
        ("Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "poetry.lock", "old_string": "a", "new_string": "b"}),
        ("Write", {"file_path": "migrations/1.sql", "content": "x" * 40_000}),
        ("Write", {"file_path": "docs/ä.md", "content": "\u2028 \x7f \n\t"}),
        ("Write", {"file_path": "new.txt", "content": ""}),
        ("Read", {"file_path": ".env"}),
        ("Bash", {"command": "git status && ls -la | head -5"}),
        ("Bash", {"command": "git push --force"}),
        ("Bash", {"command": 'cat "$FILE"'}),
        ("Grep", {"pattern": "x", "path": "."}),
        ("Agent", {"subagent_type": "coder", "prompt": "go"}),
        ("mcp__files__write", {"path": "a.lock", "depth": 1.5e3}),
        ("NewTool", {}),
    ],
)
def test_a_tool_call_is_decided_and_recorded_alike_without_msgspec(
    project: Project, tool: str, tool_input: dict[str, Any]
) -> None:
    payload = json.dumps(project.payload(tool, tool_input=tool_input), ensure_ascii=False).encode()
    full = project.decide(MAIN, payload, "0000000000000002-1")
    assert project.decide(light_only(LAUNCHED), payload, "0000000000000003-1") == full
    records = project.records()
    assert records["0000000000000003-1.json"] == records["0000000000000002-1.json"]


def test_all_calls_of_the_corpus_are_decided_alike_without_msgspec(project: Project) -> None:
    lines = [json.dumps(project.payload(tool, tool_input=given)) for tool, given in _corpus()]
    stdin = "\n".join(lines).encode()
    full, light = (project.run(DECIDE_MANY, stdin, mode) for mode in ("full", "light"))
    assert (full.returncode, full.stderr) == (0, b"")
    assert (light.returncode, light.stderr.decode()) == (0, "")
    answers = list(zip(lines, full.stdout.splitlines(), light.stdout.splitlines(), strict=True))
    assert [(line, one, other) for line, one, other in answers if one != other] == []
    assert len(answers) > 300


def _corpus() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every eighth call of the corpus, as it is written there."""
    for file in sorted(FOLDER.glob("*.txt")):
        texts = [line[6:].strip() for line in file.read_text().splitlines() if line[:4] in {"pass", "held", "ask "}]
        for text in texts[::4]:
            if text.startswith('{"tool"'):
                call = json.loads(text)
                yield call["tool"], {key: value for key, value in call.items() if key != "tool"}
            else:
                yield "Bash", {"command": text}


# -- what is left to a process with msgspec ------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"tool_input": "text"},
        {"tool_input": None},
        {"session_id": 5},
        {"hook_event_name": "Stop"},
        {"hook_event_name": None},
        {"subagent_type": "coder"},
        {"tool_name": ""},
        {"cwd": "/\ud800"},
        {"effort": "high", "unknown": [1, {"a": None}]},
        {"effort": "more than a pipe holds", "text": "x" * 300_000},
    ],
    ids="-".join,
)
def test_an_unusual_payload_gets_the_answer_of_the_other_way(project: Project, change: dict[str, Any]) -> None:
    payload = json.dumps(project.payload() | change).encode()
    assert project.decide(LAUNCHED, payload) == project.decide(MAIN, payload)


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 5000])
def test_what_is_no_payload_gets_the_answer_of_the_other_way(project: Project, payload: bytes) -> None:
    found = project.decide(LAUNCHED, payload)
    assert found == project.decide(MAIN, payload)
    assert found[0] == 2


def test_unknown_fields_and_nulls_need_no_msgspec(project: Project) -> None:
    payload = json.dumps(project.payload(brand_new={"a": 1}, agent_id=None)).encode()
    assert project.decide(light_only(LAUNCHED), payload) == (0, b"", b"")


def test_a_changed_and_a_broken_policy_are_read_with_msgspec(project: Project) -> None:
    edit = json.dumps(project.payload()).encode()
    project.policy.write_text("preToolUse:\n  uneditableFiles: ['*.py']\n")
    code, stdout, stderr = project.decide(LAUNCHED, edit)
    assert (code, json.loads(stdout)["hookSpecificOutput"]["permissionDecision"]) == (2, "deny")
    assert b"*.py" in stderr
    project.policy.write_text("preToolUse: [")
    assert project.decide(LAUNCHED, edit) == project.decide(MAIN, edit)


def test_notifications_are_sent_with_msgspec(project: Project) -> None:
    project.policy.write_text("notifications: {enabled: true, hooks: ['*'], channels: []}\n")
    edit = json.dumps(project.payload(session_id="s2")).encode()
    assert project.decide(LAUNCHED, edit)[0] == 0
    assert NOT_LIGHT.encode() in project.decide(light_only(LAUNCHED), edit)[2]


ALLOWED = {b"__future__", b"gc", b"errno", b"binascii", b"itertools", b"_json"}
"""Modules of the standard library that an edit may load beside those that Python starts with."""


def test_the_hooks_of_a_policy_are_asked_with_msgspec(project: Project) -> None:
    project.folder.joinpath("guards.py").write_text("from fairlead import HookManager\nhooks = HookManager()\n")
    project.policy.write_text("hooks: [guards.py]\n")
    edit = json.dumps(project.payload(session_id="s2")).encode()
    found = project.decide(LAUNCHED, edit)
    assert found == project.decide(MAIN, edit)
    assert (found[0], b"guards.py" in found[2]) == (2, True), "it is not trusted"


# -- what is imported ----------------------------------------------------------------------------------

SHOW = """
import os, sys
loaded = lambda: [name for name, module in sys.modules.items() if getattr(module, "__spec__", None)]
os._exit = lambda code: print(*loaded()) or sys.exit(code)
"""
SHOW_LOADERS = """
import os, sys
kind = lambda module: type(getattr(module.__spec__, "loader", None)).__name__
os._exit = lambda code: print(*(f"{name}={kind(module)}" for name, module in sys.modules.items())) or sys.exit(code)
"""


def test_an_edit_imports_few_modules(project: Project) -> None:
    """Beside those of Fairlead, a few that are built in: no `re`, no `enum`, no `collections`."""
    edit = json.dumps(project.payload()).encode()
    loaded = set(project.run(light_only(SHOW + LAUNCHED), edit, "PreToolUse", "--launched", "1-1,1,1").stdout.split())
    bare = set(project.run("import sys; print(*sys.modules)", b"").stdout.split())
    own = {name for name in loaded if name.partition(b".")[0] == b"fairlead"}
    assert loaded - bare - own <= ALLOWED
    assert len(own) <= 95, sorted(own)
    for part in (b"bash", b"git", b"commands"):
        assert not [name for name in own if name.startswith(b"fairlead.policy.%s." % part)]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package that the processes of the project import, with its source."""
    folder = tmp_path / "copied"
    shutil.copytree(Path(fairlead.__file__).parent, folder / "fairlead", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def loaders(project: Project, copied: Path, program: str = LAUNCHED) -> dict[str, str]:
    """Decide an edit, and return how each module of the copy was imported."""
    edit = json.dumps(project.payload()).encode()
    path = f"import sys\nsys.path.insert(0, {str(copied)!r})\n"
    words = project.run(light_only(path + SHOW_LOADERS + program), edit, "PreToolUse", "--launched", "1-1,1,1").stdout
    pairs = (word.decode().partition("=") for word in words.split())
    return {name: loader for name, _, loader in pairs if name.startswith("fairlead.")}


def test_the_second_process_imports_all_modules_from_one_file(project: Project, copied: Path) -> None:
    assert "CachedModules" not in loaders(project, copied).values()
    assert copied.joinpath(f"fairlead/__pycache__/light.{sys.implementation.cache_tag}.bin").exists()
    found = loaders(project, copied)
    assert imported_as_usual(found) == FIRST_MODULES


FIRST_MODULES = {"fairlead.cli", "fairlead.cli.main", "fairlead.errors", "fairlead.lazy"}
"""Those that read the file."""


def imported_as_usual(found: dict[str, str]) -> set[str]:
    return {name for name, loader in found.items() if loader != "CachedModules"}


def test_a_changed_module_is_imported_anew(project: Project, copied: Path) -> None:
    loaders(project, copied)
    changed = copied / "fairlead/decide/_decision.py"
    status = changed.stat()
    changed.write_bytes(changed.read_bytes())
    os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert loaders(project, copied)["fairlead.decide._decision"] == "SourceFileLoader", "only its change time differs"
    assert loaders(project, copied)["fairlead.decide._decision"] == "CachedModules"


@pytest.mark.parametrize("damage", [b"", b"\0" * 7, b"\0" * 8 + b"N", b"\xff" * 20], ids=repr)
def test_a_damaged_file_of_modules_is_replaced(project: Project, copied: Path, damage: bytes) -> None:
    loaders(project, copied)
    file = copied / f"fairlead/__pycache__/light.{sys.implementation.cache_tag}.bin"
    file.write_bytes(damage)
    assert "CachedModules" not in loaders(project, copied).values()
    assert "CachedModules" in loaders(project, copied).values()


@pytest.mark.parametrize("part", ["index", "code"])
def test_one_wrong_byte_in_the_file_of_modules_is_noticed(project: Project, copied: Path, part: str) -> None:
    """Its own process would fail with an error of marshal, or run something else; at a tool call that denies."""
    loaders(project, copied)
    file = copied / f"fairlead/__pycache__/light.{sys.implementation.cache_tag}.bin"
    data = bytearray(file.read_bytes())
    data[40 if part == "index" else -len(data) // 3] ^= 0x55
    file.write_bytes(data)
    usual = imported_as_usual(loaders(project, copied))
    assert len(usual - FIRST_MODULES) == 1 if part == "code" else len(usual) > 50, "the damaged one, or all"
    assert imported_as_usual(loaders(project, copied)) == FIRST_MODULES, "the file is whole again"


SHOW_MODULES = """\
import atexit, os
def show(code):
    for name, module in sorted(sys.modules.items()):
        if name.startswith("fairlead.") and module.__loader__.__class__.__name__ == "CachedModules":
            path = getattr(module, "__path__", None)
            print(name, module.__name__, module.__file__, module.__package__, path, module.__spec__, flush=True)
            parent, _, last = name.rpartition(".")
            assert getattr(sys.modules[parent], last) is module, name
    end(code)
end, os._exit = os._exit, show
"""


def modules_of(project: Project, copied: Path, tool: str = "Edit", **fields: Any) -> list[str]:
    """Decide a call, and return the modules that were imported from the file, with their attributes."""
    payload = json.dumps({**project.payload(tool), **fields}).encode()
    path = f"import sys\nsys.path.insert(0, {str(copied)!r})\n"
    done = project.run(light_only(path + SHOW_MODULES + LAUNCHED), payload, "PreToolUse", "--launched", "1-1,1,1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.decode().splitlines()
    return [re.sub(r" at 0x[0-9a-f]+", "", line) for line in lines if line.startswith("fairlead.")]


def test_the_fifth_process_runs_the_usual_modules_at_once(project: Project, copied: Path) -> None:
    """They have the attributes that `import` gives them."""
    assert modules_of(project, copied) == []
    imported = modules_of(project, copied)
    for _ in range(2):
        assert modules_of(project, copied) == imported
    file = copied / f"fairlead/__pycache__/light.{sys.implementation.cache_tag}.bin"
    before = file.stat().st_ino
    assert modules_of(project, copied) == imported
    assert file.stat().st_ino == before, "the file is complete"


UNUSUAL = """\
from fairlead.lazy import CachedModules
load = CachedModules.load
CachedModules.load = lambda modules: (load(modules), __import__("fairlead.durations"))
"""


@pytest.mark.parametrize("unusual", range(3))
def test_what_one_of_the_first_processes_needs_alone_is_not_usual(project: Project, copied: Path, unusual: int) -> None:
    loaders(project, copied, UNUSUAL + LAUNCHED)
    for number in range(3):
        found = loaders(project, copied, UNUSUAL + LAUNCHED if number == unusual else LAUNCHED)
        assert ("fairlead.durations" in found) is (number == unusual)
    assert "fairlead.durations" not in loaders(project, copied)


def test_a_module_that_is_gone_leaves_the_file(project: Project, copied: Path) -> None:
    """After an update of the same version, each event would look for it again."""
    file = copied / f"fairlead/__pycache__/light.{sys.implementation.cache_tag}.bin"
    gone, user = copied / "fairlead/decide/_gone.py", copied / "fairlead/decide/_decision.py"
    gone.write_text("")
    text = user.read_text()
    user.write_text(f"{text}\nimport fairlead.decide._gone\n")
    for _ in range(3):
        modules_of(project, copied)
    assert b"fairlead.decide._gone" in file.read_bytes()
    gone.unlink()
    user.write_text(text)
    for _ in range(5):
        modules_of(project, copied)
    assert b"decide._gone" not in file.read_bytes()
    before = file.stat().st_ino
    assert imported_as_usual(loaders(project, copied)) == FIRST_MODULES
    assert file.stat().st_ino == before, "the file is complete"


def test_modules_for_shell_commands_are_not_run_for_an_edit(project: Project, copied: Path) -> None:
    for _ in range(3):
        modules_of(project, copied, "Bash", tool_input={"command": "ls src"})
    for _ in range(3):
        modules_of(project, copied)
    names = {line.partition(" ")[0] for line in modules_of(project, copied)}
    assert "fairlead.decide._decision" in names
    assert not [name for name in names if name.startswith("fairlead.policy.bash")]


def test_a_changed_module_among_the_usual_ones_is_imported_anew(project: Project, copied: Path) -> None:
    for _ in range(5):
        loaders(project, copied)
    changed = copied / "fairlead/decide/_decision.py"
    changed.write_text(changed.read_text() + "\nraise ImportError('as it is now')\n")
    edit = json.dumps(project.payload()).encode()
    path = f"import sys\nsys.path.insert(0, {str(copied)!r})\n"
    done = project.run(path + LAUNCHED, edit, "PreToolUse", "--launched", "1-1,1,1")
    assert b"as it is now" in done.stderr
    assert done.returncode == 2
