"""Checks of the programs that hooks start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients import COMPILE_LAUNCHER, PYTHON_LAUNCHER
from fairlead.doctor._findings import ok, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Facts, ProgramFacts
    from fairlead.doctor._findings import Finding

_REINSTALL = "pip install --force-reinstall fairlead"
_INSTALL = "fairlead hooks install, with its scope"


def check_programs(facts: Facts) -> Iterator[Finding]:
    """Yield findings about each launcher and its Python: whether they start, and have the version of this Fairlead."""
    if not facts.own_launcher:
        yield wrong("launcher.none", "this installation has no program fairlead-hook", _REINSTALL)
    for program in facts.programs:
        problems = [*_check_launcher(program, facts.version), *_check_python(program, facts.version)]
        yield from problems or _check_start(program, facts.version)


def check_path(facts: Facts) -> Iterator[Finding]:
    """Yield findings about programs `fairlead` on the PATH that belong to another installation."""
    for program in facts.on_path:
        yield warning(
            "path.other", f"{program} on the PATH belongs to another installation", "remove it, or put this one first"
        )


def _check_launcher(program: ProgramFacts, version: str) -> Iterator[Finding]:
    hook = program.hook
    if not program.is_there:
        yield wrong("launcher.missing", f"{hook} does not exist", f"{_INSTALL}; or {_REINSTALL}")
    elif not program.is_executable:
        yield wrong("launcher.not_executable", f"{hook} is not executable", f"chmod +x {hook}")
    elif program.start.exit_code is None:
        yield wrong("launcher.platform", f"{hook} cannot be started on this machine: {program.start.error}", _REINSTALL)
    elif program.version and program.version != version:
        yield wrong("launcher.version", f"{hook} has version {program.version}, and this is {version}", _REINSTALL)


def _check_python(program: ProgramFacts, version: str) -> Iterator[Finding]:
    python, imports = program.python, program.imports
    if not program.python_there:
        yield wrong("python.missing", f"{python}, which the hooks use, does not exist", _INSTALL)
    elif imports.exit_code != 0:
        yield wrong(
            "python.cannot_import",
            f"{python} cannot import fairlead: {imports.error}",
            f"{python} -m pip install fairlead; or {_INSTALL}",
        )
    elif imports.output != version:
        yield wrong(
            "python.version",
            f"{python} imports fairlead {imports.output}, and this is {version}",
            f"{_INSTALL}, or update that one",
        )


def _check_start(program: ProgramFacts, version: str) -> Iterator[Finding]:
    if program.start.exit_code != 0 or program.start.output != f"fairlead {version}":
        result = program.start
        message = result.error or result.output or f"it ended with exit code {result.exit_code}"
        yield wrong("launcher.start", f"{program.hook} cannot run its Python: {message}", _REINSTALL)
    else:
        yield ok("launcher", f"{program.hook}, version {program.version or version}")
        if program.is_python:
            yield warning("launcher.python", f"{program.hook} is {PYTHON_LAUNCHER}", COMPILE_LAUNCHER)
        yield ok("python", f"{program.python}, with fairlead {program.imports.output}")
