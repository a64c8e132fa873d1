"""`fairlead events`: past events and their answers, read from the journal's files; needs no daemon."""

from __future__ import annotations

import os
import select
import stat
import sys
from time import sleep, time
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from fairlead.cli.support.command import Command
from fairlead.cli.support.completion_values import complete_events, complete_sessions
from fairlead.cli.support.event_text import record_to_json, record_to_text
from fairlead.cli.support.invocation import Screen, current, print_error, print_lines, stdout_screen
from fairlead.cli.support.param_types import Duration, Number, OneOf, Text
from fairlead.errors import UsageError
from fairlead.events import HookEvent
from fairlead.journal import (
    DOCTOR_SESSION,
    CommandsRecord,
    CostRecord,
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
    from collections.abc import Callable, Iterable, Iterator

    from fairlead.journal import DaemonRecord

    Shown = EventRecord | CommandsRecord | DaemonRecord
    Row = tuple[Shown, EventRecord | None]
    """A record, and its event: the record itself if it is an event, `None` if there is none or it is not known."""

_POLL_INTERVAL = 0.1
_MAX_DELAY = 60.0
"""Maximum seconds from an event to its record if a daemon decides it. Otherwise it may be recorded days later."""

_DEFAULT_COUNT = 20
_MAX_REMEMBERED = 1000
_VERDICTS = get_args(Verdict)


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    session: str = ""
    event: str = ""
    verdict: str = ""
    last: int | None = None
    """The maximum number of events; `None` if the option was not given."""
    since: float = 0.0
    """The Unix time from which events are shown; 0 for no limit."""
    follow: bool = False
    as_json: bool = False

    @property
    def has_no_filter(self) -> bool:
        """Whether no session, event or verdict is selected. Then starts and stops of the daemon are shown, too."""
        return not (self.session or self.event or self.verdict)

    @property
    def count(self) -> int:
        """The maximum number of past events to show."""
        return self.last if self.last is not None else sys.maxsize if self.since else _DEFAULT_COUNT

    def matches(self, event: EventRecord, ends: Iterable[CommandsRecord] = ()) -> bool:
        """Return whether the options select an event. `ends` are the records of its commands.

        For `--verdict`, the verdict of the event or of one of these records has to match. Events of `fairlead doctor`
        are selected only by `--session`.
        """
        return bool(
            event.session.startswith(self.session)
            and (self.session or event.session != DOCTOR_SESSION)
            and self.event in ("", event.event)
            and (not self.verdict or self.verdict in (event.verdict, *(end.verdict for end in ends)))
            and event.at >= self.since
        )


# -- which records are shown ---------------------------------------------------------------------------


def find_rows(reader: JournalReader, options: Options) -> tuple[list[Row], Position]:
    """Return the past rows that `options` select, oldest first, and the end of the journal.

    The row of an event precedes those of its commands. In the daemon, raise `CommandDeclined` if too many records would
    have to be read.
    """
    end = Position(0, 0)
    events: list[tuple[EventRecord, list[CommandsRecord]]] = []
    others: list[DaemonRecord] = []
    ends: dict[str, list[CommandsRecord]] = {}
    invocation = current()
    for count, (position, record) in enumerate(reader.read_backwards()):
        invocation.check_records_read(count)
        end = max(end, position)
        is_timely = getattr(record, "route", "daemon") == "daemon"
        if len(events) >= options.count or (record.at < options.since - _MAX_DELAY and is_timely):
            break
        if isinstance(record, CommandsRecord):
            ends.setdefault(record.id, []).insert(0, record)
        elif not isinstance(record, EventRecord):
            others += [] if isinstance(record, CostRecord) else [record]
        elif options.matches(record, its_ends := ends.pop(record.id, [])):
            events.append((record, its_ends))
    groups: list[list[Row]] = [[(event, event), *((done, event) for done in its_ends)] for event, its_ends in events]
    if options.has_no_filter:
        groups += [[(other, None)] for other in others if other.at >= options.since]
    groups.reverse()
    groups.sort(key=lambda group: group[0][0].at)
    return [row for group in groups for row in group], end


def follow_rows(reader: JournalReader, options: Options, end: Position, shown: Iterable[Row]) -> Iterator[Row]:
    """Yield the rows after `end` that `options` select, as they are written, until stdout has no reader.

    `shown` are the rows before `end`. In the row of a `CommandsRecord`, the event is `None` unless it is recent.
    """
    recent = {event.id: event for _, event in shown if event is not None}
    for _, record in reader.follow(_make_waiter(), end):
        if isinstance(record, EventRecord):
            recent[record.id] = record
            if len(recent) > _MAX_REMEMBERED:
                del recent[next(iter(recent))]
            if options.matches(record):
                yield record, record
        elif isinstance(record, CommandsRecord):
            event = recent.get(record.id)
            if options.matches(event, [record]) if event else options.has_no_filter:
                yield record, event
        elif options.has_no_filter and not isinstance(record, CostRecord):
            yield record, None


def _make_waiter() -> Callable[[], bool]:
    """Return a function that waits briefly, and returns whether stdout still has a reader; `True` if it is no pipe."""
    if not stat.S_ISFIFO(os.fstat(sys.stdout.fileno()).st_mode):
        return _sleep
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return lambda: not poll.poll(_POLL_INTERVAL * 1000)


def _sleep() -> bool:
    sleep(_POLL_INTERVAL)
    return True


def parse_event_name(name: str) -> str:
    """Return an event's name, given in any spelling, as the journal writes it.

    An unknown name is returned unchanged, because a newer client may have the event. Raise `UsageError` if it is
    similar to a known name.
    """
    if known := HookEvent.find(name):
        return known.value
    if near := HookEvent.nearest(name):
        raise UsageError(f"unknown event {name!r}; did you mean {near.value}?")
    return name


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "events",
    cls=Command,
    examples=("fairlead events --follow --verdict blocked", "fairlead events --since 2h --json"),
    exit_codes=(
        (0, "shown, even if there was nothing"),
        (1, "the command line is wrong, or the journal cannot be read"),
        (130, "Ctrl-C ended --follow"),
    ),
)
@click.option("-f", "--follow", is_flag=True, help="Go on with new events, until Ctrl-C.")
@click.option(
    "--session",
    metavar="ID",
    type=Text(),
    default=None,
    shell_complete=complete_sessions,
    help="Events of this session; the first characters of its id are enough.",
)
@click.option(
    "--event",
    metavar="NAME",
    type=Text(),
    shell_complete=complete_events,
    help="Events with this name, such as PreToolUse.",
)
@click.option(
    "--verdict",
    metavar="VERDICT",
    type=OneOf(_VERDICTS),
    help="Events with this verdict: none, said, asked, allowed, blocked or failed.",
)
@click.option("--last", metavar="N", type=Number(0), help="The last N events (default: 20; with --since, all of them).")
@click.option("--since", metavar="DURATION", type=Duration(), help="Events of the last 30s, 10m, 2h or 1d.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help=(
        "One JSON object a line, with the payload. Its `kind` is event, done (an event's commands have ended) or "
        "daemon (it started or stopped)."
    ),
)
def events(**given: Any) -> int:
    """Show past events and their answers.

    The newest comes last: time, event, session, tool or agent, verdict, duration, and the reason. Needs no daemon.
    Events that still wait for a daemon are counted on stderr.
    """
    try:
        _show(JournalReader(journal_folder()), _to_options(given, time()))
    except BrokenPipeError:  # `fairlead events | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that Python does not complain at its exit
    except OSError as error:
        advice = "; make it readable" if isinstance(error, PermissionError) else ""
        raise JournalError(
            f"the events cannot be shown: {error.strerror}: {error.filename or 'stdout'}{advice}"
        ) from error
    return 0


def _to_options(given: dict[str, Any], now: float) -> Options:
    values = {key: value for key, value in given.items() if value is not None}
    if "since" in values:
        values["since"] = now - values["since"]
    if "event" in values:
        values["event"] = parse_event_name(values["event"])
    return Options(**values)


def _show(reader: JournalReader, options: Options) -> None:
    invocation, screen = current(), stdout_screen()
    if options.follow:
        invocation.require_own_process("it goes on until Ctrl-C")
    rows, end = find_rows(reader, options)
    print_lines(_to_text(row, options, screen) for row in rows)
    invocation.stdout.flush()
    if not rows and not options.follow:
        print_error(f"fairlead: {_nothing(options)}")
    _print_remarks(reader)
    if options.follow:
        for row in follow_rows(reader, options, end, rows):
            print(_to_text(row, options, screen), file=invocation.stdout, flush=True)


def _to_text(row: Row, options: Options, screen: Screen) -> str:
    record, event = row
    return record_to_json(record) if options.as_json else record_to_text(record, event, screen)


def _nothing(options: Options) -> str:
    if options.has_no_filter and not options.since and options.count:
        return "no events yet; `fairlead hooks status` shows whether the hooks are installed"
    return "no such events in the journal"


def _print_remarks(reader: JournalReader) -> None:
    if reader.broken_lines:
        print_error(f"fairlead: lines of the journal that cannot be read: {reader.broken_lines}")
    if waiting := count_spooled(spool_folder()):
        hint = "`fairlead daemon start` records them"
        print_error(f"fairlead: events in the spool, which are not shown: {waiting}; {hint}")
    current().stderr.flush()
