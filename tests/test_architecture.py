"""The architecture: allowed imports, public names, no cycles, the size of modules, the English of docstrings.

Each test lists all violations at once.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import fairlead
from fairlead.cli.commands import SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.cli.commands import CommandEntry

SRC = Path(fairlead.__file__).parent

LIGHT = {"errors", "lazy", "structs", "paths", "files", "durations", "text", "process", "ipc"}

MAY_IMPORT = {
    "errors": set(),
    "lazy": set(),
    "paths": set(),
    "files": {"lazy"},
    "durations": set(),
    "structs": {"lazy"},
    "text": {"lazy"},
    "process": {"errors", "lazy", "structs"},
    "ipc": {"errors", "lazy", "paths"},
    "events": {"errors", "lazy", "structs"},
    "hooks": {"errors", "lazy", "events", "process", "clients"},
    "policy": LIGHT | {"events", "hooks", "clients"},
    "journal": LIGHT | {"events"},
    "notify": LIGHT | {"events"},
    "clients": LIGHT | {"events"},
    "decide": LIGHT | {"events", "hooks", "policy", "journal", "notify", "clients"},
    "execute": LIGHT | {"events", "hooks", "policy", "decide", "journal", "notify", "clients"},
    "act": {"execute"},
    "mail": LIGHT | {"events", "clients"},
    "leases": LIGHT | {"policy"},
    "team": {"errors", "lazy", "paths", "files"},
    "store": LIGHT | {"journal", "mail", "sessions"},
    "sessions": LIGHT | {"events", "journal", "clients"},
    "daemon": LIGHT
    | {"events", "hooks", "policy", "decide", "journal", "notify", "clients", "execute", "store", "sessions", "mail"}
    | {"leases", "team"},
    "tui": LIGHT | {"sessions", "clients"},
    "doctor": LIGHT | {"events", "policy", "journal", "clients", "store", "daemon", "testing"},
    "sdk": {"errors", "events", "hooks", "clients"},
    "testing": {"errors", "events", "hooks"},
    "cli": LIGHT
    | {"events", "hooks", "policy", "decide", "journal", "notify", "clients", "execute", "daemon", "doctor"}
    | {"mail", "sessions", "store", "team", "testing", "tui"},
    "__main__": {"cli"},
    "__init__": {"errors", "events", "hooks"},
}
"""Package → what it may import. The same table stands in docs/architecture.md."""

HEAVY_MODULES = {
    "asyncio",
    "alembic",
    "claude_agent_sdk",
    "click",
    "cryptography",
    "dataclasses",
    "email",
    "http",
    "importlib.metadata",
    "json",
    "logging",
    "pathlib",
    "psycopg",
    "socket",
    "sqlalchemy",
    "starlette",
    "subprocess",
    "uvicorn",
    "yaml",
}
"""Modules that an event without a daemon never imports."""

MAX_MODULES = 15
"""Modules side by side in one package, `__init__` not counted."""
MAX_FILE_LINES = 400
"""Lines of a file without its docstrings: nobody should have to shorten one because of its length."""
MAX_FUNCTION_LINES = 50


class Module(NamedTuple):
    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def package(self) -> str:
        """The part of the table that it belongs to: `hooks` for `fairlead.hooks._call`."""
        return self.path.relative_to(SRC).parts[0].removesuffix(".py")


class Import(NamedTuple):
    module: str
    name: str
    """"" if the module itself is imported."""


@cache
def modules() -> tuple[Module, ...]:
    return tuple(read_module(path) for path in sorted(SRC.rglob("*.py")))


def read_module(path: Path) -> Module:
    parts = path.relative_to(SRC).with_suffix("").parts
    text = path.read_text(encoding="utf-8")
    return Module(".".join(("fairlead", *parts)).removesuffix(".__init__"), path, text.count("\n"), ast.parse(text))


def imports(module: Module, *, runtime_only: bool = False) -> Iterator[Import]:
    """Yield what a module imports of ours, anywhere in it; `from package import module` is the import of a module."""
    nodes: list[ast.AST] = [module.tree]
    while nodes:
        node = nodes.pop()
        if runtime_only and isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            continue
        nodes.extend(ast.iter_child_nodes(node))
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, "") for alias in node.names if is_ours(alias.name))
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module):
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield Import(full, "") if is_module(full) else Import(node.module or "", alias.name)


def is_ours(name: str | None) -> bool:
    return (name or "").partition(".")[0] == "fairlead"


def is_module(name: str) -> bool:
    path = SRC.joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_a_package_imports_only_what_the_table_allows() -> None:
    violations = []
    for module in modules():
        for name in {imported.module for imported in imports(module)}:
            target = name.split(".")[1] if "." in name else "__init__"
            is_version = target == "__init__" and module.package in {"cli", "daemon", "hooks"}
            if target not in MAY_IMPORT[module.package] | {module.package} and not is_version:
                violations.append(f"{module.name} imports {name}")
    assert violations == []


def test_every_package_is_in_the_table() -> None:
    assert {module.package for module in modules()} == set(MAY_IMPORT)


def test_no_package_imports_the_private_modules_of_another() -> None:
    violations = [
        f"{module.name} imports {imported.name or 'all'} of {imported.module}: {advice(imported)}"
        for module in modules()
        for imported in imports(module)
        if is_private(imported.module) and imported.module.split(".")[1] != module.package
    ]
    assert violations == []


def is_private(module: str) -> bool:
    return any(part.startswith("_") for part in module.split("."))


def advice(imported: Import) -> str:
    package = imported.module.partition("._")[0]
    if not imported.name:
        return f"import the names that you need from {package}"
    if imported.name in public_names(package):
        return f"import it from {package}"
    return f"add it to __all__ of {package}, and import it from there"


def public_names(package: str) -> set[str]:
    tree = next(module.tree for module in modules() if module.name == package)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_the_advice_names_the_package_to_import_from() -> None:
    assert advice(Import("fairlead.sessions._registry", "Registry")) == "import it from fairlead.sessions"
    assert advice(Import("fairlead.policy.bash.programs._wrappers", "x")).startswith(
        "add it to __all__ of fairlead.policy.bash.programs, "
    )


def test_no_module_imports_itself_in_a_circle() -> None:
    graph = {
        module.name: {imported.module for imported in imports(module, runtime_only=True)} - {"fairlead"}
        for module in modules()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, " → ".join((*trail, name))
        if name not in done:
            for other in graph.get(name, set()):
                visit(other, (*trail, name))
            done.add(name)

    for name in graph:
        visit(name, ())


def test_no_package_has_too_many_modules() -> None:
    counts: dict[str, int] = {}
    for module in modules():
        if module.path.name != "__init__.py":
            package = module.name.rpartition(".")[0]
            counts[package] = counts.get(package, 0) + 1
    assert {name: count for name, count in counts.items() if count > MAX_MODULES} == {}


def test_files_and_functions_are_small() -> None:
    sizes = {module.name: module.lines - docstring_lines(module.tree) for module in modules()}
    too_long = [f"{name}: {size} lines" for name, size in sizes.items() if size > MAX_FILE_LINES]
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno
                if lines > MAX_FUNCTION_LINES:
                    too_long.append(f"{module.name}.{node.name}: {lines} lines")
    assert too_long == []


def docstring_lines(tree: ast.Module) -> int:
    texts = (
        node.value for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )
    return sum((text.end_lineno or text.lineno) - text.lineno + 1 for text in texts)


def test_the_launcher_is_small() -> None:
    files = [*Path(__file__).parents[1].glob("launcher/*.[ch]")]
    assert len(files) > 10
    assert sum(len(file.read_text().splitlines()) for file in files) < 2_500


def test_every_module_has_a_docstring_and_none_opens_with_an_odd_verb() -> None:
    """A docstring opens with Return, Raise, Yield, Write, ..., or says what the thing is."""
    violations = [f"{module.name}: no docstring" for module in modules() if not ast.get_docstring(module.tree)]
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                if re.match(r"(Give|Tell|Say|Hear|Let)s?\b", text):
                    violations.append(f"{module.name}: {text.splitlines()[0]}")
    assert violations == []


# -- what is imported at run time ----------------------------------------------------------------------


def loaded_by(program: str, *args: str, stdin: str = "") -> set[str]:
    """Return the modules that a fresh interpreter has loaded at the end of a program."""
    code = f"{program}\nimport sys; print('\\n'.join(sys.modules), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, *args], input=stdin, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_importing_the_package_loads_nothing_else() -> None:
    bare = loaded_by("pass")
    assert loaded_by("import fairlead") - bare == {"fairlead"}


def test_the_light_functions_of_text_load_no_rich() -> None:
    loaded = loaded_by("from fairlead.text import replace_surrogates")
    assert {name for name in loaded if name.partition(".")[0] in {"rich", "unicodedata"}} == set()


def test_an_event_without_a_daemon_imports_nothing_heavy(tmp_path: Path) -> None:
    """One event, one sync hook, answered by the command line."""
    hooks = tmp_path / "guards.py"
    hooks.write_text(
        "from fairlead import HookManager, PreToolUse\n"
        "hooks = HookManager()\n"
        "@hooks.on(PreToolUse)\n"
        "def look(event): return None\n"
    )
    payload = '{"session_id": "s", "tool_name": "Bash", "tool_input": {}}'
    program = "import sys; from fairlead.cli.main import main; main(['PreToolUse', '--hooks', sys.argv[1]])"
    loaded = loaded_by(program, str(hooks), stdin=payload)
    assert "guards" in loaded
    assert {name for name in HEAVY_MODULES if name in loaded} == set()


def test_the_status_line_imports_nothing_heavy() -> None:
    """It is printed several times a second at worst."""
    loaded = loaded_by("from fairlead.cli.main import main; main(['StatusLine'])", stdin="{}")
    assert "fairlead.cli.status_line" in loaded
    assert {name for name in HEAVY_MODULES if name in loaded} == set()


def test_a_command_imports_its_own_module_and_no_other() -> None:
    """Also not the subcommands of another group, the screen, or what only the completion of a shell needs."""
    loaded = loaded_by("from fairlead.cli.main import main; main(['inbox', '--limit', 'x'])")
    commands = {name for name in loaded if name.startswith("fairlead.cli.") and ".support" not in name}
    assert commands == {f"fairlead.cli.{name}" for name in ("main", "app", "commands", "mail", "mail.inbox")}
    assert not {"click.shell_completion", "textual", "rich", "sqlalchemy", "yaml", "fairlead.daemon.command"} & loaded


def test_loading_a_command_imports_nothing_heavy() -> None:
    """Not even to show its help. What needs more than Click and msgspec is imported when the command runs."""
    program = (
        "from fairlead.cli.commands import SECTIONS\n"
        "from fairlead.cli.support.command import load\n"
        "entries = [entry for section in SECTIONS for entry in section.entries]\n"
        "for entry in (*entries, *(below for entry in entries for below in entry.subcommands)): load(entry)\n"
    )
    heavy = {"alembic", "asyncio", "rich", "sqlalchemy", "starlette", "textual", "tree_sitter", "typing_extensions"}
    assert heavy & loaded_by(program) == set()


def test_no_command_depends_on_the_global_state_of_click() -> None:
    """So that a daemon can run the commands of several callers."""
    for module in modules():
        if module.package == "cli":
            names = {getattr(node, "attr", "") for node in ast.walk(module.tree)}
            assert not names & {"get_current_context", "pass_context", "pass_obj", "echo"}, module.name


# -- commands that the daemon runs -----------------------------------------------------------------------


def test_a_module_whose_commands_the_daemon_runs_does_not_print() -> None:
    """`print` would write to the daemon's own output, and the caller would see nothing."""
    commands = flags_by_module(entry for section in SECTIONS for entry in section.entries)
    served = {module for module, flags in commands.items() if all(flags)}
    found = [module for module in modules() if module.name in served]

    printing = [
        f"{module.name}:{node.lineno}: use print_line"
        for module in found
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "print"
        if not any(keyword.arg == "file" for keyword in node.keywords)
    ]

    assert len(found) > 10
    assert printing == []


def flags_by_module(entries: Iterable[CommandEntry]) -> dict[str, list[bool]]:
    """Return for each module that has commands whether the daemon runs each of them."""
    found: dict[str, list[bool]] = {}
    for one in entries:
        if one.target:
            found.setdefault(f"fairlead.cli.{one.target.partition(':')[0]}", []).append(one.is_served)
        for name, flags in flags_by_module(one.subcommands).items():
            found.setdefault(name, []).extend(flags)
    return found
