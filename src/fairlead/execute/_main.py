"""The program that a launcher starts when the daemon replies with a plan.

It runs the plan in the caller's process, answers the client, and writes the results to the spool.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import client_named
from fairlead.decide import Decision, apply_journal_settings, settle
from fairlead.errors import FairleadError, UsageError, failure_exit_code
from fairlead.execute._execute import commands_record, execute
from fairlead.execute._process_context import cancelled_by_signals, reserved_stdout
from fairlead.execute._stdio import read_stdin, write_answer
from fairlead.ipc import begin_printing, give_receipt
from fairlead.journal import spool_folder, spool_record
from fairlead.policy import PolicyError
from fairlead.process import CANCELLED, CancellationToken

if TYPE_CHECKING:
    from fairlead.decide import Settled
    from fairlead.events import Event

_OPTIONS = ("--client", "--id", "--plan-fd")


class BadPlanError(FairleadError):
    """The plan cannot be read. It may come from a daemon of another version."""


def main() -> None:
    """Carry out `<Event> --client NAME --id ID --plan-fd N [--ack-fd N] [--receipt NAME] [--results-fd N]`, and exit.

    The payload is on stdin. With `--results-fd`, the launcher has run the plan, but the daemon has ended. Then no
    command is run again.
    """
    args = sys.argv[1:]
    try:
        code = _run(args[0] if args else "", dict(zip(args[1::2], args[2::2], strict=False)))
    except Exception as error:  # noqa: BLE001 - a plan that cannot be carried out must not let a gated event pass
        print(f"fairlead: {error if isinstance(error, FairleadError) else repr(error)}", file=sys.stderr)
        code = failure_exit_code(*args[:1])
    sys.exit(code)


def _run(kind: str, options: dict[str, str]) -> int:
    missing = [name for name in _OPTIONS if name not in options]
    if not kind or missing:
        raise UsageError(
            f"only the launcher runs this, with {', '.join(_OPTIONS)}; missing: {', '.join(missing) or '<Event>'}"
        )
    try:
        decision = msgspec.json.decode(_read_file(int(options["--plan-fd"])), type=Decision)
    except (ValueError, OSError) as error:
        if "--results-fd" not in options:  # no command has run yet
            _decide_again(kind, options)
        raise BadPlanError(f"the daemon's plan cannot be read: {error}") from None
    daemon = _ack_connection(options.get("--ack-fd"))
    payload = read_stdin(kind)
    client = client_named(options["--client"])
    event = client.parse(payload, kind)
    token, started = CancellationToken(), monotonic()
    with reserved_stdout() as stdout, cancelled_by_signals(token):
        if "--results-fd" in options:
            settled = _settle(event, _read_file(int(options["--results-fd"])))
        else:
            settled = execute(event, client.command_payload(event, payload), decision, cancellation=token)
        begin_printing(options.get("--receipt", ""))
        for line in settled.log:
            print(line, file=sys.stderr)
        answer = client.render(event, settled.output)
        if answer.stderr:
            print(answer.stderr, file=sys.stderr)  # the reason, where the client reads it
        waits = decision.waits and not settled.output.blocked
        code = write_answer(stdout, b"" if waits else answer.stdout, answer.exit_code, event)
    if code == answer.exit_code:
        give_receipt(options.get("--receipt", ""))
        _acknowledge(daemon)
    _record(options["--id"], settled, code, monotonic() - started)
    return _wait(event, payload, options, answer.stdout) if waits else code


def _decide_again(kind: str, options: dict[str, str]) -> None:
    """Replace this process by one that decides the event without the daemon. Returns only if that fails."""
    from fairlead.execute._wait import replace_process

    args = [kind, "--launched", options["--id"], "--client", options["--client"]]
    replace_process(sys.executable, "-E", "-P", "-m", "fairlead", *args)


def _wait(event: Event, payload: bytes, options: dict[str, str], stdout: bytes) -> int:
    """Wait for mail; return the exit code. If the daemon has ended meanwhile, another process starts a new one."""
    from fairlead.execute._wait import StoppedAgent, resume_wait, wait_for_mail

    agent = StoppedAgent(event=event, payload=payload, id=options["--id"], client=options["--client"], stdout=stdout)
    code = wait_for_mail(agent)
    if code is None:
        resume_wait(agent)
    return write_answer(1, stdout, 0, event) if code is None else code


def _settle(event: Event, data: bytes) -> Settled:
    from fairlead.execute._native import read_report

    report = read_report(data)
    return settle(event, report.decision, report.results, cancelled=CANCELLED if report.cancelled else None)


def _read_file(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return file.read()


def _ack_connection(descriptor: str | None) -> int | None:
    """Return the connection on which the daemon expects an acknowledgement, or `None`. Commands do not inherit it."""
    if descriptor is None:
        return None
    os.set_inheritable(int(descriptor), False)  # noqa: FBT003 - positional only
    return int(descriptor)


def _acknowledge(daemon: int | None) -> None:
    if daemon is not None:
        with suppress(OSError):  # the daemon has ended; the next one finds the receipt
            os.write(daemon, b"\n")


def _record(event_id: str, settled: Settled, code: int, seconds: float) -> None:
    """Write the results to the spool. The answer is already printed, so an error is only reported."""
    try:
        with suppress(PolicyError):  # then the default applies: what looks like a secret is left out
            apply_journal_settings()
        spool_record(spool_folder(), commands_record(event_id, settled, code, seconds))
    except (FairleadError, OSError) as error:
        print(f"fairlead: {error}", file=sys.stderr)
