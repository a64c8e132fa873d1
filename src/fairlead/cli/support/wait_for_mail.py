"""Waits for mail after an event that no daemon answered: starts a daemon, and requests the wait once it answers."""

from __future__ import annotations

import os
from time import monotonic, sleep
from typing import TYPE_CHECKING

from fairlead.clients import client_named
from fairlead.decide import find_event_policy, idle_settings
from fairlead.events import HookOutput, Stop
from fairlead.execute import StoppedAgent, try_request, wait_for_mail, write_answer

if TYPE_CHECKING:
    from fairlead.cli.event_process import EventOptions
    from fairlead.events import Event

DAEMON_TIMEOUT = 5.0
"""Seconds for a started daemon to answer."""

_POLL_INTERVAL = 0.05
_NO_DAEMON = "fairlead: no daemon answers, so this agent waits for no mail; see fairlead doctor"


def applies(event: Event, output: HookOutput) -> bool:
    """Return whether an agent that `output` allows to stop has to wait for mail instead (`stay: always`)."""
    return isinstance(event, Stop) and not output.blocked and _stay_mode(event) == "always"


def wait(event: Event, payload: bytes, options: EventOptions, answer: bytes) -> int:
    """Wait for mail, answer the client, and return the exit code. `answer` is the output of the event's decision.

    It is printed with the mail, or alone if none comes. Without a daemon the agent stops, with that output or, if it is
    empty, with a message to the user about the daemon. If no launcher started this process, or its client has ended,
    nothing is printed. If a launcher is installed, it replaces this process, and the function does not return.
    """
    code = _wait(event, payload, options, answer)
    if code is not None:
        return code
    message = client_named(options.client).render(event, HookOutput(system_message=_NO_DAEMON))
    return write_answer(1, answer or message.stdout, 0, event)


def wake(event: Event, payload: bytes, options: EventOptions) -> int:
    """Wait for mail that wakes the session, while the client continues, and return the exit code.

    Return 0 without waiting if the session does not have `stay: wake`, if no daemon answers, if no launcher started
    this process, or if its client has ended. An installed launcher replaces this process, as in `wait`.
    """
    return (_wait(event, payload, options, b"") if _stay_mode(event, is_answered=False) == "wake" else 0) or 0


def _wait(event: Event, payload: bytes, options: EventOptions, answer: bytes) -> int | None:
    from fairlead.journal import Caller
    from fairlead.process import is_alive

    launched = options.launched
    if launched is None or not is_alive(launched.pid, launched.start):  # a killed client leaves its hooks behind
        return 0
    project = os.environ.get(client_named(options.client).variables.project_dir, "")
    caller = Caller(pid=launched.pid, start=launched.start, project=project)
    agent = StoppedAgent(
        event=event,
        payload=payload,
        id=launched.id,
        client=options.client,
        caller=caller,
        stdout=answer,
        wakes=options.wake,
    )
    return wait_for_mail(agent) if _daemon_answers() else None


def _stay_mode(event: Event, *, is_answered: bool = True) -> str:
    project = os.environ.get(client_named(event.client).variables.project_dir, "")
    policy = find_event_policy(event, event.cwd or ".", project=project, is_answered=is_answered)
    return idle_settings(event, policy, os.environ).stay


def _daemon_answers() -> bool:
    """Start a daemon if there is none, and return whether one answers in time.

    `daemon_client.ensure_daemon` does this for a command. An event starts a daemon only where that is allowed and was
    not tried a moment ago (`start_on_demand`), so it tries again while it waits, and it never raises.
    """
    from fairlead.daemon import start_on_demand

    deadline = monotonic() + DAEMON_TIMEOUT
    while try_request("GET", "/v1/status", timeout=DAEMON_TIMEOUT) is None:
        start_on_demand()
        if monotonic() > deadline:
            return False
        sleep(_POLL_INTERVAL)
    return True
