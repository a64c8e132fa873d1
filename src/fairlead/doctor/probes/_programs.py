"""Looks at the programs that hooks start, and asks them for their versions."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude import _programs as programs
from fairlead.clients.claude._ownership import LAUNCHER
from fairlead.doctor._facts import Client, Program, Ran

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fairlead.doctor._facts import Hook

_PATIENCE = 10.0
_LARGEST = 4 << 20
_VERSIONS = (rb"fairlead-version: (\d[\w.+-]*)", rb'^VERSION = "(\d[\w.+-]*)"')
"""How a launcher has its version in it: compiled, and in Python."""
_ASKS = "import fairlead; print(fairlead.__version__)"


def look_at_programs(hooks: Iterable[Hook]) -> tuple[Program, ...]:
    """Look at each launcher that an installed hook starts; if none does, at the one that an install would take."""
    pairs = dict.fromkeys(pair for hook in hooks if hook.is_ours and all(pair := _pair(words_of(hook))))
    if not pairs and (own := own_launcher()):
        pairs = {(own, sys.executable): None}
    return tuple(_look(hook, python) for hook, python in pairs)


def own_launcher() -> str:
    """Give the launcher of this installation; nothing if there is none."""
    try:
        return programs.find_launcher(programs.launcher_folders(), sys.executable).hook
    except InstallError:
        return ""


def look_at_client(version: tuple[int, int, int] | None) -> Client:
    """Find the client, and what it says its version is, unless that is known."""
    return Client(shutil.which("claude") or "", version or programs.client_version())


def others_on_path() -> tuple[str, ...]:
    """List the programs named `fairlead` on the PATH that are not of this installation."""
    own = {os.path.realpath(folder) for folder in programs.launcher_folders()}
    found = [Path(folder, "fairlead") for folder in os.get_exec_path() if folder.startswith("/")]
    theirs = [file for file in dict.fromkeys(found) if programs.is_program(str(file))]
    return tuple(
        str(file)
        for file in theirs
        if not {os.path.dirname(os.path.realpath(file)), os.path.realpath(file.parent)} & own
    )


def words_of(hook: Hook) -> list[str]:
    """Give the command line of a hook of ours as words."""
    command, args = str(hook.value.get("command", "")), hook.value.get("args")
    if isinstance(args, list):
        return [command, *map(str, args)]
    try:
        return shlex.split(command)
    except ValueError:
        return [command]


def _pair(words: Sequence[str]) -> tuple[str, str]:
    """Name the launcher and its Python: the one that is told, or else the one beside it, as the launcher has it."""
    hook = words[0] if "/" in words[0] else shutil.which(words[0]) or words[0]
    if "--python" in words[:-1]:
        return hook, words[list(words).index("--python") + 1]
    beside = Path(os.path.realpath(hook)).parent
    return hook, str(next((file for name in ("python3", "python") if (file := beside / name).exists()), sys.executable))


def _look(hook: str, python: str) -> Program:
    is_there, python_there = Path(hook).is_file(), programs.is_program(python)
    options = ["--python", python] if Path(hook).name == LAUNCHER else []
    return Program(
        hook=hook,
        python=python,
        is_there=is_there,
        is_executable=programs.is_program(hook),
        version=_version_in(hook) if is_there else "",
        is_python=programs.is_python_launcher(hook),
        start=_ask([hook, "--version", *options]) if programs.is_program(hook) else Ran(),
        python_there=python_there,
        imports=_ask([python, "-E", "-P", "-c", _ASKS]) if python_there else Ran(),  # as the launcher starts it
    )


def _version_in(hook: str) -> str:
    """Find the version in the file itself: asked for it, the launcher would have Python answer."""
    try:
        with Path(hook).open("rb") as stream:
            content = stream.read(_LARGEST)
    except OSError:
        return ""
    found = next((match for form in _VERSIONS if (match := re.search(form, content, re.MULTILINE))), None)
    return found[1].decode("ascii") if found else ""


def _ask(command: Sequence[str]) -> Ran:
    try:
        done = subprocess.run(  # noqa: S603 - what the person's own settings start, asked for its version
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE, check=False, cwd="/"
        )
    except OSError as error:
        return Ran(trouble=error.strerror or str(error))
    except subprocess.TimeoutExpired:
        return Ran(trouble=f"it did not end within {_PATIENCE:g} s")
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return Ran(done.returncode, done.stdout.decode(errors="replace").strip(), lines[-1] if lines else "")
