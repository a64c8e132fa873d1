"""Finds the policy that an event is decided under, and its settings for idle agents. Reads files; runs nothing."""

from __future__ import annotations

from fairlead.clients import client_or_default
from fairlead.errors import NeedsThread
from fairlead.events import HookEvent, OtherEvent
from fairlead.journal import DOCTOR_SESSION
from fairlead.policy import PolicyError, SessionCaller, load_session_policy
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Literal

    from fairlead.events import Event
    from fairlead.policy import Layer, LoadedPolicy, Notifications, Policy, PolicyNotice, StayMode
    from fairlead.process import Process

STAY_VARIABLE = "FAIRLEAD_STAY"
"""The variable that says how idle agents wait if no policy file does. `fairlead hooks install` sets it."""
DEFAULT_TURNS_PER_THREAD = 20
DEFAULT_TURNS_PER_HOUR = 60
WAKE_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "Stop"})
"""Events with a second hook, which the client does not wait for, and whose end wakes the session (`--wake`)."""
DEFAULT_WAIT = 570
"""Seconds of one wait for mail: less than the ten minutes that a client gives a hook by default."""

WARNS_THE_USER = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"})
"""Events whose replies show the user what is wrong with the policy."""

_STARTED_BY_PERSON = frozenset({"startup", "resume", "clear"})
"""The sources of a SessionStart that a person causes. A session also starts again after its context was compacted."""
_STAYS: tuple[StayMode, ...] = ("always", "wake", "no")
_MAX_CONTEXTS = 1024


class PolicyContext:
    """The policy files that apply to an event, their errors, and the settings that follow from them."""

    __slots__ = (*("_notifications", "_planned", "_rules", "acting", "broken", "layers", "lists_hooks", "warnings"),)

    def __init__(
        self,
        layers: tuple[Layer, ...] = (),
        warnings: tuple[str, ...] = (),
        broken: str | None = None,
    ) -> None:
        self.layers = layers
        self.warnings = warnings
        self.broken = broken
        """Why no policy could be loaded although there is a file; `None` if nothing is wrong."""
        self.acting = tuple([layer for layer in layers if layer.trusted and layer.runs_commands])
        """The layers whose commands run and whose texts are shown: only files that are trusted."""
        self.lists_hooks = any(layer.policy.hooks for layer in layers)
        """Whether a policy file lists hook files. A policy file that is not trusted counts: the hook files may be."""
        self._planned: frozenset[str] | None = None
        self._notifications: Notifications | Literal[False] | None = False
        self._rules: Policy | None = None

    def plans(self, event_name: str) -> bool:
        """Return whether there may be commands or texts for an event of this name."""
        if not self.acting:
            return False
        if self._planned is None:
            from fairlead.policy import planned_events

            self._planned = planned_events(self.acting)
        return event_name in self._planned

    @property
    def rules(self) -> Policy:
        """The acting layers as one policy."""
        if self._rules is None:
            from fairlead.policy import merge_layers

            self._rules = merge_layers(self.acting)
        return self._rules

    @property
    def notifications(self) -> Notifications | None:
        """How the user wants to be notified; `None` means not at all."""
        if self._notifications is False:
            is_enabled = any(layer.policy.notifications.enabled for layer in self.acting)
            self._notifications = self.rules.notifications if is_enabled else None
        return self._notifications


class IdleSettings(Struct, frozen=True):
    """How mail reaches an agent that has nothing left to do."""

    stay: StayMode = "no"
    wait: int = DEFAULT_WAIT
    """Seconds of one wait for mail."""
    max_reminders: int = 0
    """How often in a row the agent is reminded of the same tasks; 0 means no limit."""
    turns_per_thread: int = DEFAULT_TURNS_PER_THREAD
    """How many turns mail of one thread may cause without a person's prompt; 0 means no limit."""
    turns_per_hour: int = DEFAULT_TURNS_PER_HOUR


def find_policy(cwd: str, *, may_wait: bool = True) -> PolicyContext:
    """Load the policy files that apply in a folder, all as trusted, for callers that belong to no session.

    If a policy cannot be loaded, `broken` says why. Without `may_wait`, raise `NeedsThread` instead of reading a file.
    """
    from fairlead.policy import load_policy

    try:
        loaded = load_policy(cwd, may_wait=may_wait)
    except PolicyError as error:
        return _broken(error)
    return PolicyContext(loaded.layers, loaded.warnings)


def find_event_policy(
    event: Event,
    cwd: str,
    *,
    project: str = "",
    process: Process = (0, 0),
    may_wait: bool = True,
    is_answered: bool = True,
) -> PolicyContext:
    """Load the policy files that apply to an event of a session: those above its folder, and those of its project.

    `project` is the project's folder according to the client, `process` is the client's process. The first event of a
    session records the content of its policy files, which is trusted from then on. Without `may_wait`, raise
    `NeedsThread` instead of reading or recording anything. `is_answered` is `False` if another hook answers the event:
    then no session begins, and the user gets no notices.
    """
    if not event.session_id or event.session_id == DOCTOR_SESSION:
        return find_policy(cwd, may_wait=may_wait)
    begins = is_answered and event.event_name == "SessionStart" and getattr(event, "source", None) in _STARTED_BY_PERSON
    caller = SessionCaller(event.session_id, project, *process, begins=begins)
    try:
        loaded = load_session_policy(caller, cwd, may_wait=may_wait)
    except PolicyError as error:
        return _broken(error)
    if not may_wait and not loaded.notices:
        return _cached_context(loaded)
    texts = _notice_texts(event, loaded.notices, may_wait=may_wait) if loaded.notices and is_answered else ()
    return PolicyContext(loaded.layers, (*loaded.warnings, *texts))


_contexts: dict[int, tuple[LoadedPolicy, PolicyContext]] = {}
"""Contexts by the identity of the loaded policy, which stays the same object as long as nothing has changed."""


def _cached_context(loaded: LoadedPolicy) -> PolicyContext:
    known = _contexts.get(id(loaded))
    if known is not None and known[0] is loaded:
        return known[1]
    if len(_contexts) >= _MAX_CONTEXTS:
        _contexts.clear()
    context = PolicyContext(loaded.layers, loaded.warnings)
    _contexts[id(loaded)] = loaded, context
    return context


def _notice_texts(event: Event, notices: Sequence[PolicyNotice], *, may_wait: bool) -> tuple[str, ...]:
    """Return the notices to show now, and record that they were shown; none for an event that shows no message.

    Without `may_wait`, raise `NeedsThread` instead of recording.
    """
    if event.event_name not in WARNS_THE_USER:
        return ()
    from fairlead.policy import mark_notified

    if not may_wait:
        raise NeedsThread
    mark_notified(event.session_id, [notice.digest for notice in notices])
    return tuple(notice.text for notice in notices)


_ADVICE = (
    "Only a person can fix the file, or remove it; `fairlead validate` lists its errors. `cd` and `pwd` are allowed."
)


def _broken(error: PolicyError) -> PolicyContext:
    return PolicyContext(broken=f"{error}\n{_ADVICE}")


def idle_settings(event: Event, policy: PolicyContext, environ: Mapping[str, str]) -> IdleSettings:
    """Return how the agent of an event waits when it is idle; `stay` is "no" if its client cannot wait in that way.

    The nearest policy file that sets `mail.stay` decides, or else the variable `FAIRLEAD_STAY` in `environ`.
    """
    if event.session_id == DOCTOR_SESSION:
        return IdleSettings()
    rules = policy.rules
    stay = rules.mail.stay or next((stay for stay in _STAYS if stay == environ.get(STAY_VARIABLE)), None)
    if stay in {"always", "wake"}:
        can = client_or_default(event.client).capabilities
        if not (can.waits_at_stop if stay == "always" else can.wakes):
            stay = "no"
    return IdleSettings(
        stay or "no",
        rules.mail.wait or DEFAULT_WAIT,
        rules.stop.max_blocks,
        _or_default(rules.mail.max_turns_per_thread, DEFAULT_TURNS_PER_THREAD),
        _or_default(rules.mail.max_turns_per_hour, DEFAULT_TURNS_PER_HOUR),
    )


def _or_default(value: int | None, default: int) -> int:
    return default if value is None else value


def prepare_decoders() -> None:
    """Build the decoder of every type before several threads parse events and policies.

    msgspec inspects a type when it first decodes one; two threads that make it do so at once crash the process.
    """
    from msgspec.json import Decoder

    from fairlead.policy import CachedPolicy, Policy, PolicySnapshot, TrustedFile

    for kind in (*(event.type for event in HookEvent), OtherEvent, Policy, CachedPolicy, PolicySnapshot, TrustedFile):
        Decoder(kind)
