"""`fairlead PreToolUse` as the launcher starts it without a daemon: decides the plain case with light structs.

All other cases are left to `fairlead.cli.event` in a process with msgspec: a payload or a policy that has to be
validated, commands, notifications, the user's hooks, and every error. Until then nothing is run or printed.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter

from fairlead.cli.event_process import find_policy_of, parse_options, record
from fairlead.clients import client_named
from fairlead.decide import apply_journal_settings, decide, settle
from fairlead.execute import read_stdin, write_answer
from fairlead.policy import Guards
from fairlead.structs import NeedsMsgspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from fairlead.cli.event_process import EventOptions
    from fairlead.decide import Settled
    from fairlead.events import Event

EVENT = "PreToolUse"
_PROGRAM = "import sys; from fairlead.cli.main import main; sys.exit(main())"


def run(args: Sequence[str]) -> int:
    """Decide a tool call, answer the client, record the event, and return the exit code.

    If the call is not a plain case, or after an error, replace this process by one with msgspec. Raise `UsageError` if
    an option is wrong.
    """
    options = parse_options(args)
    client = client_named(options.client)
    started_at = perf_counter()
    payload = read_stdin(EVENT)
    try:
        event = client.parse(payload, EVENT)
        settled = _decide(event, options)
        answer = client.render(event, settled.output)
        apply_journal_settings()
    except (NeedsMsgspec, Exception):  # noqa: BLE001 - a process with msgspec fails in the same way, and reports it
        _replace_process(payload)
    for line in (*settled.log, answer.stderr):
        if line:
            print(line, file=sys.stderr)
    code = write_answer(1, answer.stdout, answer.exit_code, event)
    record(options, EVENT, payload, event, settled.verdict, code, settled.reason, perf_counter() - started_at)
    return code


def _decide(event: Event, options: EventOptions) -> Settled:
    policy = find_policy_of(event, options)
    if any(layer.policy.hooks for layer in policy.layers):
        raise NeedsMsgspec("hooks")
    if any(layer.policy.leases == "block" for layer in policy.layers):
        raise NeedsMsgspec("a warning that the daemon is needed for leases")
    decision = decide(event, policy, Guards(policy.layers))
    if decision.notifications is not None or (decision.plan is not None and decision.plan.steps):
        raise NeedsMsgspec("commands")
    return settle(event, decision)


def _replace_process(payload: bytes) -> NoReturn:
    """Replace this process by one with msgspec, which reads the same payload."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    rest = payload[_write(writer, payload) :]
    if rest and os.fork() == 0:  # not through a file: the disk may be full, and the limit on the size of files may be 0
        try:
            os.set_blocking(writer, True)
            os.close(reader)
            while rest:
                rest = rest[_write(writer, rest) :]
        finally:
            os._exit(0)
    os.dup2(reader, 0)
    os.execv(sys.executable, [sys.executable, "-E", "-P", "-c", _PROGRAM, *sys.argv[1:]])  # noqa: S606 - no shell is needed


def _write(pipe: int, data: bytes) -> int:
    """Write to a pipe, and return how many bytes were written; 0 if a pipe that does not block is full."""
    try:
        return os.write(pipe, data)
    except BlockingIOError:
        return 0
