"""`fairlead hooks status`: in which settings files the hooks are installed, and what differs from an install."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click
import msgspec

from fairlead.cli.hooks import text
from fairlead.cli.support.client_options import (
    client_option,
    find_client,
    parse_version,
    scope_option,
    version_option,
)
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import print_lines
from fairlead.clients import InstallError, find_launcher, format_version, is_python_launcher, launcher_folders


@click.command(
    "status",
    cls=Command,
    examples=("fairlead hooks status", "fairlead hooks status --scope user --json"),
    exit_codes=(
        (0, "installed in that scope, or without --scope in at least one, and up to date"),
        (1, "not installed, or to be updated"),
    ),
)
@scope_option()
@client_option
@version_option("Compare with an install for")
@click.option("--json", "as_json", is_flag=True, help="Print JSON; without --scope, of all scopes.")
def status(*, scope: str | None, client: str, client_version: str | None, as_json: bool) -> int:
    """Show in which settings files the hooks are installed.

    For each scope it shows the events, and what differs from what an install would write.
    """
    selected = find_client(client, scope)
    installer = selected.installer
    try:
        launcher, missing = find_launcher(launcher_folders(), sys.executable), ""
    except InstallError as error:
        launcher, missing = None, str(error)
    version = parse_version(selected, client_version) or installer.client_version()
    scopes = (scope,) if scope else tuple(installer.SCOPES)
    files = {name: installer.settings_file(name, Path.cwd(), os.environ) for name in scopes}
    statuses = [installer.status(name, file, launcher, version) for name, file in files.items()]
    is_python = launcher is not None and is_python_launcher(launcher.hook)
    if as_json:
        document = {
            "client": selected.name,
            "client_version": format_version(version) if version else None,
            "launcher": launcher.hook if launcher else None,
            "launcher_kind": ("python" if is_python else "native") if launcher else None,
            "scopes": statuses,
        }
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        name = text.client_name(selected, version)
        print_lines(text.status_lines(name, launcher.hook if launcher else missing, statuses, is_python=is_python))
    states = {status.state for status in statuses}
    return 0 if launcher and "installed" in states and states <= {"installed", "not installed"} else 1
