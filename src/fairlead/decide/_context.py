"""The policy that an event is decided under, and what follows from it for idle agents. Reads files; runs nothing."""

from __future__ import annotations

from fairlead.clients import client_or_default
from fairlead.events import HookEvent, OtherEvent
from fairlead.journal import DOCTOR_SESSION
from fairlead.policy import NotCached, PolicyError, SessionCaller, load_session_policy
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairlead.events import Event
    from fairlead.policy import Layer, Notice, StayMode
    from fairlead.process import Process

STAY_VARIABLE = "FAIRLEAD_STAY"
"""Says how idle agents wait where no policy file does. `fairlead hooks install` writes it into the settings."""
DEFAULT_TURNS_PER_THREAD = 20
DEFAULT_TURNS_PER_HOUR = 60
WAKE_EVENTS = frozenset({"SessionStart", "UserPromptSubmit", "Stop"})
"""Events with a second hook, which the client does not wait for, and whose end wakes the session (`--wake`)."""
DEFAULT_WAIT = 570
"""Seconds: less than the ten minutes that a client gives a hook by default."""

WARNS_THE_USER = frozenset({"SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"})
"""Events at which the person is told what is wrong with the policy."""

_STARTED_BY_PERSON = frozenset({"startup", "resume", "clear"})
"""The sources of a SessionStart that a person causes. A session also starts again after its context was compacted."""
_STAYS: tuple[StayMode, ...] = ("always", "wake", "no")


class PolicyContext(Struct, frozen=True):
    """The policy files that apply to an event, and what is wrong with them."""

    layers: tuple[Layer, ...] = ()
    warnings: tuple[str, ...] = ()
    broken: str | None = None
    """Why no policy could be loaded although there is a file."""
    cached_only: bool = False
    """No file may be read for this event: the policies above its files must be in the memory of this process too."""

    @property
    def acting(self) -> tuple[Layer, ...]:
        """The layers whose commands run and whose texts are shown: only files that are trusted."""
        return tuple([layer for layer in self.layers if layer.trusted and layer.runs_commands])


class IdleSettings(Struct, frozen=True):
    """How mail reaches an agent that has nothing left to do."""

    stay: StayMode = "no"
    wait: int = DEFAULT_WAIT
    """Seconds of one wait."""
    max_reminders: int = 0
    """How often in a row the agent is reminded of the same tasks; 0 means no limit."""
    turns_per_thread: int = DEFAULT_TURNS_PER_THREAD
    """How many turns mail of one thread may cause without a person; 0 means no limit."""
    turns_per_hour: int = DEFAULT_TURNS_PER_HOUR


def find_policy(cwd: str, *, cached_only: bool = False) -> PolicyContext:
    """Load the policy files that apply in a folder, all as trusted: for what belongs to no session.

    With `cached_only`, raise `NotCached` instead of reading a file.
    """
    from fairlead.policy import load_policy

    try:
        loaded = load_policy(cwd, cached_only=cached_only)
    except PolicyError as error:
        return _broken(error)
    return PolicyContext(loaded.layers, loaded.warnings, cached_only=cached_only)


def find_event_policy(  # noqa: PLR0913 - keyword-only
    event: Event,
    cwd: str,
    *,
    project: str = "",
    process: Process = (0, 0),
    cached_only: bool = False,
    is_answered: bool = True,
) -> PolicyContext:
    """Load the policy files that apply to an event of a session: those above its folder, and those of its project.

    `project` is the folder that the client names as the project, `process` is the client. The first event of a session
    records how its files are, which are trusted like that. With `cached_only`, raise `NotCached` instead of reading or
    recording anything. An event that another hook answers begins no session, and its person is told nothing.
    """
    if not event.session_id or event.session_id == DOCTOR_SESSION:
        return find_policy(cwd, cached_only=cached_only)
    begins = is_answered and event.event_name == "SessionStart" and getattr(event, "source", None) in _STARTED_BY_PERSON
    caller = SessionCaller(event.session_id, project, *process, begins=begins)
    try:
        loaded = load_session_policy(caller, cwd, cached_only=cached_only)
    except PolicyError as error:
        return _broken(error)
    told = _tell(event, loaded.notices, cached_only=cached_only) if loaded.notices and is_answered else ()
    return PolicyContext(loaded.layers, (*loaded.warnings, *told), cached_only=cached_only)


def _tell(event: Event, notices: Sequence[Notice], *, cached_only: bool) -> tuple[str, ...]:
    """Return what the person is told now, and record that they were. Only some events show a message."""
    if event.event_name not in WARNS_THE_USER:
        return ()
    from fairlead.policy import mark_told

    if cached_only:
        raise NotCached
    mark_told(event.session_id, [notice.digest for notice in notices])
    return tuple(notice.text for notice in notices)


_ADVICE = (
    "Only a person can fix the file, or remove it; `fairlead validate` lists its errors. `cd` and `pwd` are allowed."
)


def _broken(error: PolicyError) -> PolicyContext:
    return PolicyContext(broken=f"{error}\n{_ADVICE}")


def idle_settings(event: Event, policy: PolicyContext, environ: Mapping[str, str]) -> IdleSettings:
    """Return how the agent of an event waits when idle: by the nearest file that says so, else by the environment."""
    from fairlead.policy import merge_layers

    if event.session_id == DOCTOR_SESSION:
        return IdleSettings()
    rules = merge_layers(policy.acting)
    stay = rules.mail.stay or next((stay for stay in _STAYS if stay == environ.get(STAY_VARIABLE)), None)
    can = client_or_default(event.client).capabilities
    if (stay == "always" and not can.waits_at_stop) or (stay == "wake" and not can.wakes):
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

    from fairlead.policy import Beginning, CachedPolicy, Policy, TrustedFile

    for kind in (*(event.type for event in HookEvent), OtherEvent, Policy, CachedPolicy, Beginning, TrustedFile):
        Decoder(kind)
