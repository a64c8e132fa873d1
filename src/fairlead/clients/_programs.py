"""Finds the programs that an install needs: our launcher, the client, git. Knows no client."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.clients._install_types import Launcher
from fairlead.clients._settings_file import InstallError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LAUNCHER = "fairlead-hook"
PYTHON_LAUNCHER = "written in Python, about 10 ms slower per event: no C compiler was found when fairlead was installed"
COMPILE_LAUNCHER = "install a C compiler, then run: pip install --force-reinstall --no-cache-dir fairlead"
"""How to replace a launcher in Python with a compiled one."""

TIMEOUT = 10.0
"""Seconds after which a program that only prints information is ended."""


def launcher_folders() -> list[Path]:
    """Return the folders in which this installation may have its programs, the most likely first."""
    own = Path(os.path.realpath(sys.argv[0])).parent  # pipx and the like put only a link on the PATH
    return list(dict.fromkeys([own, Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]))


def find_launcher(folders: Iterable[Path], python: str) -> Launcher:
    """Return the launcher in the first of the folders that has one. Raise `InstallError` if none has.

    The PATH is not searched: its launcher might belong to another installation. `python` is the path of the
    interpreter that the launcher starts.
    """
    candidates = [folder.absolute() / LAUNCHER for folder in folders]
    hook = next((file for file in candidates if is_program(str(file))), None)
    if hook is None:
        searched = ", ".join(str(file.parent) for file in candidates)
        raise InstallError(
            f"there is no {LAUNCHER} in {searched}; install fairlead again: pip install --force-reinstall fairlead"
        )
    return Launcher(str(hook), os.path.abspath(python))


def is_python_launcher(file: str) -> bool:
    """Return whether a launcher is the Python script that is used where the program could not be compiled."""
    try:
        with open(file, "rb") as stream:
            first_line = stream.readline(256)
    except OSError:
        return False
    return first_line.startswith(b"#!") and b"python" in first_line


def is_program(file: str) -> bool:
    """Return whether a file is executable."""
    return Path(file).is_file() and os.access(file, os.X_OK)


def output_of(name: str, *args: str, env: Mapping[str, str], path: str | None = None) -> str:
    """Run a program on the PATH and return its stdout; "" if it does not exist, fails or takes too long.

    `env` is added to the environment. `path` is the PATH to search; `None` for that of this process.
    """
    program = shutil.which(name, path=path)
    done = _run([program, *args], env={**os.environ, **env}) if program else None
    return done.stdout if done and done.returncode == 0 else ""


def is_git_ignored(file: Path) -> bool | None:
    """Return whether git ignores a file; `None` without git or a repository."""
    folder = next((folder for folder in file.parents if folder.is_dir()), Path("/"))
    done = _run(["git", "-C", str(folder), "check-ignore", "--quiet", str(file)])
    return {0: True, 1: False}.get(done.returncode) if done else None


def _run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(  # noqa: S603 - the user's own programs, without a shell
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
