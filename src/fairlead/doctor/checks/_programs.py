"""Judges the programs that hooks start. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.clients.claude._programs import COMPILE_LAUNCHER, PYTHON_LAUNCHER
from fairlead.doctor._findings import ok, warning, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.doctor._facts import Facts, Program
    from fairlead.doctor._findings import Finding

_AGAIN = "pip install --force-reinstall fairlead"
_INSTALL = "fairlead hooks install, with the scope"


def check_programs(facts: Facts) -> Iterator[Finding]:
    """Say whether every launcher and its Python can be started, and are of this version."""
    if not facts.own:
        yield wrong("launcher.none", "this installation has no fairlead-hook beside its other programs", _AGAIN)
    for program in facts.programs:
        troubles = [*_launcher(program, facts.version), *_python(program, facts.version)]
        yield from troubles or _start(program, facts.version)


def check_path(facts: Facts) -> Iterator[Finding]:
    """Say which other installation a person would meet in a terminal."""
    for program in facts.on_path:
        yield warning(
            "path.other", f"{program} on the PATH is of another installation", "remove it, or put this one before it"
        )


def _launcher(program: Program, version: str) -> Iterator[Finding]:
    hook = program.hook
    if not program.is_there:
        yield wrong("launcher.missing", f"{hook} is not there", f"{_INSTALL}; or {_AGAIN}")
    elif not program.is_executable:
        yield wrong("launcher.not_executable", f"{hook} is not executable", f"chmod +x {hook}")
    elif program.start.exit_code is None:
        yield wrong("launcher.platform", f"{hook} cannot be started on this machine: {program.start.trouble}", _AGAIN)
    elif program.version and program.version != version:
        yield wrong("launcher.version", f"{hook} is of version {program.version}, and this is {version}", _AGAIN)


def _python(program: Program, version: str) -> Iterator[Finding]:
    python, imports = program.python, program.imports
    if not program.python_there:
        yield wrong("python.missing", f"{python}, which the hooks name, is not there", _INSTALL)
    elif imports.exit_code != 0:
        yield wrong(
            "python.cannot_import",
            f"{python} cannot import fairlead: {imports.trouble}",
            f"{python} -m pip install fairlead; or {_INSTALL}",
        )
    elif imports.said != version:
        yield wrong(
            "python.version",
            f"{python} imports fairlead {imports.said}, and this is {version}",
            f"{_INSTALL}, or bring that one up to date",
        )


def _start(program: Program, version: str) -> Iterator[Finding]:
    if program.start.exit_code != 0 or program.start.said != f"fairlead {version}":
        said = program.start.trouble or program.start.said or f"it ends with exit code {program.start.exit_code}"
        yield wrong("launcher.start", f"{program.hook} does not reach its Python: {said}", _AGAIN)
    else:
        yield ok("launcher", f"{program.hook}, version {program.version or version}")
        if program.is_python:
            yield warning("launcher.python", f"{program.hook} is {PYTHON_LAUNCHER}", COMPILE_LAUNCHER)
        yield ok("python", f"{program.python}, with fairlead {program.imports.said}")
