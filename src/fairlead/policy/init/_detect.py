"""Detects the linters and tests of a project from its files, as proposals for `stop.commands`. Runs nothing."""

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

_MAX_FILE_BYTES = 1024 * 1024
"""The maximum number of bytes of a file that is read."""


class DetectedCheck(msgspec.Struct, frozen=True):
    """A proposed command."""

    run: str
    role: Role
    source: str
    """The file that it was detected in."""
    tool: str
    """The program that it runs: a name on the PATH, or a path in the folder."""
    when: tuple[str, ...]
    """Patterns of the files whose change makes it run."""
    disabled_reason: str | None = None
    """Why it is written as a comment; `None` if it is enabled."""


class ProjectFolder:
    """Reads the files of a project folder. Large files, and links to files outside of it, are not read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.unreadable: list[str] = []
        """The names of files that exist, but could not be read or parsed."""

    def has(self, *names: str) -> str | None:
        """Return the first of the names that is a file of the folder; `None` if none is."""
        return next((name for name in names if self._inside(name) is not None), None)

    def text(self, name: str) -> str:
        """Return the text of a file; "" if it is missing, too large or cannot be read.

        A file that cannot be read is added to `unreadable`.
        """
        path = self._inside(name)
        try:
            if path is not None and path.stat().st_size <= _MAX_FILE_BYTES:
                return path.read_text("utf-8", errors="replace")
        except OSError:
            self.unreadable.append(name)
        return ""

    def parsed(self, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        """Parse a TOML or JSON file; `{}` if it is missing or broken. A broken file is added to `unreadable`."""
        try:
            tree = parse(self.text(name)) if self.has(name) else {}
        except (ValueError, RecursionError):
            self.unreadable.append(name)
            return {}
        return tree if isinstance(tree, dict) else {}

    def is_program(self, name: str) -> bool:
        """Return whether a name is a program in the folder, or a link there to a program."""
        path = self.folder / name
        return os.path.isfile(path) and os.access(path, os.X_OK)

    def _inside(self, name: str) -> Path | None:
        path = (self.folder / name).resolve()
        is_file = os.path.isfile(path)
        return path if is_file and path.is_relative_to(self.folder.resolve()) else None


def detect_checks(folder: Path) -> tuple[list[DetectedCheck], list[str]]:
    """Return the proposals, commands for several checks first, and the names of files that could not be read."""
    project = ProjectFolder(folder)
    checks: list[DetectedCheck] = []
    for check in (check for detector in _DETECTORS for check in detector(project)):
        checks.append(_disable_if_useless(check, project, checks))
    return checks, list(dict.fromkeys(project.unreadable))


def _disable_if_useless(check: DetectedCheck, project: ProjectFolder, before: list[DetectedCheck]) -> DetectedCheck:
    """Return a check, disabled if its program is missing, or if one of the checks `before` it seems to cover it."""
    several = (other for other in before if other.disabled_reason is None and other.tool in {"make", "pre-commit"})
    cover = next((other for other in several if other.role in {"all", check.role}), None)
    if cover is not None:
        return msgspec.structs.replace(check, disabled_reason=f"`{cover.run}` seems to cover it")
    if "/" in check.tool and not project.is_program(check.tool):
        return msgspec.structs.replace(check, disabled_reason=f"{check.tool} is not a program in this folder")
    if "/" not in check.tool and shutil.which(check.tool) is None:
        return msgspec.structs.replace(check, disabled_reason=f"{check.tool} is not on the PATH")
    return check


# -- several checks in one -----------------------------------------------------------------------------

ANY_FILE = ("*",)
_TARGET = re.compile(r"^([\w.-][\w. -]*?)\s*::?(?!=)", re.MULTILINE)


def _make(project: ProjectFolder) -> Iterator[DetectedCheck]:
    if name := project.has("GNUmakefile", "makefile", "Makefile"):
        targets = {word for line in _TARGET.findall(project.text(name)) for word in line.split()}
        roles: dict[str, Role] = {"check": "all", "lint": "lint", "test": "test"}
        yield from (
            DetectedCheck(f"make {target}", role, name, "make", ANY_FILE)
            for target, role in roles.items()
            if target in targets
        )


def _pre_commit(project: ProjectFolder) -> Iterator[DetectedCheck]:
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
    """Its configuration files."""


_PYTHON_TOOLS = (
    _PythonTool("ruff", " check .", "lint", ("ruff.toml", ".ruff.toml")),
    _PythonTool("mypy", " .", "types", ("mypy.ini", ".mypy.ini")),
    _PythonTool("pyright", "", "types", ("pyrightconfig.json",)),
    _PythonTool("pytest", " -q", "test", ("pytest.ini", ".pytest.ini")),
)


def _python(project: ProjectFolder) -> Iterator[DetectedCheck]:
    tree = project.parsed("pyproject.toml", tomllib.loads)
    configured = _table(tree, "tool")
    required = {"pyproject.toml": set(_names(_requirements(tree)))}
    required |= {name: set(_NAME.findall(project.text(name))) for name in _REQUIREMENTS if project.has(name)}
    for tool in _PYTHON_TOOLS:
        in_config = "pyproject.toml" if tool.name in configured else None
        in_requirements = next((name for name, names in required.items() if tool.name in names), None)
        if source := in_config or project.has(*tool.files) or in_requirements:
            args = "" if tool.name == "mypy" and _sets_files(configured) else tool.args
            yield _python_check(project, configured, tool, args, source)


def _python_check(
    project: ProjectFolder, configured: dict[str, Any], tool: _PythonTool, args: str, source: str
) -> DetectedCheck:
    """Return the command that runs a tool: by the package manager, from the project's environment, or by its name."""
    runner = _runner(project, configured)
    local = f".venv/bin/{tool.name}"
    if runner and (shutil.which(runner) or not project.is_program(local)):
        return DetectedCheck(f"{runner} run {tool.name}{args}", tool.role, source, runner, PYTHON)
    program = local if project.is_program(local) else tool.name
    return DetectedCheck(f"{program}{args}", tool.role, source, program, PYTHON)


def _runner(project: ProjectFolder, configured: dict[str, Any]) -> str | None:
    for runner, lock in (("uv", "uv.lock"), ("poetry", "poetry.lock"), ("pdm", "pdm.lock")):
        if project.has(lock) or runner in configured:
            return runner
    return "hatch" if "envs" in _table(configured, "hatch") else None


def _sets_files(configured: dict[str, Any]) -> bool:
    return not _table(configured, "mypy").keys().isdisjoint({"files", "packages", "modules"})


def _requirements(tree: dict[str, Any]) -> list[object]:
    project, tools = _table(tree, "project"), _table(tree, "tool")
    managers = [tools.get(name) for name in ("poetry", "uv", "pdm", "hatch")]
    return [project.get("dependencies"), project.get("optional-dependencies"), tree.get("dependency-groups"), managers]


def _names(tree: object) -> Iterator[str]:
    """Yield the names that may be packages in a TOML value, which is searched recursively.

    These are every key, and the lowercased name at the start of every string.
    """
    if isinstance(tree, str) and (match := _NAME.match(tree)):
        yield match[0].lower()
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
"""Part of the test script that `npm init` writes, which always fails."""


def _javascript(project: ProjectFolder) -> Iterator[DetectedCheck]:
    tree = project.parsed("package.json", _json)
    declared = str(tree.get("packageManager", "")).partition("@")[0]
    by_lock = next((manager for lock, manager in _LOCKS.items() if project.has(lock)), None)
    manager = declared if declared in {"npm", *_LOCKS.values()} else by_lock or "npm"
    yield from _scripts(tree, manager, "package.json", JAVASCRIPT)


def _php(project: ProjectFolder) -> Iterator[DetectedCheck]:
    tree = project.parsed("composer.json", _json)
    yield from _scripts(tree, "composer", "composer.json", PHP)
    scripts = _table(tree, "scripts")
    if "lint" not in scripts and (name := project.has("phpstan.neon", "phpstan.neon.dist")):
        yield DetectedCheck("vendor/bin/phpstan analyse", "lint", name, "vendor/bin/phpstan", PHP)
    if "test" not in scripts and (name := project.has("phpunit.xml", "phpunit.xml.dist")):
        yield DetectedCheck("vendor/bin/phpunit", "test", name, "vendor/bin/phpunit", PHP)


def _scripts(tree: dict[str, Any], manager: str, source: str, when: tuple[str, ...]) -> Iterator[DetectedCheck]:
    """Yield the scripts that run checks, but no script that watches files, and not the failing test of `npm init`."""
    scripts = _table(tree, "scripts")
    for name, role in _SCRIPTS.items():
        if name in scripts and _NO_TEST not in str(scripts[name]) and "--watch" not in str(scripts[name]):
            yield DetectedCheck(f"{manager} run {name}", role, source, manager, when)


# -- other languages -----------------------------------------------------------------------------------

RUST = ("*.rs", "Cargo.toml", "Cargo.lock")
GO = ("*.go", "go.mod", "go.sum")
RUBY = ("*.rb", "*.rake", "Gemfile", "Rakefile")
ELIXIR = ("*.ex", "*.exs")
JVM = ("*.java", "*.kt", "*.kts", "*.gradle", "*.groovy", "*.scala", "pom.xml")


def _rust(project: ProjectFolder) -> Iterator[DetectedCheck]:
    if name := project.has("Cargo.toml"):
        scope = " --workspace" if re.search(r"^\[workspace\]", project.text(name), re.MULTILINE) else ""
        yield DetectedCheck(f"cargo clippy{scope} --all-targets -- -D warnings", "lint", name, "cargo-clippy", RUST)
        yield DetectedCheck(f"cargo test{scope}", "test", name, "cargo", RUST)


def _go(project: ProjectFolder) -> Iterator[DetectedCheck]:
    if name := project.has("go.mod"):
        config = project.has(*(f".golangci.{ending}" for ending in ("yml", "yaml", "toml", "json")))
        if config:
            yield DetectedCheck("golangci-lint run", "lint", config, "golangci-lint", GO)
        yield DetectedCheck("go vet ./...", "lint", name, "go", GO)
        yield DetectedCheck("go test ./...", "test", name, "go", GO)


def _ruby(project: ProjectFolder) -> Iterator[DetectedCheck]:
    gems = project.text("Gemfile")
    if project.has("Gemfile") and (project.has(".rubocop.yml") or "rubocop" in gems):
        yield DetectedCheck("bundle exec rubocop", "lint", project.has(".rubocop.yml") or "Gemfile", "bundle", RUBY)
    if project.has("Gemfile") and (project.has(".rspec") or "rspec" in gems):
        yield DetectedCheck("bundle exec rspec", "test", project.has(".rspec") or "Gemfile", "bundle", RUBY)
    elif re.search(r"TestTask|task\W+test\b", project.text("Rakefile")):
        by_bundle = bool(project.has("Gemfile"))
        run = "bundle exec rake test" if by_bundle else "rake test"
        yield DetectedCheck(run, "test", "Rakefile", "bundle" if by_bundle else "rake", RUBY)


def _elixir(project: ProjectFolder) -> Iterator[DetectedCheck]:
    if name := project.has("mix.exs"):
        if project.has(".formatter.exs"):
            yield DetectedCheck("mix format --check-formatted", "lint", ".formatter.exs", "mix", ELIXIR)
        if ":credo" in project.text(name):
            yield DetectedCheck("mix credo", "lint", name, "mix", ELIXIR)
        yield DetectedCheck("mix test", "test", name, "mix", ELIXIR)


def _jvm(project: ProjectFolder) -> Iterator[DetectedCheck]:
    if name := project.has("build.gradle", "build.gradle.kts"):
        program = "./gradlew" if project.has("gradlew") else "gradle"
        yield DetectedCheck(f"{program} check", "all", name, program, JVM)
    elif project.has("pom.xml"):
        program = "./mvnw" if project.has("mvnw") else "mvn"
        yield DetectedCheck(f"{program} -q verify", "all", "pom.xml", program, JVM)


_DETECTORS = (_make, _pre_commit, _python, _javascript, _rust, _go, _php, _ruby, _elixir, _jvm)
