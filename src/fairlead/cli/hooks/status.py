"""`fairlead hooks status`: in which settings files the hooks are installed, and what is different from an install."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec

from fairlead.cli.hooks import text
from fairlead.cli.hooks.install import scope_options
from fairlead.cli.support.command import Command
from fairlead.cli.support.param_types import Text
from fairlead.cli.support.screen import print_lines
from fairlead.clients._settings_file import InstallError
from fairlead.clients.claude import _install as installing
from fairlead.clients.claude import _programs as programs
from fairlead.clients.claude._install_events import read_version, show_version
from fairlead.clients.claude._status import status as settings_status


@click.command(
    "status",
    cls=Command,
    examples=("fairlead hooks status", "fairlead hooks status --scope user --json"),
    exit_codes=(
        (0, "installed in that scope, or without --scope in at least one, and up to date"),
        (1, "not installed, or to be updated"),
    ),
)
@scope_options
@click.option(
    "--client-version",
    metavar="VERSION",
    type=Text(),
    help="Compare with an install for that version, such as 2.1.325 (default: what `claude --version` says).",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; without --scope, of all three.")
def status(*, scope: str | None, client_version: str | None, client: str, as_json: bool) -> int:
    """Show in which settings files the hooks are installed.

    For each scope it shows the events, and what differs from what an install would write.
    """
    try:
        launcher, missing = programs.find_launcher(programs.launcher_folders(), sys.executable), ""
    except InstallError as error:
        launcher, missing = None, str(error)
    version = programs.client_version() if client_version is None else read_version(client_version)
    scopes = (scope,) if scope else installing.SCOPES
    statuses = [
        settings_status(one, installing.settings_file(one, Path.cwd(), os.environ), launcher, version) for one in scopes
    ]
    is_python = launcher is not None and programs.is_python_launcher(launcher.hook)
    if as_json:
        document = {
            "client": client,
            "client_version": show_version(version) if version else None,
            "launcher": launcher.hook if launcher else None,
            "launcher_kind": ("python" if is_python else "native") if launcher else None,
            "scopes": statuses,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        print_lines(text.status_lines(statuses, version, launcher.hook if launcher else missing, is_python=is_python))
    states = {one.state for one in statuses}
    return 0 if launcher and "installed" in states and states <= {"installed", "not installed"} else 1
