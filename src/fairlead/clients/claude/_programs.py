"""Looks for the programs that an install is about: our launcher, the client and its version, git."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude._hook_entries import Launcher
from fairlead.clients.claude._install_events import VersionError, read_version
from fairlead.clients.claude._ownership import LAUNCHER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients.claude._install_events import Version

PATIENCE = 10.0
"""Seconds for a program that only says something about itself."""


def launcher_folders() -> list[Path]:
    """List where this installation has its programs, the likeliest first."""
    own = Path(os.path.realpath(sys.argv[0])).parent  # installers of tools put a link to it on the PATH
    return list(dict.fromkeys([own, Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))]))


def find_launcher(folders: Iterable[Path], python: str) -> Launcher:
    """Find the launcher that belongs to this installation. One from the PATH might be another's."""
    looked = [folder.absolute() / LAUNCHER for folder in folders]
    found = next((file for file in looked if is_program(str(file))), None)
    if found is None:
        places = ", ".join(str(file.parent) for file in looked)
        raise InstallError(
            f"there is no {LAUNCHER} in {places}; install fairlead again: pip install --force-reinstall fairlead"
        )
    return Launcher(str(found), os.path.abspath(python))


PYTHON_LAUNCHER = "written in Python, about 10 ms slower per event: no C compiler was found when fairlead was installed"
COMPILE_LAUNCHER = "install a C compiler, then run: pip install --force-reinstall --no-cache-dir fairlead"
"""What to do about a launcher in Python."""


def is_python_launcher(file: str) -> bool:
    """Return whether a launcher is the Python script that stands in for the compiled program."""
    try:
        with open(file, "rb") as stream:
            first_line = stream.readline(256)
    except OSError:
        return False
    return first_line.startswith(b"#!") and b"python" in first_line


def is_program(file: str) -> bool:
    """Tell whether a file can be started."""
    return Path(file).is_file() and os.access(file, os.X_OK)


def client_version(path: str | None = None) -> Version | None:
    """Ask the client on the PATH for its version; `None` if there is none, or it does not say."""
    program = shutil.which("claude", path=path)
    if program is None:
        return None
    said = _run([program, "--version"], env={**os.environ, "DISABLE_AUTOUPDATER": "1"})
    try:
        return read_version(said.stdout) if said and said.returncode == 0 else None
    except VersionError:
        return None


def is_ignored(file: Path) -> bool | None:
    """Ask git whether it ignores a file; `None` if there is no git, or no repository."""
    folder = next((folder for folder in file.parents if folder.is_dir()), Path("/"))
    said = _run(["git", "-C", str(folder), "check-ignore", "--quiet", str(file)])
    return {0: True, 1: False}.get(said.returncode) if said else None


def _run(command: list[str], env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(  # noqa: S603 - the person's own programs, without a shell
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
