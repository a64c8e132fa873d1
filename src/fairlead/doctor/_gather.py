"""Gathers all facts, from every probe."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients.claude._hook_entries import Launcher
from fairlead.clients.claude._install import SCOPES, settings_file
from fairlead.clients.claude._install_events import OLDEST
from fairlead.clients.claude._status import status
from fairlead.doctor._facts import Facts
from fairlead.doctor.probes import _settings as settings
from fairlead.doctor.probes._daemon import probe_daemon
from fairlead.doctor.probes._policy import is_in_use, probe_policy
from fairlead.doctor.probes._programs import others_on_path, own_launcher, probe_client, probe_programs
from fairlead.doctor.probes._run_hooks import RunContext, run_hooks, select_hooks
from fairlead.doctor.probes._state import probe_state
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.clients.claude._status import Status


class Options(msgspec.Struct, frozen=True):
    """What to check."""

    scope: str | None = None
    run_foreign: bool = False
    client_version: tuple[int, int, int] | None = None


def gather(options: Options, version: str) -> Facts:
    """Return all facts. The hooks are run last: they may start a daemon, and the report is about the state before."""
    cwd, environ = _current_folder(), dict(os.environ)
    scopes = (options.scope,) if options.scope else SCOPES
    files = settings.probe_settings(cwd, environ, settings.MANAGED)
    hooks = [hook for file in files for hook in file.hooks]
    own, client = own_launcher(), probe_client(options.client_version)
    moved = settings.settles(files, environ)
    policy, layers = probe_policy(str(cwd))
    daemon, state = probe_daemon(environ), probe_state()
    chosen = list(select_hooks(hooks, scopes))
    context = RunContext(
        cwd=str(cwd),
        environ=environ | settings.environment(files),
        layers=layers,
        may_run_here=not moved and is_in_use(policy.files),
        run_foreign=options.run_foreign,
        daemon_hangs=daemon.state == "silent",
    )
    return Facts(
        version=version,
        cwd=str(cwd),
        scopes=scopes,
        files=files,
        statuses=tuple(_status(scope, cwd, own, client.version) for scope in scopes),
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


def _status(scope: str, cwd: Path, own: str, version: tuple[int, int, int] | None) -> Status:
    served = (
        None if version is not None and version < OLDEST else version
    )  # of one that is too old, another check tells
    launcher = Launcher(own, os.path.abspath(sys.executable)) if own else None
    return status(scope, settings_file(scope, cwd, os.environ), launcher, served)
