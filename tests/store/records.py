"""Sample journal records."""

from __future__ import annotations

import msgspec

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord, Position, Record

START = 1_700_000_000.0


def event(number: int, *, session: str = "s", kind: str = "PreToolUse", payload: bytes = b'{"a":1}') -> EventRecord:
    return EventRecord(
        id=f"e{number:06}",
        at=START + number,
        event=kind,
        session=session,
        agent="a",
        tool="Bash",
        cwd="/home/x",
        route="cold",
        verdict="blocked",
        exit=2,
        reason="no",
        seconds=0.25,
        steps=1,
        caller=Caller(pid=7, start=99, pane="%1", tmux="tmux,1,0", project="/p", env_file="/e", version="1"),
        payload=msgspec.Raw(payload),
        cut=True,
    )


def commands(number: int, *, exit_code: int = 2) -> CommandsRecord:
    return CommandsRecord(
        id=f"e{number:06}",
        at=START + number + 0.5,
        verdict="said",
        exit=exit_code,
        reason="tests failed",
        seconds=0.5,
        steps=(CommandResult("make test", "failed", 1, 0.5), CommandResult("true", "ok")),
    )


def daemon_record(number: int) -> DaemonRecord:
    return DaemonRecord(at=START + number, what="started", pid=number, version="0.1")


def many(count: int, first: int = 0) -> list[Record]:
    return [event(number) for number in range(first, first + count)]


def at(offset: int, segment: int = 1) -> Position:
    return Position(segment, offset)
