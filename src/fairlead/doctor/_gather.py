"""Gathers all facts: the one place of the doctor that knows every part."""

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
from fairlead.doctor.probes._daemon import look_at_daemon
from fairlead.doctor.probes._policy import is_in_use, look_at_policy
from fairlead.doctor.probes._programs import look_at_client, look_at_programs, others_on_path, own_launcher
from fairlead.doctor.probes._run_hooks import Stage, own_and_foreign, play
from fairlead.doctor.probes._state import look_at_state
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.clients.claude._status import Status


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    scope: str | None = None
    run_foreign: bool = False
    client_version: tuple[int, int, int] | None = None


def gather(wish: Options, version: str) -> Facts:
    """Look at everything, then run the hooks: they start a daemon, and what was there before is to be told."""
    cwd, environ = _here(), dict(os.environ)
    scopes = (wish.scope,) if wish.scope else SCOPES
    files = settings.look_at_settings(cwd, environ, settings.MANAGED)
    hooks = [hook for file in files for hook in file.hooks]
    own, client = own_launcher(), look_at_client(wish.client_version)
    moved = settings.settles(files, environ)
    policy, layers = look_at_policy(str(cwd))
    daemon, state = look_at_daemon(environ), look_at_state()
    chosen = list(own_and_foreign(hooks, scopes))
    stage = Stage(
        cwd=str(cwd),
        environ=environ | settings.environment(files),
        layers=layers,
        may_run_here=not moved and is_in_use(policy.files),
        run_foreign=wish.run_foreign,
        daemon_hangs=daemon.state == "silent",
    )
    return Facts(
        version=version,
        cwd=str(cwd),
        scopes=scopes,
        files=files,
        statuses=tuple(_status(scope, cwd, own, client.version) for scope in scopes),
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


def _status(scope: str, cwd: Path, own: str, version: tuple[int, int, int] | None) -> Status:
    served = (
        None if version is not None and version < OLDEST else version
    )  # of one that is too old, another check tells
    launcher = Launcher(own, os.path.abspath(sys.executable)) if own else None
    return status(scope, settings_file(scope, cwd, os.environ), launcher, served)
