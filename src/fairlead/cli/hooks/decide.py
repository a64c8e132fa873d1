"""Calls the hooks that a policy lists, without a daemon. They run in a worker, so that a crash denies the event."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from fairlead.decide import HookCall, ask_own_hooks
from fairlead.hooks.own import LoadRequest, ask_once, caller_variables

if TYPE_CHECKING:
    from fairlead.decide import Decision, HookCause, PolicyContext
    from fairlead.events import Event
    from fairlead.hooks.own import EventReply, EventRequest
    from fairlead.policy import Guards, HookGroup


def decide_by_own_hooks(
    event: Event, payload: bytes, policy: PolicyContext, guards: Guards | None, decision: Decision
) -> tuple[Decision, HookCause]:
    """Call the policy's hooks. Return the decision with their answer, and which of them has decided or failed."""
    call = HookCall(
        event=event,
        payload=payload,
        client=event.client,
        cwd=event.cwd or os.getcwd(),
        env={name: os.environ[name] for name in caller_variables(event.client) if name in os.environ},
        is_blocked=decision.output.blocked,
    )
    answer, cause = ask_own_hooks(call, policy, guards, _ask)
    return decision.merge(answer), cause


def _ask(group: HookGroup, ask: EventRequest) -> EventReply:
    """Ask a new worker. The output of its hooks goes to stderr, or is discarded if stderr is closed."""
    digests = {path: digest for file in group.files for path, digest in file.digests.items()}
    request = LoadRequest(tuple(file.file for file in group.files), digests)
    if sys.stderr is not None:
        return ask_once(group.interpreter, group.folder, request, ask, output=2)
    null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    try:
        return ask_once(group.interpreter, group.folder, request, ask, output=null)
    finally:
        os.close(null)
