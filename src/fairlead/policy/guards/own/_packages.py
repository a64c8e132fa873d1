"""Commands of package managers that remove or replace Fairlead, or what it is made of, in the environment it runs from.

A project has environments of its own, which are not meant: a package manager is judged by the environment that it works
on, as far as its path, its options and the `PATH` tell.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from typing import TYPE_CHECKING

from fairlead.policy.guards.own._findings import Finding, basename, distribution, is_open, operands, option_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

_NAME = "fairlead"
_REPLACE = "removing or replacing Fairlead, or a package that it needs"
_PIP = re.compile(r"pip[\d.]*|easy_install[\d.]*")
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
_MAX_REQUIREMENTS = 64 * 1024


def judge_packages(words: Sequence[str], folder: str, text: str, is_own: Callable[[str], bool]) -> Iterator[Finding]:
    """Judge one command of a text. `is_own` tells whether a path is in the environment that Fairlead runs from."""
    program, args, python = _package_manager(words)
    if not program:
        return
    verbs = operands(args)
    if _NAME in text and any(map(is_open, verbs)):
        verbs = [_NAME if is_open(verb) else verb for verb in verbs]
    if any(not is_open(path) and is_own(path) for path in option_values(args, *_INTO)) and verbs:
        yield Finding("installing packages into the environment that Fairlead runs from")
    elif program == "venv":
        yield from [Finding(_REPLACE) for path in verbs if is_own(path)]
    elif program in _VERSION_MANAGERS or verbs[:2] == ["python", "uninstall"]:
        yield from _judge_version(verbs)
    elif program in _TOOL_MANAGERS or (program == "uv" and verbs[:1] == ["tool"]):
        yield from _judge_tool(verbs[1:] if program == "uv" else verbs, args)
    else:
        yield from _judge_environment(_Call(program, verbs, args, python, folder), is_own)


def _package_manager(words: Sequence[str]) -> tuple[str, Sequence[str], str]:
    """Return the package manager of a command, its arguments, and the program whose folder tells the environment."""
    program, args = basename(words[0]), list(words[1:])
    if _PYTHON.fullmatch(program) and (module := _module(args)):
        at, name = module
        return _MODULES.get(name, ""), args[at:], words[0]
    if _PIP.fullmatch(program):
        return "pip", args, words[0]
    if program == "virtualenv" or (program == "uv" and args[:1] == ["venv"]):
        return "venv", args[1:] if program == "uv" else args, words[0]
    known = program in PACKAGE_MANAGERS
    return (program if known else ""), args, words[0]


def _module(args: Sequence[str]) -> tuple[int, str] | None:
    """Return the module of `python -m NAME`, and where its arguments begin."""
    for at, arg in enumerate(args):
        if arg == "-m":
            return (at + 2, args[at + 1]) if at + 1 < len(args) else None
        if arg.startswith("-m"):
            return at + 1, arg[2:]
        if not arg.startswith("-"):
            return None
    return None


def _judge_tool(verbs: Sequence[str], args: Sequence[str]) -> Iterator[Finding]:
    """Judge a manager that has one environment for each tool."""
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


def _judge_version(verbs: Sequence[str]) -> Iterator[Finding]:
    """Judge a manager of versions of Python: the one that Fairlead runs with may not be removed."""
    if not _REMOVES.isdisjoint(verbs) and any(verb[:1].isdigit() and verb in sys.version for verb in verbs):
        yield Finding("removing the Python that Fairlead runs with", is_certain=False)


class _Call:
    """A call of a manager that works on one environment."""

    def __init__(self, program: str, verbs: Sequence[str], args: Sequence[str], python: str, folder: str) -> None:
        self.program, self.args, self.python, self.folder = program, args, python, folder
        self.verbs = verbs[1:] if (program, *verbs[:1]) in _PREFIXED else verbs

    def removes(self) -> bool:
        return self.verbs[:1] != [] and self.verbs[0] in _REMOVES

    def adds(self) -> bool:
        return self.verbs[:1] != [] and self.verbs[0] in _ADDS

    def requirements(self) -> Iterator[str]:
        yield from self.verbs[1:]
        yield from option_values(self.args, "-e", "--editable", "--with", "--with-editable")


def _judge_environment(call: _Call, is_own: Callable[[str], bool]) -> Iterator[Finding]:
    if not (call.removes() or call.adds()) or "--dry-run" in call.args:
        return
    where = _where(call, is_own)
    if where == "elsewhere":
        return
    names = {_distribution_at(word, call.folder) for word in call.requirements() if not is_open(word)}
    if call.removes():
        names.update(distribution(line) for line in _requirement_lines(call))
    if _NAME in names or (where == "here" and _listed_in_files(call)):
        yield Finding(_REPLACE)
    elif (where == "here" or call.removes()) and not names.isdisjoint(_own_distributions()):
        yield Finding(_REPLACE, is_certain=where == "here" and call.removes())


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


def _distribution_at(word: str, folder: str) -> str:
    """Return the name of the package that a word names: of a folder, the one that its project file says."""
    if word.startswith((".", "/", "~")) and not word.endswith((".whl", ".tar.gz", ".zip")):
        path = os.path.join(folder, os.path.expanduser(word.partition("[")[0]))
        named = re.search(r"""^name\s*=\s*["']([\w.-]+)["']""", _read(f"{path}/pyproject.toml"), re.MULTILINE)
        if named:
            return distribution(named[1])
    return distribution(word)


def _listed_in_files(call: _Call) -> bool:
    """Return whether a requirements file names another version of Fairlead: a path, a URL, or a pinned one."""
    pinned = rf"(?i)^(-e\s+\S*|[\w./:+-]*/)?{_NAME}\b.*(@|==|/)|^(-e\s+)?\S*/{_NAME}\b"
    return any(re.search(pinned, line) for line in _requirement_lines(call))


def _requirement_lines(call: _Call) -> Iterator[str]:
    for file in option_values(call.args, "-r", "--requirement", "-c", "--constraint"):
        yield from (line.strip() for line in _read(os.path.join(call.folder, file)).splitlines())


def _read(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MAX_REQUIREMENTS).decode(errors="replace")
    except OSError:
        return ""


@cache
def _own_distributions() -> frozenset[str]:
    """Return the packages that Fairlead runs from: itself, and what it requires."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        required: Iterable[str] = requires(_NAME) or ()
    except PackageNotFoundError:
        required = ()
    return frozenset({_NAME, *(distribution(line) for line in required if "extra ==" not in line)})
