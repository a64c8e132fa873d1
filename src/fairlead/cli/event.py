"""`fairlead <Event>`: reads a payload, fires it at the hooks that were named, and answers the client."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import claude
from fairlead.errors import FairleadError, PayloadError, UsageError
from fairlead.events import MAX_PAYLOAD, HookEvent, HookOutput, parse
from fairlead.hooks import CancellationToken, HookContext, HookManager

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fairlead.events import Event

_CLIENTS = {"claude": claude}


class Options(msgspec.Struct, frozen=True):
    """What the command line asked for."""

    hooks: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    timeout: float | None = None
    client: str = "claude"


def run(name: str, args: Sequence[str]) -> int:
    """Decide one event and return the exit code."""
    known = HookEvent.find(name)
    kind = known.value if known else name
    options = _options(args)
    payload = _stdin(kind)
    try:
        event = _read(payload, kind)
    except FairleadError as error:
        print(f"fairlead: {error}", file=sys.stderr)
        return 2 if b'"PreToolUse"' in payload or kind == "PreToolUse" else 1
    with _answers_alone_on_stdout() as stdout:
        output = _decide(event, payload, options)
        if sys.stdout is not None:
            sys.stdout.flush()  # what hooks printed comes before the reason
        answer = _CLIENTS[options.client].render(event, output)
        if answer.stderr:
            print(answer.stderr, file=sys.stderr)
        return _printed(stdout, answer.stdout, answer.exit_code, event)


def _read(payload: bytes, kind: str) -> Event:
    """Parse; an event that we do not know must be named by the payload too, else it is a slip of the pen."""
    if HookEvent.find(kind) is None and (b'"%s"' % kind.encode()) not in payload:
        HookEvent.parse(kind)
    return parse(payload, kind)


def _options(args: Sequence[str]) -> Options:
    found: dict[str, list[str]] = {"--hooks": [], "--rules": [], "--timeout": [], "--client": []}
    words = iter(args)
    for word in words:
        key, equals, value = word.partition("=")
        if key not in found:
            raise UsageError(f"unknown option {word!r}; options are {', '.join(found)}")
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        found[key].append(value)
    client = found["--client"][-1] if found["--client"] else "claude"
    if client not in _CLIENTS:
        raise UsageError(f"--client: expected one of {', '.join(_CLIENTS)}, got {client!r}")
    return Options(tuple(found["--hooks"]), tuple(found["--rules"]), _seconds(found["--timeout"]), client)


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


def _stdin(kind: str) -> bytes:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(f"{kind} reads its payload from stdin, e.g. fairlead {kind} < payload.json")
    try:
        return sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    except OSError as error:
        raise PayloadError(f"payload: cannot read stdin: {error}") from None


def _decide(event: Event, payload: bytes, options: Options) -> HookOutput:
    """Fire the event. Hooks and policies that cannot be loaded count as hooks that failed: they deny on a gate."""
    from fairlead.cli import policing  # noqa: PLC0415 - a bad payload does without
    from fairlead.cli.loading import denies, load_manager, rules_env  # noqa: PLC0415

    token = CancellationToken()
    deadline = None if options.timeout is None else monotonic() + options.timeout
    env = rules_env(options.rules)
    ctx = HookContext(event.session_id, token, cwd=event.cwd, env=env, deadline=deadline)
    with _cancelled_by_signals(token):
        manager = HookManager()
        problems = load_manager(manager, event, options.hooks, options.rules)
        broken = [str(problem) for problem in problems if denies(problem)]
        if broken and event.can_block:
            return HookOutput.deny("; ".join(broken))
        for problem in problems:
            print(f"fairlead: {problem}", file=sys.stderr)
        policy = policing.find_policy(event)
        if not (options.hooks or options.rules or policy.layers or policy.broken):
            print("fairlead: there is no policy, and no --hooks or --rules, so nothing can object", file=sys.stderr)
        output = policing.first_word(event, policy)
        if output.blocked:
            return output
        policing.post_guards(event, manager, policy)
        result = manager.fire_sync(event, ctx)
        output = output.merge(result.output)
        return policing.carry_out(result.event, payload, output, policy, token, deadline)


@contextmanager
def _cancelled_by_signals(token: CancellationToken) -> Iterator[None]:
    """When the client tells us to go, take the commands along: they are in process groups of their own."""
    numbers = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    before = {number: signal.signal(number, lambda *_: token.cancel()) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _answers_alone_on_stdout() -> Iterator[int]:
    """Send whatever hooks print to stderr: text before its JSON makes the client ignore a denial."""
    try:
        stdout = os.dup(1)
    except OSError:
        raise UsageError("stdout is closed, and that is where the answer goes") from None
    os.dup2(2, 1)
    try:
        yield stdout
    finally:
        if sys.stdout is not None:  # Python found it closed at the start
            sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)


def _printed(stdout: int, text: bytes, exit_code: int, event: Event) -> int:
    """Print the whole answer. One that cannot be printed must not read as consent."""
    try:
        while text:
            text = text[os.write(stdout, text) :]
    except OSError as error:
        print(f"fairlead: cannot write the answer: {error}", file=sys.stderr)
        return 2 if event.can_block else 1
    return exit_code
