"""Gathers the facts of all probes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import DEFAULT_CLIENT, Launcher, client_named
from fairlead.doctor._facts import Facts
from fairlead.doctor.probes._daemon import probe_daemon
from fairlead.doctor.probes._policy import have_decided_events, probe_policy
from fairlead.doctor.probes._programs import others_on_path, own_launcher, probe_client, probe_programs
from fairlead.doctor.probes._run_hooks import RunContext, run_hooks, select_hooks
from fairlead.doctor.probes._state import probe_state
from fairlead.errors import FairleadError
from fairlead.paths import FOLDER_VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.clients import Installer, InstallStatus, SettingsFile


class DoctorOptions(msgspec.Struct, frozen=True):
    """The options of the doctor: what it checks."""

    scope: str | None = None
    """The scope of the client's settings to check; `None` for all scopes."""
    run_foreign: bool = False
    """Whether to run hooks with unknown effects, too: those of other programs, and hooks of the user's own."""
    client_version: tuple[int, int, int] | None = None
    """The version of the client; `None` to run the client to find it out."""
    client: str = DEFAULT_CLIENT


def gather(options: DoctorOptions, version: str) -> Facts:
    """Return all facts. `version` is that of this Fairlead.

    The hooks are run last, because they may start a daemon and so change the other facts.
    Raises `FairleadError` if the current folder no longer exists.
    """
    cwd, environ = _current_folder(), dict(os.environ)
    installer = client_named(options.client).installer
    scopes = (options.scope,) if options.scope else tuple(installer.SCOPES)
    files = installer.inspect(cwd, environ)
    hooks = [hook for file in files for hook in file.hooks]
    own, client = own_launcher(), probe_client(options.client, options.client_version)
    moved = moved_variables(files, environ)
    policy, layers = probe_policy(str(cwd))
    daemon, state = probe_daemon(environ), probe_state()
    chosen = list(select_hooks(hooks, scopes))
    context = RunContext(
        cwd=str(cwd),
        environ=environ | environment(files),
        layers=layers,
        may_run_here=not moved and have_decided_events(policy.files),
        run_foreign=options.run_foreign,
        daemon_hangs=daemon.state == "silent",
        client=options.client,
    )
    return Facts(
        version=version,
        cwd=str(cwd),
        scopes=scopes,
        files=files,
        statuses=tuple(_status(installer, scope, cwd, own, client.version) for scope in scopes),
        client=client,
        programs=probe_programs(hook for hook in chosen if hook.is_ours),
        own_launcher=own,
        on_path=others_on_path(),
        moved_variables=moved,
        daemon=daemon,
        state=state,
        policy=policy,
        hook_runs=run_hooks(chosen, context),
    )


def _current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise FairleadError("this folder no longer exists; run the doctor in another one") from None


def environment(files: Iterable[SettingsFile]) -> dict[str, str]:
    """Return the environment variables that the settings files set for hooks. Later files win."""
    return {name: value for file in files for name, value in file.env.items()}


def moved_variables(files: Iterable[SettingsFile], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the folder variables that the settings set to other values than `environ` has."""
    given = environment(files)
    return tuple(name for name in FOLDER_VARIABLES if name in given and given[name] != environ.get(name, ""))


def _status(
    installer: Installer, scope: str, cwd: Path, own: str, version: tuple[int, int, int] | None
) -> InstallStatus:
    is_old = version is not None and version < installer.MIN_VERSION  # another check reports it
    served = None if is_old else version
    launcher = Launcher(own, os.path.abspath(sys.executable)) if own else None
    return installer.status(scope, installer.settings_file(scope, cwd, os.environ), launcher, served)
