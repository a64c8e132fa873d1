"""Finds the programs that hooks start, and their versions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.clients import (
    LAUNCHER,
    InstallError,
    client_named,
    find_launcher,
    is_program,
    is_python_launcher,
    launcher_folders,
)
from fairlead.doctor._facts import ClientFacts, ProgramFacts, ProgramResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.clients import InstalledHook

_TIMEOUT = 10.0
_MAX_BYTES = 4 << 20
_VERSION_PATTERNS = (rb"fairlead-version: (\d[\w.+-]*)", rb'^VERSION = "(\d[\w.+-]*)"')
"""Patterns of the version in a launcher's file: in the compiled launcher, and in the one in Python."""
_PRINT_VERSION = "import fairlead; print(fairlead.__version__)"


def probe_programs(hooks: Iterable[InstalledHook]) -> tuple[ProgramFacts, ...]:
    """Return the facts about each launcher that our hooks start, and its Python.

    If they start none, these are the launcher and the Python of this installation, if it has a launcher.
    """
    pairs = dict.fromkeys(pair for hook in hooks if hook.is_ours and all(pair := _pair(hook.words)))
    if not pairs and (own := own_launcher()):
        pairs = {(own, sys.executable): None}
    return tuple(_probe_program(hook, python) for hook, python in pairs)


def own_launcher() -> str:
    """Return the path of the launcher of this installation; "" if there is none."""
    try:
        return find_launcher(launcher_folders(), sys.executable).hook
    except InstallError:
        return ""


def probe_client(name: str, version: tuple[int, int, int] | None) -> ClientFacts:
    """Return the facts about the client on the PATH. It is run to find out its version, unless `version` is given."""
    installer = client_named(name).installer
    return ClientFacts(shutil.which(installer.PROGRAM) or "", version or installer.client_version(), name)


def others_on_path() -> tuple[str, ...]:
    """Return the paths of the programs `fairlead` on the PATH that belong to other installations."""
    own = {os.path.realpath(folder) for folder in launcher_folders()}
    candidates = [Path(folder, "fairlead") for folder in os.get_exec_path() if folder.startswith("/")]
    programs = [file for file in dict.fromkeys(candidates) if is_program(str(file))]
    return tuple(
        str(file)
        for file in programs
        if not {os.path.dirname(os.path.realpath(file)), os.path.realpath(file.parent)} & own
    )


def _pair(argv: Sequence[str]) -> tuple[str, str]:
    """Return the launcher and the Python of a command line: `--python`, else one beside the launcher, else ours."""
    hook = argv[0] if "/" in argv[0] else shutil.which(argv[0]) or argv[0]
    if "--python" in argv[:-1]:
        return hook, argv[list(argv).index("--python") + 1]
    folder = Path(os.path.realpath(hook)).parent
    return hook, str(next((file for name in ("python3", "python") if (file := folder / name).exists()), sys.executable))


def _probe_program(hook: str, python: str) -> ProgramFacts:
    is_there, python_there = Path(hook).is_file(), is_program(python)
    options = ["--python", python] if Path(hook).name == LAUNCHER else []
    return ProgramFacts(
        hook=hook,
        python=python,
        is_there=is_there,
        is_executable=is_program(hook),
        version=_version_in(hook) if is_there else "",
        is_python=is_python_launcher(hook),
        start=_ask([hook, "--version", *options]) if is_program(hook) else ProgramResult(),
        python_there=python_there,
        imports=_ask([python, "-E", "-P", "-c", _PRINT_VERSION])  # with the options that the launcher uses
        if python_there
        else ProgramResult(),
    )


def _version_in(hook: str) -> str:
    """Return the version written in a launcher's file; "" if there is none, or if the file cannot be read.

    `--version` would print another one: the version of the Fairlead that the launcher's Python imports.
    """
    try:
        with Path(hook).open("rb") as stream:
            content = stream.read(_MAX_BYTES)
    except OSError:
        return ""
    matches = (re.search(pattern, content, re.MULTILINE) for pattern in _VERSION_PATTERNS)
    match = next(filter(None, matches), None)
    return match[1].decode("ascii") if match else ""


def _ask(command: Sequence[str]) -> ProgramResult:
    try:
        done = subprocess.run(  # noqa: S603 - a program of the user's settings, asked for its version
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT, check=False, cwd="/"
        )
    except OSError as error:
        return ProgramResult(error=error.strerror or str(error))
    except subprocess.TimeoutExpired:
        return ProgramResult(error=f"it did not end within {_TIMEOUT:g} s")
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return ProgramResult(done.returncode, done.stdout.decode(errors="replace").strip(), lines[-1] if lines else "")
