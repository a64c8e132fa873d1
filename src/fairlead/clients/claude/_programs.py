"""Looks for the programs that an install is about: our launcher, the client and its version, git."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude._hook_entries import Launcher
from fairlead.clients.claude._install_events import VersionError, read_version
from fairlead.clients.claude._ownership import LAUNCHER
from fairlead.errors import CommandFailed
from fairlead.process import run_process

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients.claude._install_events import Version
    from fairlead.process import ProcessResult

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
        return read_version(said.stdout.decode(errors="replace")) if said and said.exit_code == 0 else None
    except VersionError:
        return None


def is_ignored(file: Path) -> bool | None:
    """Ask git whether it ignores a file; `None` if there is no git, or no repository."""
    folder = next((folder for folder in file.parents if folder.is_dir()), Path("/"))
    said = _run(["git", "-C", str(folder), "check-ignore", "--quiet", str(file)])
    return {0: True, 1: False}.get(said.exit_code) if said and said.exit_code is not None else None


def _run(command: list[str], env: dict[str, str] | None = None) -> ProcessResult | None:
    try:
        return run_process(command, env=env, deadline=monotonic() + PATIENCE)
    except CommandFailed:
        return None
