"""Checks package managers that remove or replace Fairlead, or a package that it needs, in the environment it runs from.

A project's own environments do not count. Which environment a command changes is known from the path of its program,
its options and the `PATH`.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from fairlead.policy.bash.programs._calls import basename
from fairlead.policy.guards.self_protection._findings import Finding, distribution, is_open, operands, option_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NAME = "fairlead"
_REPLACE = "removing or replacing Fairlead, or a package that it needs"
_PIP = re.compile(r"pip[\d.]*")
_EASY_INSTALL = re.compile(r"easy_install[-\d.]*")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_REMOVES = frozenset({"stop", "kill", "uninstall", "remove", "rm", "purge", "autoremove", "delete", "unlink", "zap"})
_ADDS = frozenset({"install", "reinstall", "add", "upgrade", "update", "sync", "download", "inject", "upgrade-shared"})
_EVERY = frozenset({"uninstall-all", "reinstall-all", "upgrade-all"})
_TOOL_MANAGERS = frozenset(
    {"pipx", "brew", "apt", "apt-get", "dnf", "yum", "pacman", "apk", "zypper", "port", "snap", "nix", "guix"}
)
_ENVIRONMENT_MANAGERS = frozenset({"conda", "mamba", "micromamba", "poetry", "pdm", "rye", "hatch", "pixi", "pipenv"})
PACKAGE_MANAGERS = (
    _TOOL_MANAGERS
    | {"pyenv", "asdf", "mise", "rtx"}
    | _ENVIRONMENT_MANAGERS
    | {"pip", "easy_install", "uv", "virtualenv"}
)
_PREFIXED = frozenset({("uv", "pip"), ("conda", "env"), ("mamba", "env"), ("micromamba", "env")})
"""Managers with a word before the verb."""
_VERSION_MANAGERS = frozenset({"pyenv", "asdf", "mise", "rtx"})
_HARMLESS = frozenset({"run", "list", "show", "search", "info", "dir"})
_SHOWS = frozenset({"--version", "--help", "-h", "--dry-run"})
_INTO = ("--target", "-t", "--prefix", "--root", "--python", "-p", "--user-base", "--path")
_MODULES = {
    **{name: name for name in ("pip", "venv", "uv", "pipx", "conda", "poetry", "pdm", "hatch", "pipenv")},
    "virtualenv": "venv",
    "ensurepip": "pip",
}
_SETUP_COMMANDS = frozenset({"install", "develop"})
_REQUIREMENT_FILES = ("-r", "--requirement", "-c", "--constraint")
_GROUPED = re.compile(r"-[A-Za-z]+[rc]")
"""Options of one letter, of which the last is followed by a file: `-yr`."""
_MAX_REQUIREMENTS = 64 * 1024


def check_packages(
    words: Sequence[str], folders: Sequence[str], text: str, is_own: Callable[[str], bool]
) -> Iterator[Finding]:
    """Check one command of the command line `text`, which runs in one of `folders`.

    `is_own` returns whether a path is in the environment that Fairlead runs from.
    """
    program, args, python = _package_manager(words)
    if not program:
        yield from _check_setup(words, folders)
        return
    verbs = operands(args)
    if _NAME in text and any(map(is_open, verbs)):
        verbs = [_NAME if is_open(verb) else verb for verb in verbs]
    if any(not is_open(path) and is_own(path) for path in option_values(args, *_INTO)) and verbs:
        yield Finding("installing packages into the environment that Fairlead runs from")
    elif program == "venv":
        yield from [Finding(_REPLACE) for path in verbs if is_own(path)]
    elif program in _VERSION_MANAGERS or verbs[:2] == ["python", "uninstall"]:
        yield from _check_version(verbs)
    elif program in _TOOL_MANAGERS or (program == "uv" and verbs[:1] == ["tool"]):
        yield from _check_tool(verbs[1:] if program == "uv" else verbs, args)
    else:
        yield from _check_environment(_Call(program, verbs, args, python, folders), text, is_own)


def _package_manager(words: Sequence[str]) -> tuple[str, Sequence[str], str]:
    """Return the package manager of a command, its arguments, and the program whose folder shows the environment.

    The package manager is "" if the command calls none, and `venv` if it creates a virtual environment.
    """
    program, args = basename(words[0]), list(words[1:])
    if _PYTHON.fullmatch(program) and (module := _module(args)):
        at, name = module
        if name == "easy_install":
            return "pip", ["install", *args[at:]], words[0]
        return _MODULES.get(name, ""), args[at:], words[0]
    if _EASY_INSTALL.fullmatch(program):
        return "pip", ["install", *args], words[0]
    if _PIP.fullmatch(program):
        return "pip", args, words[0]
    if program == "virtualenv" or (program == "uv" and args[:1] == ["venv"]):
        return "venv", args[1:] if program == "uv" else args, words[0]
    known = program in PACKAGE_MANAGERS
    return (program if known else ""), args, words[0]


def _module(args: Sequence[str]) -> tuple[int, str] | None:
    """Return the index of the first argument after `-m NAME`, and the name; `None` if Python runs no module."""
    for index, arg in enumerate(args):
        if arg == "-m":
            return (index + 2, args[index + 1]) if index + 1 < len(args) else None
        if arg.startswith("-m"):
            return index + 1, arg[2:]
        if not arg.startswith("-"):
            return None
    return None


def _check_tool(verbs: Sequence[str], args: Sequence[str]) -> Iterator[Finding]:
    """Check a manager that has one environment for each tool."""
    verbs = verbs[1:] if verbs[:1] in (["services"], ["profile"]) else verbs
    verb, names = (verbs[0] if verbs else ""), verbs[1:]
    if verb in _HARMLESS or not _SHOWS.isdisjoint(args):
        return
    if any(arg.startswith(("-R", "-U")) for arg in args):  # pacman
        verb, names = "remove", verbs
    if verb in _REMOVES and any(map(_PYTHON.fullmatch, (name.replace("@", "") for name in names))):
        yield Finding("removing the Python that Fairlead may run with", is_certain=False)
    changes = verb in _REMOVES or verb in _ADDS or verb == "runpip"
    if verb in _EVERY or (changes and ("--all" in args or _NAME in map(distribution, names))):
        yield Finding(_REPLACE)


def _check_version(verbs: Sequence[str]) -> Iterator[Finding]:
    """Check a manager of Python versions: it may not remove the Python that Fairlead runs with."""
    if not _REMOVES.isdisjoint(verbs) and any(verb[:1].isdigit() and verb in sys.version for verb in verbs):
        yield Finding("removing the Python that Fairlead runs with", is_certain=False)


class _Call:
    """A call of a manager that works on one environment."""

    def __init__(
        self, program: str, verbs: Sequence[str], args: Sequence[str], python: str, folders: Sequence[str]
    ) -> None:
        self.program, self.args, self.python, self.folders = program, args, python, folders
        self.verbs = verbs[1:] if (program, *verbs[:1]) in _PREFIXED else verbs

    def removes(self) -> bool:
        return self.verbs[:1] != [] and self.verbs[0] in _REMOVES

    def adds(self) -> bool:
        return self.verbs[:1] != [] and self.verbs[0] in _ADDS

    def requirements(self) -> Iterator[str]:
        yield from self.verbs[1:]
        yield from option_values(self.args, "-e", "--editable", "--with", "--with-editable")


def _check_setup(words: Sequence[str], folders: Sequence[str]) -> Iterator[Finding]:
    """Check `python setup.py develop --uninstall` by the name of the project, if its files contain it."""
    index = next((index for index, word in enumerate(words) if basename(word) == "setup.py"), None)
    if index is None or _SETUP_COMMANDS.isdisjoint(words[index + 1 :]):
        return
    projects = [os.path.join(folder, os.path.expanduser(os.path.dirname(words[index]))) for folder in folders]
    names = {name for project in projects if (name := _project_name(project))}
    if _NAME in names:
        yield Finding(_REPLACE)
    elif not names and not {"-u", "--uninstall"}.isdisjoint(words[index + 1 :]):
        yield Finding(_REPLACE, is_certain=False)


def _check_environment(call: _Call, text: str, is_own: Callable[[str], bool]) -> Iterator[Finding]:
    if not (call.removes() or call.adds()) or "--dry-run" in call.args:
        return
    where = _where(call, is_own)
    if where == "elsewhere":
        return
    words = [*call.requirements()]
    names = {_distribution_at(word, folder) for word in words if not is_open(word) for folder in call.folders}
    if call.removes():
        names.update(distribution(line) for line in _requirement_lines(call))
    if _NAME in names or (where == "here" and _listed_in_files(call)):
        yield Finding(_REPLACE)
    elif (where == "here" or call.removes()) and not names.isdisjoint(_own_distributions()):
        yield Finding(_REPLACE, is_certain=where == "here" and call.removes())
    elif call.removes() and _may_be_listed(call, words, text, where):
        yield Finding(_REPLACE, is_certain=False)


def _where(call: _Call, is_own: Callable[[str], bool]) -> str:
    """Return whether a call works on our environment: `here`, `elsewhere`, or `unknown`."""
    if "/" in call.python:
        return "here" if is_own(call.python) else "elsewhere"
    if call.program in _ENVIRONMENT_MANAGERS:
        return "unknown"
    found = next(
        (
            path
            for folder in os.environ.get("PATH", "").split(":")
            if os.access(path := f"{folder}/{call.python}", os.X_OK)
        ),
        "",
    )
    return "here" if found and call.program != "uv" and is_own(found) else "unknown"


def _may_be_listed(call: _Call, words: Sequence[str], text: str, where: str) -> bool:
    """Return whether the removed packages are only known when the command runs, and may include Fairlead."""
    if _NAME in text:
        return any(not any(_read(path) for path in _at(file, call.folders)) for file in _requirement_files(call))
    return where == "here" and any(map(is_open, words))


def _distribution_at(word: str, folder: str) -> str:
    """Return the package name of a requirement; for a folder, the name in its project file."""
    if word.startswith((".", "/", "~")) and not word.endswith((".whl", ".tar.gz", ".zip")):
        name = _project_name(os.path.join(folder, os.path.expanduser(word.partition("[")[0])))
        if name:
            return name
    return distribution(word)


def _project_name(folder: str) -> str:
    """Return the package name of a project; "" if its files do not contain it."""
    patterns = {
        "pyproject.toml": r"""^name\s*=\s*["']([\w.-]+)["']""",
        "setup.cfg": r"^name\s*=\s*([\w.-]+)",
        "setup.py": r"""\bname\s*=\s*["']([\w.-]+)["']""",
    }
    for file, pattern in patterns.items():
        if named := re.search(pattern, _read(f"{folder}/{file}"), re.MULTILINE):
            return distribution(named[1])
    return ""


def _listed_in_files(call: _Call) -> bool:
    """Return whether a requirements file names another version of Fairlead: a path, a URL, or a pinned one."""
    pinned = rf"(?i)^(-e\s+\S*|[\w./:+-]*/)?{_NAME}\b.*(@|==|/)|^(-e\s+)?\S*/{_NAME}\b"
    return any(re.search(pinned, line) for line in _requirement_lines(call))


def _requirement_lines(call: _Call) -> Iterator[str]:
    for file in _requirement_files(call):
        yield from (line.strip() for path in _at(file, call.folders) for line in _read(path).splitlines())


def _requirement_files(call: _Call) -> Iterator[str]:
    yield from option_values(call.args, *_REQUIREMENT_FILES)
    yield from (file for option, file in pairwise(call.args) if _GROUPED.fullmatch(option))


def _at(file: str, folders: Sequence[str]) -> list[str]:
    return [os.path.join(folder, os.path.expanduser(file)) for folder in folders]


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_REQUIREMENTS).decode(errors="replace")
    except OSError:
        return ""


@cache
def _own_distributions() -> frozenset[str]:
    """Return the names of Fairlead's own package and of the packages that it requires."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required: Iterable[str] = requires(_NAME) or ()
    except PackageNotFoundError:
        required = ()
    return frozenset({_NAME, *(distribution(line) for line in required if "extra ==" not in line)})
