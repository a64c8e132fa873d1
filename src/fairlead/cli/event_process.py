"""The parts that `event` and `light_event` share: options, finding the policy, the record for the next daemon."""

from __future__ import annotations

import os
import sys

from fairlead import __version__
from fairlead.clients import DEFAULT_CLIENT, UnknownClientError, client_named
from fairlead.decide import find_event_policy
from fairlead.errors import FairleadError, UsageError
from fairlead.lazy import suppress
from fairlead.process import process_start_time
from fairlead.structs import LIGHT, Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.decide import PolicyContext
    from fairlead.events import Event
    from fairlead.journal import Caller, Verdict

LAUNCHER_FLAGS = ("--waited", "--wake")
_LAUNCHED = "--launched"
_PUBLIC_OPTIONS = ("--hooks", "--rules", "--timeout", "--client")
"""The options that messages mention. All others are for the launcher."""


class Launched(Struct, frozen=True):
    """The event id and the process of the client, from a launcher that found no daemon."""

    id: str
    pid: int = 0
    """The pid of the client; 0 if it is not known."""
    start: int = 0
    """The start time of that process, as `process_start_time` returns it; 0 if it is not known."""


class EventOptions(Struct, frozen=True):
    """The options of the command line."""

    hooks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    timeout: float | None = None
    """Seconds for all hooks and commands together; `None` if only their own limits apply."""
    client: str = DEFAULT_CLIENT
    launched: Launched | None = None
    """`None` if no launcher started this process."""
    waited: bool = False
    """Whether a daemon has already decided the event, but ended while the launcher waited for mail."""
    wake: bool = False
    """Whether this process only waits for mail that wakes the session. The client does not wait for it."""


def parse_options(args: Sequence[str]) -> EventOptions:
    """Parse the options of an event. Raise `UsageError` if one is unknown, lacks its value, or has an invalid value."""
    values: dict[str, list[str]] = {name: [] for name in (*_PUBLIC_OPTIONS, _LAUNCHED)}
    remaining = iter(args)
    flags = {word for word in args if word in LAUNCHER_FLAGS}
    for word in remaining:
        key, equals, value = word.partition("=")
        if word in flags:
            continue
        if key not in values:
            raise UsageError(f"unknown option {word!r}; options are {', '.join(_PUBLIC_OPTIONS)}")
        value = value if equals else next(remaining, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        values[key].append(value)
    client = values["--client"][-1] if values["--client"] else DEFAULT_CLIENT
    try:
        client_named(client)
    except UnknownClientError as error:
        raise UsageError(f"--client: {error}") from None
    return EventOptions(
        hooks=tuple(values["--hooks"]),
        rules=tuple(values["--rules"]),
        timeout=_parse_timeout(values["--timeout"]),
        client=client,
        launched=_parse_launched(values[_LAUNCHED]),
        waited="--waited" in flags,
        wake="--wake" in flags,
    )


def _parse_timeout(values: list[str]) -> float | None:
    if not values:
        return None
    from fairlead.cli.support.durations import read_duration

    return read_duration("--timeout", values[-1], positive=True)


def _parse_launched(values: list[str]) -> Launched | None:
    """Parse `ID,PID,START`, the last of the values of `--launched`. Return `None` if there is none.

    A missing or invalid number becomes 0.
    """
    if not values:
        return None
    name, _, rest = values[-1].partition(",")
    pid, _, start = rest.partition(",")
    return Launched(name, int(pid) if pid.isdigit() else 0, int(start) if start.isdigit() else 0)


def find_policy_of(event: Event, options: EventOptions) -> PolicyContext:
    """Load and return the policy that applies to an event, which comes from the client that `options` name."""
    project = os.environ.get(client_named(options.client).variables.project_dir, "")
    launched = options.launched
    process = (launched.pid, launched.start) if launched else (os.getppid(), process_start_time(os.getppid()))
    return find_event_policy(event, event.cwd or ".", project=project, process=process)


def record(  # noqa: PLR0917 - all that is known of the event
    options: EventOptions,
    kind: str,
    payload: bytes,
    event: Event | None,
    verdict: Verdict,
    code: int,
    reason: str,
    seconds: float,
    hook: str = "",
) -> None:
    """Write the event and its verdict to the spool, and start a daemon. The answer is already printed.

    Do nothing if no launcher started this process. If the spool cannot be written, print why to stderr. `kind` is the
    event's name, `code` the exit code, and `seconds` how long the event took. `event` is `None` if the payload could
    not be parsed. `hook` is the user's hook that decided or failed; "" if there is none.
    """
    if options.launched is None:
        return
    from fairlead.daemon import start_on_demand
    from fairlead.decide import apply_journal_settings
    from fairlead.journal import event_record, spool_folder, spool_record
    from fairlead.policy import PolicyError

    entry = event_record(
        options.launched.id,
        kind,
        payload,
        event,
        client=options.client,
        route="cold",
        verdict=verdict,
        exit_code=code,
        reason=reason,
        seconds=seconds,
        hook=hook,
        caller=_caller_of(options, options.launched),
    )
    try:
        if not LIGHT:  # `light_event` has applied them before its answer
            with suppress(PolicyError):  # then the default applies: what looks like a secret is left out
                apply_journal_settings()
        spool_record(spool_folder(), entry)
    except (FairleadError, OSError) as error:
        print(f"fairlead: the event is answered, but not recorded: {error}", file=sys.stderr)
    start_on_demand()


def _caller_of(options: EventOptions, launched: Launched) -> Caller:
    from fairlead.journal import Caller

    environ, variables = os.environ, client_named(options.client).variables
    return Caller(
        pid=launched.pid,
        start=launched.start,
        pane=environ.get("TMUX_PANE", ""),
        tmux=environ.get("TMUX", ""),
        project=environ.get(variables.project_dir, ""),
        env_file=environ.get(variables.env_file, ""),
        version=__version__,
    )
