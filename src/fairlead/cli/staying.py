"""Agents that stay, where there was no daemon to ask: one is begun, and asked again as soon as it answers."""

from __future__ import annotations

import os
from time import monotonic, sleep
from typing import TYPE_CHECKING

from fairlead.clients import client_named
from fairlead.decide import find_policy, idle_settings
from fairlead.events import HookOutput, Stop
from fairlead.execute import StoppedAgent, try_request, wait_for_mail, write_answer

if TYPE_CHECKING:
    from fairlead.cli.event import Options
    from fairlead.events import Event

PATIENCE = 5.0
"""Seconds for a daemon that is begun to answer."""

_TURN = 0.05
_NOBODY = "fairlead: no daemon answers, so this agent waits for no mail; see fairlead doctor"


def stays(event: Event, output: HookOutput) -> bool:
    """Tell whether an agent that was let stop is to wait for mail instead."""
    return isinstance(event, Stop) and not output.blocked and _how(event) == "always"


def wait(event: Event, payload: bytes, options: Options, said: bytes) -> int:
    """Wait for mail in place of stopping. If no daemon can be had, the agent stops, and the person is told."""
    code = _waited(event, payload, options, said)
    if code is not None:
        return code
    answer = client_named(options.client).render(event, HookOutput(system_message=_NOBODY))
    return write_answer(1, said or answer.stdout, 0, event)


def wake(event: Event, payload: bytes, options: Options) -> int:
    """Wait in the background for mail that wakes the session; without a daemon, none does."""
    return (_waited(event, payload, options, b"") if _how(event) == "wake" else 0) or 0


def _waited(event: Event, payload: bytes, options: Options, said: bytes) -> int | None:
    from fairlead.journal import Caller
    from fairlead.process import is_alive

    launched = options.launched
    if launched is None or not is_alive(
        launched.pid, launched.start
    ):  # a client that is killed leaves its hooks behind
        return 0
    project = os.environ.get(client_named(options.client).variables.project_dir, "")
    caller = Caller(pid=launched.pid, start=launched.start, project=project)
    agent = StoppedAgent(
        event=event,
        payload=payload,
        id=launched.id,
        client=options.client,
        caller=caller,
        stdout=said,
        wakes=options.wake,
    )
    return wait_for_mail(agent) if _is_reached() else None


def _how(event: Event) -> str:
    return idle_settings(event, find_policy(event.cwd or "."), os.environ).stay


def _is_reached() -> bool:
    """Begin a daemon if there is none, and wait until it answers."""
    from fairlead.daemon import start_on_demand

    deadline = monotonic() + PATIENCE
    while try_request("GET", "/v1/status", timeout=PATIENCE) is None:
        start_on_demand()
        if monotonic() > deadline:
            return False
        sleep(_TURN)
    return True
