"""What the launcher runs when the daemon answers with a plan: carry it out here, answer the client, write it down."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic, time
from typing import TYPE_CHECKING

import msgspec

from fairlead.clients import CLIENTS
from fairlead.decide import Decision, read_event
from fairlead.errors import FairleadError, UsageError, failure_exit_code
from fairlead.execute._settle import Settled, settle, tell, verdict_of
from fairlead.execute._stdio import answers_alone_on_stdout, cancelled_by_signals, printed, read_stdin
from fairlead.hooks import CancellationToken
from fairlead.journal import LONGEST_REASON, CommandResult, CommandsRecord, put, spool_folder

if TYPE_CHECKING:
    from fairlead.events import Event

_OPTIONS = ("--client", "--id", "--plan-fd")


def main() -> None:
    """Carry out `<Event> --client NAME --id ID --plan-fd N [--ack-fd N]`, with the payload on stdin, and exit."""
    words = sys.argv[1:]
    try:
        code = _run(words[0] if words else "", dict(zip(words[1::2], words[2::2], strict=False)))
    except Exception as error:  # noqa: BLE001 - the boundary: a plan that cannot be carried out must not open a gate
        print(f"fairlead: {error if isinstance(error, FairleadError) else repr(error)}", file=sys.stderr)  # noqa: T201
        code = failure_exit_code(*words[:1])
    sys.exit(code)


def _run(kind: str, options: dict[str, str]) -> int:
    missing = [name for name in _OPTIONS if name not in options]
    if not kind or missing:
        raise UsageError(
            f"the launcher runs this, with {', '.join(_OPTIONS)}; missing: {', '.join(missing) or '<Event>'}"
        )
    decision = msgspec.json.decode(_read_plan(int(options["--plan-fd"])), type=Decision)
    daemon = _kept_from_commands(options.get("--ack-fd"))
    payload = read_stdin(kind)
    event = read_event(payload, kind)
    token, begun = CancellationToken(), monotonic()
    with answers_alone_on_stdout() as stdout, cancelled_by_signals(token):
        settled = settle(event, payload, decision, cancellation=token)
        tell(settled)
        for line in settled.log:
            print(line, file=sys.stderr)  # noqa: T201 - where it goes
        answer = CLIENTS[options["--client"]].render(event, settled.output)
        if answer.stderr:
            print(answer.stderr, file=sys.stderr)  # noqa: T201 - likewise
        stays = decision.stays and not settled.output.blocked
        code = printed(stdout, b"" if stays else answer.stdout, answer.exit_code, event)
    if daemon is not None and code == answer.exit_code:
        _say_printed(daemon)
    _write_down(options["--id"], settled, code, monotonic() - begun)
    return _stay(event, payload, options, answer.stdout) if stays else code


def _stay(event: Event, payload: bytes, options: dict[str, str], said: bytes) -> int:
    """Wait for mail; if the daemon has gone while the commands ran, there may be another."""
    from fairlead.execute._wait import Stopped, stay, take_up_again

    stopped = Stopped(event=event, payload=payload, id=options["--id"], client=options["--client"], said=said)
    code = stay(stopped)
    if code is None:
        take_up_again(stopped)
    return printed(1, said, 0, event) if code is None else code


def _read_plan(descriptor: int) -> bytes:
    with open(descriptor, "rb") as file:
        os.lseek(descriptor, 0, os.SEEK_SET)
        return file.read()


def _kept_from_commands(descriptor: str | None) -> int | None:
    """Give the connection to a daemon that wants to hear that the answer is printed: it ends with this process."""
    if descriptor is None:
        return None
    os.set_inheritable(int(descriptor), False)  # noqa: FBT003 - positional only
    return int(descriptor)


def _say_printed(daemon: int) -> None:
    with suppress(OSError):  # it has gone; whoever comes after it knows of nothing that was not seen
        os.write(daemon, b"\n")


def _write_down(name: str, settled: Settled, code: int, seconds: float) -> None:
    """Leave word for the daemon. The answer is printed: a record that cannot be kept is said, and no more."""
    done = CommandsRecord(
        id=name,
        at=time(),
        verdict=verdict_of(settled.output),
        exit=code,
        reason=(settled.output.reason or "")[:LONGEST_REASON],
        seconds=seconds,
        steps=tuple(
            CommandResult(r.step.run if r.step.show_command else "", r.status, r.exit_code, r.seconds)
            for r in settled.results
        ),
    )
    try:
        put(spool_folder(), done)
    except (FairleadError, OSError) as error:
        print(f"fairlead: {error}", file=sys.stderr)  # noqa: T201 - likewise
