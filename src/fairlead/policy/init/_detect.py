"""Which linters and tests a project has, told by its files: proposals for `stop.commands`. Runs and writes nothing."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Role: TypeAlias = Literal["lint", "types", "test", "all"]

MAX_BYTES = 1024 * 1024
"""A larger file is not looked at."""


class DetectedCheck(msgspec.Struct, frozen=True):
    """A command that is proposed."""

    run: str
    role: Role
    source: str
    """The file that gave it away."""
    tool: str
    """The program it needs: a name on the PATH, or a path in the folder."""
    when: tuple[str, ...]
    off: str | None = None
    """Why it is proposed as an example only."""


class Project:
    """A folder's files, as far as they are regular, small, readable, and really in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unreadable: list[str] = []

    def has(self, *names: str) -> str | None:
        """Give the first of these names that is a file of the folder."""
        return next((name for name in names if self._inside(name) is not None), None)

    def text(self, name: str) -> str:
        """Read a file; what cannot be read is as good as empty."""
        path = self._inside(name)
        try:
            if path is not None and path.stat().st_size <= MAX_BYTES:
                return path.read_text("utf-8", errors="replace")
        except OSError:
            self.unreadable.append(name)
        return ""

    def parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        """Read a file of TOML or JSON; one that is broken is noted, and as good as empty."""
        try:
            tree = parse(self.text(name)) if self.has(name) else {}
        except (ValueError, RecursionError):
            self.unreadable.append(name)
            return {}
        return tree if isinstance(tree, dict) else {}

    def runs(self, name: str) -> bool:
        """Tell whether it is a program in the folder; its interpreter may well live elsewhere."""
        path = self.folder / name
        return os.path.isfile(path) and os.access(path, os.X_OK)

    def _inside(self, name: str) -> Path | None:
        path = (self.folder / name).resolve()
        is_file = os.path.isfile(path)
        return path if is_file and path.is_relative_to(self.folder.resolve()) else None


def detect_checks(folder: Path) -> tuple[list[DetectedCheck], list[str]]:
    """Give the proposals, the project's own collections of checks first, and the files that could not be read."""
    project = Project(folder)
    found: list[DetectedCheck] = []
    for check in (check for detector in _DETECTORS for check in detector(project)):
        found.append(_settled(check, project, found))
    return found, list(dict.fromkeys(project.unreadable))


def _settled(check: DetectedCheck, project: Project, before: list[DetectedCheck]) -> DetectedCheck:
    """Make it an example only if its tool is missing, or a collection of checks already has it."""
    wide = (other for other in before if other.off is None and other.tool in {"make", "pre-commit"})
    cover = next((other for other in wide if other.role in {"all", check.role}), None)
    if cover is not None:
        return msgspec.structs.replace(check, off=f"`{cover.run}` seems to cover it")
    if "/" in check.tool and not project.runs(check.tool):
        return msgspec.structs.replace(check, off=f"{check.tool} is no program here")
    if "/" not in check.tool and shutil.which(check.tool) is None:
        return msgspec.structs.replace(check, off=f"{check.tool} is not on the PATH")
    return check


# -- collections of checks -----------------------------------------------------------------------------

ANY_FILE = ("*",)
_TARGET = re.compile(r"^([\w.-][\w. -]*?)\s*::?(?!=)", re.MULTILINE)


def _make(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has("GNUmakefile", "makefile", "Makefile"):
        targets = {word for line in _TARGET.findall(project.text(name)) for word in line.split()}
        roles: dict[str, Role] = {"check": "all", "lint": "lint", "test": "test"}
        yield from (
            DetectedCheck(f"make {target}", role, name, "make", ANY_FILE)
            for target, role in roles.items()
            if target in targets
        )


def _pre_commit(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has(".pre-commit-config.yaml", ".pre-commit-config.yml"):
        yield DetectedCheck("pre-commit run --all-files", "lint", name, "pre-commit", ANY_FILE)


# -- Python --------------------------------------------------------------------------------------------

PYTHON = ("*.py", "pyproject.toml")
_REQUIREMENTS = ("requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements/dev.txt")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _PythonTool(msgspec.Struct, frozen=True):
    name: str
    args: str
    role: Role
    files: tuple[str, ...]
    """Any of these configures it."""


_PYTHON_TOOLS = (
    _PythonTool("ruff", " check .", "lint", ("ruff.toml", ".ruff.toml")),
    _PythonTool("mypy", " .", "types", ("mypy.ini", ".mypy.ini")),
    _PythonTool("pyright", "", "types", ("pyrightconfig.json",)),
    _PythonTool("pytest", " -q", "test", ("pytest.ini", ".pytest.ini")),
)


def _python(project: Project) -> Iterator[DetectedCheck]:
    tree = project.parsed("pyproject.toml", tomllib.loads)
    configured = _table(tree, "tool")
    listed = {"pyproject.toml": set(_names(_requirements(tree)))}
    listed |= {name: set(_NAME.findall(project.text(name))) for name in _REQUIREMENTS if project.has(name)}
    for tool in _PYTHON_TOOLS:
        in_tree = "pyproject.toml" if tool.name in configured else None
        in_list = next((name for name, names in listed.items() if tool.name in names), None)
        if source := in_tree or project.has(*tool.files) or in_list:
            args = "" if tool.name == "mypy" and _names_its_files(configured) else tool.args
            yield _by_runner(project, configured, tool, args, source)


def _by_runner(
    project: Project, configured: dict[str, Any], tool: _PythonTool, args: str, source: str
) -> DetectedCheck:
    """Choose how the tool is called: by the project's manager, from its environment, or by its name."""
    runner = _runner(project, configured)
    local = f".venv/bin/{tool.name}"
    if runner and (shutil.which(runner) or not project.runs(local)):
        return DetectedCheck(f"{runner} run {tool.name}{args}", tool.role, source, runner, PYTHON)
    program = local if project.runs(local) else tool.name
    return DetectedCheck(f"{program}{args}", tool.role, source, program, PYTHON)


def _runner(project: Project, configured: dict[str, Any]) -> str | None:
    for runner, lock in (("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pdm", "pdm.lock")):
        if project.has(lock) or runner in configured:
            return runner
    return "hatch" if "envs" in _table(configured, "hatch") else None


def _names_its_files(configured: dict[str, Any]) -> bool:
    return not _table(configured, "mypy").keys().isdisjoint({"files", "packages", "modules"})


def _requirements(tree: dict[str, Any]) -> list[object]:
    project, tools = _table(tree, "project"), _table(tree, "tool")
    managers = [tools.get(name) for name in ("poetry", "uv", "pdm", "hatch")]
    return [project.get("dependencies"), project.get("optional-dependencies"), tree.get("dependency-groups"), managers]


def _names(tree: object) -> Iterator[str]:
    """Give every key, and the name at the beginning of every text: requirements come in many forms."""
    if isinstance(tree, str) and (found := _NAME.match(tree)):
        yield found[0].lower()
    elif isinstance(tree, dict):
        yield from tree
        yield from _names(list(tree.values()))
    elif isinstance(tree, list):
        for value in tree:
            yield from _names(value)


def _json(text: str) -> Any:
    return msgspec.json.decode(text or "{}")


def _table(tree: dict[str, Any], key: str) -> dict[str, Any]:
    value = tree.get(key)
    return value if isinstance(value, dict) else {}


# -- JavaScript, PHP -----------------------------------------------------------------------------------

JAVASCRIPT = ("*.[jt]s", "*.[jt]sx", "*.[cm][jt]s", "*.vue", "*.svelte", "package.json")
PHP = ("*.php", "composer.json")
_LOCKS = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
_TYPES = ("typecheck", "type-check", "check-types")
_SCRIPTS: dict[str, Role] = {"lint": "lint", **dict.fromkeys(_TYPES, "types"), "test": "test"}
_NO_TEST = "no test specified"
"""What `npm init` writes; it fails always."""


def _javascript(project: Project) -> Iterator[DetectedCheck]:
    tree = project.parsed("package.json", _json)
    named = str(tree.get("packageManager", "")).partition("@")[0]
    by_lock = next((manager for lock, manager in _LOCKS.items() if project.has(lock)), None)
    manager = named if named in {"npm", *_LOCKS.values()} else by_lock or "npm"
    yield from _scripts(tree, manager, "package.json", JAVASCRIPT)


def _php(project: Project) -> Iterator[DetectedCheck]:
    tree = project.parsed("composer.json", _json)
    yield from _scripts(tree, "composer", "composer.json", PHP)
    own = _table(tree, "scripts")
    if "lint" not in own and (name := project.has("phpstan.neon", "phpstan.neon.dist")):
        yield DetectedCheck("vendor/bin/phpstan analyse", "lint", name, "vendor/bin/phpstan", PHP)
    if "test" not in own and (name := project.has("phpunit.xml", "phpunit.xml.dist")):
        yield DetectedCheck("vendor/bin/phpunit", "test", name, "vendor/bin/phpunit", PHP)


def _scripts(tree: dict[str, Any], manager: str, source: str, when: tuple[str, ...]) -> Iterator[DetectedCheck]:
    """Propose the scripts that check; not those that watch, which never end."""
    own = _table(tree, "scripts")
    for name, role in _SCRIPTS.items():
        if name in own and _NO_TEST not in str(own[name]) and "--watch" not in str(own[name]):
            yield DetectedCheck(f"{manager} run {name}", role, source, manager, when)


# -- other languages -----------------------------------------------------------------------------------

RUST = ("*.rs", "Cargo.toml", "Cargo.lock")
GO = ("*.go", "go.mod", "go.sum")
RUBY = ("*.rb", "*.rake", "Gemfile", "Rakefile")
ELIXIR = ("*.ex", "*.exs")
JVM = ("*.java", "*.kt", "*.kts", "*.gradle", "*.groovy", "*.scala", "pom.xml")


def _rust(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has("Cargo.toml"):
        scope = " --workspace" if re.search(r"^\[workspace\]", project.text(name), re.MULTILINE) else ""
        yield DetectedCheck(f"cargo clippy{scope} --all-targets -- -D warnings", "lint", name, "cargo-clippy", RUST)
        yield DetectedCheck(f"cargo test{scope}", "test", name, "cargo", RUST)


def _go(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has("go.mod"):
        own = project.has(*(f".golangci.{ending}" for ending in ("yml", "yaml", "toml", "json")))
        if own:
            yield DetectedCheck("golangci-lint run", "lint", own, "golangci-lint", GO)
        yield DetectedCheck("go vet ./...", "lint", name, "go", GO)
        yield DetectedCheck("go test ./...", "test", name, "go", GO)


def _ruby(project: Project) -> Iterator[DetectedCheck]:
    gems = project.text("Gemfile")
    if project.has("Gemfile") and (project.has(".rubocop.yml") or "rubocop" in gems):
        yield DetectedCheck("bundle exec rubocop", "lint", project.has(".rubocop.yml") or "Gemfile", "bundle", RUBY)
    if project.has("Gemfile") and (project.has(".rspec") or "rspec" in gems):
        yield DetectedCheck("bundle exec rspec", "test", project.has(".rspec") or "Gemfile", "bundle", RUBY)
    elif re.search(r"TestTask|task\W+test\b", project.text("Rakefile")):
        by_bundle = bool(project.has("Gemfile"))
        run = "bundle exec rake test" if by_bundle else "rake test"
        yield DetectedCheck(run, "test", "Rakefile", "bundle" if by_bundle else "rake", RUBY)


def _elixir(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has("mix.exs"):
        if project.has(".formatter.exs"):
            yield DetectedCheck("mix format --check-formatted", "lint", ".formatter.exs", "mix", ELIXIR)
        if ":credo" in project.text(name):
            yield DetectedCheck("mix credo", "lint", name, "mix", ELIXIR)
        yield DetectedCheck("mix test", "test", name, "mix", ELIXIR)


def _jvm(project: Project) -> Iterator[DetectedCheck]:
    if name := project.has("build.gradle", "build.gradle.kts"):
        program = "./gradlew" if project.has("gradlew") else "gradle"
        yield DetectedCheck(f"{program} check", "all", name, program, JVM)
    elif project.has("pom.xml"):
        program = "./mvnw" if project.has("mvnw") else "mvn"
        yield DetectedCheck(f"{program} -q verify", "all", "pom.xml", program, JVM)


_DETECTORS = (_make, _pre_commit, _python, _javascript, _rust, _go, _php, _ruby, _elixir, _jvm)
