"""Gathers all facts: the one place of the doctor that knows every part."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import DEFAULT_CLIENT, Launcher, client_named
from fairlead.doctor._facts import Facts
from fairlead.doctor.probes._daemon import look_at_daemon
from fairlead.doctor.probes._policy import is_in_use, look_at_policy
from fairlead.doctor.probes._programs import look_at_client, look_at_programs, others_on_path, own_launcher
from fairlead.doctor.probes._run_hooks import Stage, own_and_foreign, play
from fairlead.doctor.probes._state import look_at_state
from fairlead.errors import FairleadError
from fairlead.paths import SETTLING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from fairlead.clients import Installer, InstallStatus, SettingsFile


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    scope: str | None = None
    run_foreign: bool = False
    client_version: tuple[int, int, int] | None = None
    client: str = DEFAULT_CLIENT


def gather(wish: Options, version: str) -> Facts:
    """Look at everything, then run the hooks: they start a daemon, and what was there before is to be told."""
    cwd, environ = _here(), dict(os.environ)
    installer = client_named(wish.client).installer
    scopes = (wish.scope,) if wish.scope else tuple(installer.SCOPES)
    files = installer.inspect(cwd, environ)
    hooks = [hook for file in files for hook in file.hooks]
    own, client = own_launcher(), look_at_client(wish.client, wish.client_version)
    moved = settles(files, environ)
    policy, layers = look_at_policy(str(cwd))
    daemon, state = look_at_daemon(environ), look_at_state()
    chosen = list(own_and_foreign(hooks, scopes))
    stage = Stage(
        cwd=str(cwd),
        environ=environ | environment(files),
        layers=layers,
        may_run_here=not moved and is_in_use(policy.files),
        run_foreign=wish.run_foreign,
        daemon_hangs=daemon.state == "silent",
        client=wish.client,
    )
    return Facts(
        version=version,
        cwd=str(cwd),
        scopes=scopes,
        files=files,
        statuses=tuple(_status(installer, scope, cwd, own, client.version) for scope in scopes),
        client=client,
        programs=look_at_programs(hook for hook in chosen if hook.is_ours),
        own=own,
        on_path=others_on_path(),
        settles=moved,
        daemon=daemon,
        state=state,
        policy=policy,
        played=play(chosen, stage),
    )


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise FairleadError("this folder is gone; go to another, and run the doctor there") from None


def environment(files: Iterable[SettingsFile]) -> dict[str, str]:
    """Return the variables that the client sets for its hooks."""
    return {name: value for file in files for name, value in file.env.items()}


def settles(files: Iterable[SettingsFile], environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the variables by which hooks find other folders than this process does."""
    given = environment(files)
    return tuple(name for name in SETTLING if name in given and given[name] != environ.get(name, ""))


def _status(
    installer: Installer, scope: str, cwd: Path, own: str, version: tuple[int, int, int] | None
) -> InstallStatus:
    is_old = version is not None and version < installer.MIN_VERSION  # another check reports it
    served = None if is_old else version
    launcher = Launcher(own, os.path.abspath(sys.executable)) if own else None
    return installer.status(scope, installer.settings_file(scope, cwd, os.environ), launcher, served)
