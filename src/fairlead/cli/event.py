"""`fairlead <Event>`: reads a payload, fires it at the hooks that were named, and answers the client."""

from __future__ import annotations

import os
import sys
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

import msgspec

from fairlead import __version__
from fairlead.clients import CLIENTS
from fairlead.decide import GUARDED_EVENTS, Settled, decide_with_hooks, find_policy, read_event, verdict_of
from fairlead.errors import FairleadError, UsageError
from fairlead.events import HookEvent, HookOutput
from fairlead.execute import cancelled_by_signals, execute, read_stdin, reserved_stdout, write_answer
from fairlead.hooks import CancellationToken, HookContext, HookManager

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.events import Event
    from fairlead.journal import Verdict


_LAUNCHED = "--launched"
"""For the launcher alone, so nobody is told of it who mistypes another."""
_FLAGS = ("--waited", "--wake")
"""Likewise."""


class Launched(msgspec.Struct, frozen=True):
    """A launcher called us, because it found no daemon: what we decide is to be written down."""

    id: str
    pid: int = 0
    start: int = 0


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    hooks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    timeout: float | None = None
    client: str = "claude"
    launched: Launched | None = None
    waited: bool = False
    """It was decided by a daemon, and waited for mail, and that has gone."""
    wake: bool = False
    """The client does not wait for this one: mail that comes wakes its session."""


def run(name: str, args: Sequence[str]) -> int:
    """Decide one event and return the exit code."""
    known = HookEvent.find(name)
    kind = known.value if known else name
    options = _options(args)
    begun = perf_counter()
    payload = read_stdin(kind)
    try:
        event = read_event(payload, kind)
    except FairleadError as error:
        print(f"fairlead: {error}", file=sys.stderr)
        code = 2 if b'"PreToolUse"' in payload or kind == "PreToolUse" else 1
        _write_down(options, kind, payload, None, "failed", code, str(error), perf_counter() - begun)
        return code
    if event.event_name == "Stop" and (options.waited or options.wake):  # a gate is decided again, whatever was said
        return _wait(event, payload, options)
    with reserved_stdout() as stdout:
        settled = _decide(event, payload, options)
        if sys.stdout is not None:
            sys.stdout.flush()  # what hooks printed comes before the reason
        for line in settled.log:
            print(line, file=sys.stderr)
        answer = CLIENTS[options.client].render(event, settled.output)
        if answer.stderr:
            print(answer.stderr, file=sys.stderr)
        stays = _stays(event, settled, options)
        code = write_answer(stdout, b"" if stays else answer.stdout, answer.exit_code, event)
    if event.event_name == "SessionStart":
        from fairlead.execute import export_session

        export_session(os.environ.get("CLAUDE_ENV_FILE", ""), event.session_id)
    verdict, reason = verdict_of(settled.output), settled.output.reason or ""
    _write_down(options, kind, payload, event, verdict, code, reason, perf_counter() - begun)
    return _wait(event, payload, options, answer.stdout) if stays else code


def _stays(event: Event, settled: Settled, options: Options) -> bool:
    if event.event_name != "Stop" or options.launched is None:
        return False
    from fairlead.cli import staying

    return staying.stays(event, settled.output)


def _wait(event: Event, payload: bytes, options: Options, said: bytes = b"") -> int:
    from fairlead.cli import staying

    if event.event_name != "Stop":
        raise UsageError(f"{' and '.join(_FLAGS)} are for Stop alone")
    return staying.wake(event, payload, options) if options.wake else staying.wait(event, payload, options, said)


def _options(args: Sequence[str]) -> Options:
    found: dict[str, list[str]] = {"--hooks": [], "--rules": [], "--timeout": [], "--client": [], _LAUNCHED: []}
    words = iter(args)
    flags = {word for word in args if word in _FLAGS}
    for word in words:
        key, equals, value = word.partition("=")
        if word in flags:
            continue
        if key not in found:
            told = ", ".join(name for name in found if name != _LAUNCHED)
            raise UsageError(f"unknown option {word!r}; options are {told}")
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        found[key].append(value)
    client = found["--client"][-1] if found["--client"] else "claude"
    if client not in CLIENTS:
        raise UsageError(f"--client: expected one of {', '.join(CLIENTS)}, got {client!r}")
    launched = _launched(found[_LAUNCHED])
    return Options(
        hooks=tuple(found["--hooks"]),
        rules=tuple(found["--rules"]),
        timeout=_seconds(found["--timeout"]),
        client=client,
        launched=launched,
        waited="--waited" in flags,
        wake="--wake" in flags,
    )


def _launched(values: list[str]) -> Launched | None:
    """Read what the launcher says of itself: `ID,PID,START`."""
    if not values:
        return None
    name, _, rest = values[-1].partition(",")
    pid, _, start = rest.partition(",")
    return Launched(name, int(pid) if pid.isdigit() else 0, int(start) if start.isdigit() else 0)


def _seconds(values: list[str]) -> float | None:
    if not values:
        return None
    try:
        seconds = float(values[-1])
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise UsageError(f"--timeout: expected a number of seconds above 0, got {values[-1]!r}")
    return seconds


def _decide(event: Event, payload: bytes, options: Options) -> Settled:
    """Fire the event. Hooks and policies that cannot be loaded count as hooks that failed: they deny on a gate."""
    from fairlead.cli.loading import denies, load_manager, rules_env

    token = CancellationToken()
    deadline = None if options.timeout is None else monotonic() + options.timeout
    env = rules_env(options.rules)
    ctx = HookContext(event.session_id, token, cwd=event.cwd, env=env, deadline=deadline)
    with cancelled_by_signals(token):
        manager = HookManager()
        problems = load_manager(manager, event, options.hooks, options.rules)
        broken = [str(problem) for problem in problems if denies(problem)]
        if broken and event.can_block:
            return Settled(output=HookOutput.deny("; ".join(broken)))
        for problem in problems:
            print(f"fairlead: {problem}", file=sys.stderr)
        policy = find_policy(event.cwd or ".")
        if not (options.hooks or options.rules or options.launched or policy.layers or policy.broken):
            print("fairlead: there is no policy, and no --hooks or --rules, so nothing can object", file=sys.stderr)
        if event.event_name in GUARDED_EVENTS:
            from fairlead.policy import register_guards

            register_guards(manager, policy.layers)
        decision = decide_with_hooks(event, policy, manager, ctx)
        return execute(event, payload, decision, cancellation=token, deadline=deadline)


def _write_down(  # noqa: PLR0913, PLR0917 - all that is known of it
    options: Options,
    kind: str,
    payload: bytes,
    event: Event | None,
    verdict: Verdict,
    code: int,
    reason: str,
    seconds: float,
) -> None:
    """Leave the event for the daemon that was not there, and begin one. The answer is printed by now."""
    if options.launched is None:
        return
    from fairlead.daemon import start_on_demand
    from fairlead.decide import event_record
    from fairlead.journal import Caller, spool_folder, spool_record

    environ = os.environ
    caller = Caller(
        pid=options.launched.pid,
        start=options.launched.start,
        pane=environ.get("TMUX_PANE", ""),
        tmux=environ.get("TMUX", ""),
        project=environ.get("CLAUDE_PROJECT_DIR", ""),
        env_file=environ.get("CLAUDE_ENV_FILE", ""),
        version=__version__,
    )
    record = event_record(
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
        caller=caller,
    )
    try:
        spool_record(spool_folder(), record)
    except (FairleadError, OSError) as error:
        print(f"fairlead: the event is answered, but not written down: {error}", file=sys.stderr)
    start_on_demand()
