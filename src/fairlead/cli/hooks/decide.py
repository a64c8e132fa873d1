"""Calls the hooks that a policy lists, without a daemon. They run in a worker, so that a crash denies the event."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from fairlead.decide import HookCall, ask_user_hooks
from fairlead.hooks.user_hooks import LoadRequest, ask_once, caller_variables

if TYPE_CHECKING:
    from fairlead.decide import Decision, HookCause, PolicyContext
    from fairlead.events import Event
    from fairlead.hooks.user_hooks import EventReply, EventRequest
    from fairlead.policy import Guards, HookGroup


def decide_by_user_hooks(
    event: Event, payload: bytes, policy: PolicyContext, guards: Guards | None, decision: Decision
) -> tuple[Decision, HookCause]:
    """Call the hooks that the policy lists. Return the decision with their answer, and which of them decided or failed.

    The decision keeps its plan only if nothing blocks the event. `guards` is `None` for an event without guards.
    """
    call = HookCall(
        event=event,
        payload=payload,
        client=event.client,
        cwd=event.cwd or os.getcwd(),
        env={name: os.environ[name] for name in caller_variables(event.client) if name in os.environ},
        is_blocked=decision.output.blocked,
    )
    answer, cause = ask_user_hooks(call, policy, guards, _ask)
    return decision.merge(answer), cause


def _ask(group: HookGroup, ask: EventRequest) -> EventReply:
    """Ask the hooks of a group in a new worker. Raise `HookWorkerError` if there is no answer.

    What the hooks print goes to stderr, or is discarded if stderr is closed.
    """
    digests = {path: digest for file in group.files for path, digest in file.digests.items()}
    request = LoadRequest(tuple(file.file for file in group.files), digests)
    if sys.stderr is not None:
        return ask_once(group.interpreter, group.folder, request, ask, output=2)
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        return ask_once(group.interpreter, group.folder, request, ask, output=null)
    finally:
        os.close(null)
