"""The policy that an event is decided under, and what follows from it for idle agents. Reads files; runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_or_default
from fairlead.events import HookEvent, OtherEvent
from fairlead.policy import StayMode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.events import Event
    from fairlead.policy import Layer

DOCTOR_SESSION = "fairlead-doctor"
"""The session of `fairlead doctor`: it gets no mail and needs nobody's attention."""
STAY_VARIABLE = "FAIRLEAD_STAY"
"""Says how idle agents wait where no policy file does. `fairlead hooks install` writes it into the settings."""
DEFAULT_WAIT = 570
"""Seconds: less than the ten minutes that a client gives a hook by default."""

_STAYS: tuple[StayMode, ...] = ("always", "wake", "no")


class PolicyContext(msgspec.Struct, frozen=True):
    """The policy files that apply to an event, and what is wrong with them."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None
    """Why no policy could be loaded although there is a file."""
    cached_only: bool = False
    """No file may be read for this event: the policies above its files must be in the memory of this process too."""


class IdleSettings(msgspec.Struct, frozen=True):
    """How mail reaches an agent that has nothing left to do."""

    stay: StayMode = "no"
    wait: int = DEFAULT_WAIT
    """Seconds of one wait."""
    max_reminders: int = 0
    """How often in a row the agent is reminded of the same tasks; 0 means no limit."""


def find_policy(cwd: str, *, cached_only: bool = False) -> PolicyContext:
    """Load the policy files that apply in a folder. With `cached_only`, raise `NotCached` instead of reading a file."""
    from fairlead.policy import PolicyError, load_policy

    try:
        loaded = load_policy(cwd, cached_only=cached_only)
    except PolicyError as error:
        return PolicyContext(broken=f"{error}\nOnly a person can fix the policy; `fairlead validate` lists its errors.")
    return PolicyContext(loaded.layers, loaded.warnings, cached_only=cached_only)


def idle_settings(event: Event, policy: PolicyContext, environ: Mapping[str, str]) -> IdleSettings:
    """Return how the agent of an event waits when idle: by the nearest file that says so, else by the environment."""
    from fairlead.policy import merge_layers

    if event.session_id == DOCTOR_SESSION:
        return IdleSettings()
    rules = merge_layers(policy.layers)
    stay = rules.mail.stay or next((stay for stay in _STAYS if stay == environ.get(STAY_VARIABLE)), None)
    can = client_or_default(event.client).capabilities
    if (stay == "always" and not can.waits_at_stop) or (stay == "wake" and not can.wakes):
        stay = "no"
    return IdleSettings(stay or "no", rules.mail.wait or DEFAULT_WAIT, rules.stop.max_blocks)


def prepare_decoders() -> None:
    """Build the decoder of every type before several threads parse events and policies.

    msgspec inspects a type when it first decodes one; two threads that make it do so at once crash the process.
    """
    from fairlead.policy import CachedPolicy, Policy

    for kind in (*(event.type for event in HookEvent), OtherEvent, Policy, CachedPolicy):
        msgspec.json.Decoder(kind)
