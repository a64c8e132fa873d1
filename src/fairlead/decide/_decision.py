"""Puts an event under the policy that holds where it happened: what is answered, and what is left to be done.

Every road decides here: the daemon, the command line without one, and programs of one's own. Nothing here runs a
command, sends a note or prints: that is `act`'s, in the process that was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.events import HookEvent, HookOutput, OtherEvent, parse
from fairlead.policy import (
    Notifications,
    Plan,
    StayMode,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.events import Event
    from fairlead.hooks import HookContext, HookManager
    from fairlead.policy import Layer

GUARDED_EVENTS = frozenset({"PreToolUse", "PermissionRequest"})
"""The events that guards look at."""

DOCTOR_SESSION = "fairlead-doctor"
"""The session that `fairlead doctor` plays: nobody works in it."""
STAY_VARIABLE = "FAIRLEAD_STAY"
"""The variable that says how agents stay where no policy does; the install writes it into the client's settings."""
DEFAULT_WAIT = 570
"""Seconds: under the ten minutes that a client gives a hook of its own accord."""

_STAYS: tuple[StayMode, ...] = ("always", "wake", "no")
_TELLS_THE_PERSON = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"})


class PolicyContext(msgspec.Struct, frozen=True):
    """The policy files that hold, and what is wrong with them."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None
    """Why there is no policy, although there is a file."""


class Decision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is answered so far, and what the caller has to do before it can answer."""

    output: HookOutput = HookOutput()
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    plan: Plan | None = None
    """Commands, and what becomes of how they end."""
    notices: Notifications | None = None
    """How the person wants to be told; `None` if not at all."""
    stays: bool = False
    """An agent that is let stop waits for mail in place of it."""
    mailed: bool = False
    """Mail is shown in the output."""


class IdleSettings(msgspec.Struct, frozen=True):
    """How an agent is reached by mail when it has nothing left to do."""

    stay: StayMode = "no"
    wait: int = DEFAULT_WAIT
    """Seconds that it waits at a time."""
    most_blocks: int = 0
    """So often in a row it may be reminded of the same tasks; 0 is no limit."""


def prepare_decoders() -> None:
    """See every type once, before several threads read events and policies.

    msgspec learns a type when it first reads one; two threads that make it do so at once crash the process.
    """
    from fairlead.policy import (
        CachedPolicy,
        Policy,
    )

    for kind in (*(event.type for event in HookEvent), OtherEvent, Policy, CachedPolicy):
        msgspec.json.Decoder(kind)


def read_event(payload: bytes, kind: str) -> Event:
    """Parse; an event that we do not know must be named by the payload too, else it is a slip of the pen."""
    if HookEvent.find(kind) is None and (b'"%s"' % kind.encode()) not in payload:
        HookEvent.parse(kind)
    return parse(payload, kind)


def find_policy(cwd: str, *, cached_only: bool = False) -> PolicyContext:
    """Load the policy that holds in a folder. `cached_only`: raise `NotHeld` rather than read a file."""
    from fairlead.policy import (
        PolicyError,
        load_policy,
    )

    try:
        loaded = load_policy(cwd, cached_only=cached_only)
    except PolicyError as error:
        return PolicyContext(
            broken=f"{error}\nOnly the user can fix the policy; `fairlead validate` lists its mistakes."
        )
    return PolicyContext(loaded.layers, loaded.warnings)


def idle_settings(event: Event, policing: PolicyContext, environ: Mapping[str, str]) -> IdleSettings:
    """Say how an agent stays: by the nearest file that says so, else by the environment of its client."""
    from fairlead.policy import merge_layers

    if event.session_id == DOCTOR_SESSION:
        return IdleSettings()
    policy = merge_layers(policing.layers)
    stay = policy.mail.stay or next((stay for stay in _STAYS if stay == environ.get(STAY_VARIABLE)), None)
    return IdleSettings(stay or "no", policy.mail.wait or DEFAULT_WAIT, policy.stop.max_blocks)


def post_guards(manager: HookManager, policing: PolicyContext, environ: Mapping[str, str] | None = None) -> None:
    """Register the guards. They protect the policy and the client's settings also where there is no policy yet."""
    from fairlead.policy import register_guards

    register_guards(manager, policing.layers, environ)


def decide(event: Event, policing: PolicyContext, manager: HookManager, ctx: HookContext) -> Decision:
    """Ask the hooks, then the policy for its commands. `manager` has the guards already, where the event is guarded."""
    output, log = _first_word(event, policing)
    notices = _notices(policing)
    if output.blocked:
        return Decision(output=output, log=log, notices=notices)
    result = manager.fire_sync(event, ctx)
    output = output.merge(result.output)
    planned = None if output.blocked else _plan(result.event, policing)
    return Decision(output=output, log=log, plan=planned, notices=notices)


def _first_word(event: Event, policing: PolicyContext) -> tuple[HookOutput, tuple[str, ...]]:
    """Say what is to be said whatever the hooks answer: a policy that cannot be read denies every tool call."""
    log: tuple[str, ...] = policing.warnings
    if policing.broken is not None:
        if event.event_name == "PreToolUse":
            return HookOutput.deny(f"The policy cannot be read, so nothing is allowed: {policing.broken}"), ()
        log = (policing.broken, *log)
    if policing.warnings and event.event_name in _TELLS_THE_PERSON:
        return HookOutput(system_message="\n".join(policing.warnings)), log
    return HookOutput.allow(), log


def _notices(policing: PolicyContext) -> Notifications | None:
    if not any(layer.policy.notifications.enabled for layer in policing.layers):
        return None
    from fairlead.policy import merge_layers

    return merge_layers(policing.layers).notifications


def _plan(event: Event, policing: PolicyContext) -> Plan | None:
    if not policing.layers:
        return None
    from fairlead.policy import plan_commands

    planned = plan_commands(event, policing.layers)
    asks = planned.steps or planned.context or planned.infinite or planned.log
    return planned if asks else None
