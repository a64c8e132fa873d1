"""`fairlead events`: what happened, from the journal's files; with and without a daemon."""

from __future__ import annotations

import os
import select
import stat
import sys
from time import sleep, time
from typing import TYPE_CHECKING, get_args

import msgspec

from fairlead.cli.eventlines import Printer
from fairlead.cli.options import read_span
from fairlead.errors import UsageError
from fairlead.events import HookEvent
from fairlead.journal import (
    CommandsRecord,
    EventRecord,
    JournalError,
    JournalReader,
    Position,
    Verdict,
    count_spooled,
    journal_folder,
    spool_folder,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from fairlead.journal import Record

USAGE = """\
usage: fairlead events [--follow] [--session ID] [--event NAME] [--verdict VERDICT] [--last N] [--since TIME] [--json]

Shows what happened and what was answered, the newest last: time, event, session, tool or agent, verdict, how long it
took, and the reason. Needs no daemon. Events that still wait for one are counted on stderr.

  --follow           go on with what happens from now on, until Ctrl-C
  --session ID       of that session; the first characters of its id will do
  --event NAME       of that name, e.g. PreToolUse
  --verdict VERDICT  none, said, asked, allowed, blocked or failed
  --last N           the last N events (default: 20; with --since: all of them)
  --since TIME       no older than that: 30s, 10m, 2h, 1d
  --json             one JSON object a line, with the payload; its `kind` is event, done (an event's commands have
                     ended) or daemon (it started or stopped)

example:
  fairlead events --follow --verdict blocked

exit codes: 0 shown, even if there was nothing; 1 the command line is wrong, or the journal cannot be read
"""
_TURN = 0.1
"""Seconds between two looks at the journal."""

_LATE = 60.0
"""Seconds that a daemon takes at most from an event to its record. Without one, an event can come late by days."""

_VERDICTS = get_args(Verdict)
_REMEMBERED = 1000


class Wishes(msgspec.Struct, frozen=True):
    """What the command line asks for."""

    session: str = ""
    event: str = ""
    verdict: str = ""
    last: int | None = None
    since: float = 0.0
    """Unix time."""
    follow: bool = False
    as_json: bool = False

    @property
    def is_for_all(self) -> bool:
        """Whether turns of the daemon, which are of no session, belong to it."""
        return not (self.session or self.event or self.verdict)

    def want(self, event: EventRecord, ends: Iterable[CommandsRecord] = ()) -> bool:
        """Tell whether an event is meant; its commands may have brought about another verdict."""
        return (
            event.session.startswith(self.session)
            and self.event in ("", event.event)
            and (not self.verdict or self.verdict in (event.verdict, *(end.verdict for end in ends)))
            and event.at >= self.since
        )


def run(args: Sequence[str]) -> int:
    """Show the events and return the exit code."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    wishes = _wishes(args, time())
    reader = JournalReader(journal_folder())
    try:
        _show(reader, wishes)
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:  # as of `| head`; the interpreter must not stumble over it again at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        raise JournalError(f"the events cannot be shown: {error.strerror}: {error.filename or 'stdout'}") from error
    return 0


# -- what is shown -------------------------------------------------------------------------------------


def _show(reader: JournalReader, wishes: Wishes) -> None:
    printer = Printer(as_json=wishes.as_json)
    found, end = _find(reader, wishes)
    for record, event in found:
        printer.show(record, event)
    sys.stdout.flush()
    _remark(reader, is_empty=not found and not wishes.follow)
    if wishes.follow:
        for record, event in _following(reader, wishes, end, found):
            printer.show(record, event)
            sys.stdout.flush()


def _find(reader: JournalReader, wishes: Wishes) -> tuple[list[tuple[Record, EventRecord | None]], Position]:
    """Find what is wanted, in the order of time, each event with what its commands came to; and the journal's end."""
    end = Position(0, 0)
    events: list[tuple[EventRecord, list[CommandsRecord]]] = []
    turns: list[Record] = []
    ends: dict[str, list[CommandsRecord]] = {}
    most = wishes.last if wishes.last is not None else (sys.maxsize if wishes.since else 20)
    for position, record in reader.read_backwards():
        end = max(end, position)
        if len(events) >= most or (record.at < wishes.since - _LATE and getattr(record, "route", "daemon") == "daemon"):
            break
        if isinstance(record, CommandsRecord):
            ends.setdefault(record.id, []).insert(0, record)
        elif not isinstance(record, EventRecord):
            turns.append(record)
        elif wishes.want(record, ended := ends.pop(record.id, [])):
            events.append((record, ended))
    groups: list[list[tuple[Record, EventRecord | None]]] = [
        [(event, event), *((done, event) for done in ended)] for event, ended in events
    ]
    if wishes.is_for_all:
        groups += [[(turn, None)] for turn in turns if turn.at >= wishes.since]
    groups.reverse()
    groups.sort(key=lambda group: group[0][0].at)
    return [row for group in groups for row in group], end


def _following(
    reader: JournalReader, wishes: Wishes, end: Position, shown: list[tuple[Record, EventRecord | None]]
) -> Iterator[tuple[Record, EventRecord | None]]:
    """Give what comes; what an event's commands came to, with the event if that was not long ago."""
    recent = {event.id: event for _, event in shown if event is not None}
    for _, record in reader.follow(_waiter(), end):
        if isinstance(record, EventRecord):
            recent[record.id] = record
            if len(recent) > _REMEMBERED:
                del recent[next(iter(recent))]
            if wishes.want(record):
                yield record, record
        elif isinstance(record, CommandsRecord):
            event = recent.get(record.id)
            if wishes.want(event, [record]) if event else wishes.is_for_all:
                yield record, event
        elif wishes.is_for_all:
            yield record, None


def _remark(reader: JournalReader, *, is_empty: bool) -> None:
    if is_empty:
        print("fairlead: no such events in the journal", file=sys.stderr)
    if reader.broken_lines:
        print(f"fairlead: lines of the journal that cannot be read: {reader.broken_lines}", file=sys.stderr)
    if waiting := count_spooled(spool_folder()):
        hint = "`fairlead daemon start` takes them in"
        print(f"fairlead: events that wait in the spool, and are not shown: {waiting}; {hint}", file=sys.stderr)
    sys.stderr.flush()


class _waiter:  # noqa: N801 - a function that remembers
    """Waits a little; says `False` when nobody reads any more, even if there is nothing to write."""

    def __init__(self) -> None:
        self._poll: select.poll | None = None
        if stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
            self._poll = select.poll()
            self._poll.register(sys.stdout.fileno(), 0)

    def __call__(self) -> bool:
        if self._poll is not None:
            return not self._poll.poll(_TURN * 1000)
        sleep(_TURN)
        return True


# -- the command line ----------------------------------------------------------------------------------


def _wishes(args: Sequence[str], now: float) -> Wishes:
    flags = {"--follow": "follow", "-f": "follow", "--json": "as_json"}
    given: dict[str, object] = {}
    words = iter(args)
    for word in words:
        if word in flags:
            given[flags[word]] = True
            continue
        key, equals, value = word.partition("=")
        if key not in {"--session", "--event", "--verdict", "--last", "--since"}:
            raise UsageError(f"unknown option {word!r}; see fairlead events --help")
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        given[key.removeprefix("--")] = _value(key, value, now)
    return msgspec.convert(given, Wishes)


def _value(key: str, value: str, now: float) -> object:
    if key == "--event":
        return _event(value)
    if key == "--verdict" and value not in _VERDICTS:
        raise UsageError(f"--verdict: expected one of {', '.join(_VERDICTS)}, got {value!r}")
    if key == "--last":
        if not (value.isascii() and value.isdecimal()):
            raise UsageError(f"--last: expected a whole number, got {value!r}")
        return int(value)
    if key == "--since":
        return now - read_span(key, value)
    return value


def _event(name: str) -> str:
    """Name an event as the journal does. One that we do not know may be there: clients are newer than we are."""
    if known := HookEvent.find(name):
        return known.value
    if near := HookEvent.nearest(name):
        raise UsageError(f"unknown event {name!r}; did you mean {near.value}?")
    return name
