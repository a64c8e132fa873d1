"""The architecture, checked: who may import whom, no cycles, small modules, a light cold road."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import fairlead

SRC = Path(fairlead.__file__).parent

LIGHT = {"errors", "lazy", "paths", "text", "process", "ipc"}

MAY_IMPORT = {
    "errors": set(),
    "lazy": set(),
    "paths": set(),
    "text": {"lazy"},
    "process": {"errors", "lazy"},
    "ipc": {"errors", "lazy", "paths"},
    "events": {"errors"},
    "hooks": {"errors", "events", "process"},
    "policy": LIGHT | {"events", "hooks"},
    "journal": LIGHT | {"events"},
    "notify": LIGHT | {"events"},
    "clients": LIGHT | {"events"},
    "decide": {"lazy", "events", "hooks", "policy", "journal"},
    "execute": LIGHT | {"events", "hooks", "policy", "decide", "journal", "notify", "clients"},
    "act": {"execute"},
    "mail": LIGHT | {"events"},
    "store": LIGHT | {"journal", "mail"},
    "sessions": LIGHT | {"events", "journal"},
    "daemon": LIGHT
    | {"events", "hooks", "policy", "decide", "journal", "notify", "clients", "execute", "store", "sessions", "mail"},
    "tui": LIGHT | {"sessions"},
    "doctor": LIGHT | {"events", "policy", "journal", "clients", "store", "daemon", "testing"},
    "sdk": {"errors", "events", "hooks", "clients"},
    "testing": {"errors", "events", "hooks"},
    "cli": LIGHT
    | {"events", "hooks", "policy", "decide", "journal", "notify", "clients", "execute", "daemon", "doctor"}
    | {"mail", "sessions", "store", "testing", "tui"},
    "__main__": {"cli"},
    "__init__": {"errors", "events", "hooks"},
}
"""Package → what it may import. The same table stands in docs/architecture.md."""

NEVER_ON_THE_COLD_ROAD = {
    "asyncio",
    "alembic",
    "claude_agent_sdk",
    "click",
    "dataclasses",
    "email",
    "http",
    "importlib.metadata",
    "json",
    "logging",
    "pathlib",
    "socket",
    "sqlalchemy",
    "starlette",
    "subprocess",
    "uvicorn",
    "yaml",
}


def modules() -> list[Path]:
    return sorted(SRC.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(("fairlead", *parts)).removesuffix(".__init__")


def imports(path: Path, *, runtime_only: bool = False) -> set[str]:
    """The modules of ours that a file imports, wherever in it; names are resolved to modules."""
    found: set[str] = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(inner) for node in ast.walk(tree) if runtime_only and for_types(node) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("fairlead")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairlead"):
            base = node.module or ""
            found |= {f"{base}.{a.name}" if is_module(f"{base}.{a.name}") else base for a in node.names}
    return found


def for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def is_module(name: str) -> bool:
    path = SRC.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_package_imports_only_what_the_table_allows(path: Path) -> None:
    own = package_of(path)
    for name in imports(path):
        target = name.split(".")[1] if "." in name else "__init__"
        allowed = MAY_IMPORT[own] | {own}
        if target == "__init__":
            assert own in {"cli", "daemon"}, f"{name_of(path)} imports the top of the package"  # for the version
        else:
            assert target in allowed, f"{name_of(path)} imports {name}"


def test_every_package_is_in_the_table() -> None:
    assert {package_of(path) for path in modules()} == set(MAY_IMPORT)


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {name_of(path): imports(path, runtime_only=True) - {"fairlead"} for path in modules()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name not in done:
            for other in graph.get(name, set()):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_has_one_subject(path: Path) -> None:
    """Over 350 lines a file has two subjects; over 50 a function has."""
    assert path.read_text(encoding="utf-8").count("\n") <= 350
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno <= 50, f"{node.name} is too long"


@pytest.mark.parametrize("path", modules(), ids=name_of)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def loaded_by(program: str, *args: str, stdin: str = "") -> set[str]:
    """The modules that a fresh interpreter has loaded at the end of a program."""
    code = f"{program}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *args], input=stdin, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_importing_the_package_loads_nothing_else() -> None:
    bare = loaded_by("pass")
    assert loaded_by("import fairlead") - bare == {"fairlead"}


def test_the_cold_road_imports_nothing_heavy(tmp_path: Path) -> None:
    """One event, one plain hook, answered by the command line."""
    hooks = tmp_path / "guards.py"
    hooks.write_text(
        "from fairlead import HookManager, PreToolUse\n"
        "hooks = HookManager()\n"
        "@hooks.on(PreToolUse)\n"
        "def look(event): return None\n"
    )
    payload = '{"session_id": "s", "tool_name": "Bash", "tool_input": {}}'
    road = "import sys; from fairlead.cli.main import main; main(['PreToolUse', '--hooks', sys.argv[1]])"
    loaded = loaded_by(road, str(hooks), stdin=payload)
    assert "guards" in loaded
    assert {name for name in NEVER_ON_THE_COLD_ROAD if name in loaded} == set()


def test_the_status_line_imports_no_click() -> None:
    """It is printed several times a second at worst."""
    loaded = loaded_by("from fairlead.cli.main import main; main(['StatusLine'])", stdin="{}")
    assert "fairlead.cli.status_line" in loaded
    assert {name for name in NEVER_ON_THE_COLD_ROAD if name in loaded} == set()


def test_a_command_imports_its_own_module_and_no_other() -> None:
    """Also not the subcommands of another group, the screen, or what only the completion of a shell needs."""
    code = "import sys; from fairlead.cli.main import main; main(['inbox', '--limit', 'x'])"
    loaded = loaded_by(code)
    commands = {name for name in loaded if name.startswith("fairlead.cli.") and ".support" not in name}
    assert commands == {f"fairlead.cli.{name}" for name in ("main", "app", "commands", "mail", "mail.inbox")}
    assert not {"click.shell_completion", "textual", "rich", "sqlalchemy", "yaml", "fairlead.daemon.command"} & loaded


def test_loading_a_command_imports_nothing_heavy() -> None:
    """Not even to show its help. What needs more than Click and msgspec is imported when the command runs."""
    code = (
        "from fairlead.cli.commands import SECTIONS\n"
        "from fairlead.cli.support.command import load\n"
        "entries = [entry for section in SECTIONS for entry in section.entries]\n"
        "for entry in (*entries, *(below for entry in entries for below in entry.subcommands)): load(entry)\n"
    )
    loaded = loaded_by(code)
    heavy = {"alembic", "asyncio", "rich", "sqlalchemy", "starlette", "textual", "tree_sitter", "typing_extensions"}
    assert heavy & loaded == set()


def test_no_command_depends_on_the_global_state_of_click() -> None:
    """So that a daemon can run the commands of several callers."""
    for path in (SRC / "cli").rglob("*.py"):
        names = {getattr(node, "attr", "") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))}
        assert not names & {"get_current_context", "pass_context", "pass_obj", "echo"}, path
