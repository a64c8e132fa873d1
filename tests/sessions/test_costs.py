"""What sessions cost, added up over counters that start again, go on, and arrive late; against a model that knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlead.journal import CostRecord
from fairlead.sessions import CostEntry, CostLedger

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = 1_790_000_000.0


def reported(ledger: CostLedger, session: str, usd: float, *, at: float, began: float, **more: Any) -> float:
    """Let the client report its counter, and return what was added; the record survives as JSON."""
    previous: Sequence[str] = more.pop("previous", ())
    record = ledger.measure(CostRecord(at=at, session=session, counter=usd, began=began, **more), previous)
    if record is None:
        return 0.0
    ledger.apply(msgspec.json.decode(msgspec.json.encode(record), type=CostRecord))
    return record.added


def test_a_counter_that_starts_again_is_added() -> None:
    ledger = CostLedger()
    assert reported(ledger, "s", 2.0, at=NOW, began=NOW - 100) == 2.0
    assert reported(ledger, "s", 2.5, at=NOW + 10, began=NOW - 100.5) == 0.5
    assert reported(ledger, "s", 0.25, at=NOW + 60, began=NOW + 50) == 0.25
    assert ledger.total("s") == 2.75


def test_a_client_that_is_killed_and_continued_within_a_second_starts_again() -> None:
    """Its second answer costs more than the first."""
    ledger = CostLedger()
    assert reported(ledger, "s", 0.5, at=NOW + 1, began=NOW, pid=7) == 0.5
    assert reported(ledger, "s", 0.0, at=NOW + 2, began=NOW + 1, pid=8) == 0
    assert reported(ledger, "s", 2.0, at=NOW + 3, began=NOW + 0.9, pid=8) == 2.0
    assert ledger.total("s") == 2.5


def test_a_process_whose_events_are_not_the_last_ones_is_counted_once() -> None:
    """Two processes with the same session: which of them has sent the last event is of no matter."""
    ledger = CostLedger()
    reported(ledger, "s", 3.0, at=NOW, began=NOW - 100, pid=7)
    reported(ledger, "s", 0.5, at=NOW + 1, began=NOW - 10, pid=8)
    assert reported(ledger, "s", 3.5, at=NOW + 2, began=NOW - 100, pid=8) == 0.5
    assert reported(ledger, "s", 3.75, at=NOW + 3, began=NOW - 100, pid=7) == 0.25


def test_a_counter_that_the_client_restores_is_not_added_again() -> None:
    ledger = CostLedger()
    reported(ledger, "s", 2.0, at=NOW, began=NOW - 100)
    assert reported(ledger, "s", 2.0, at=NOW + 600, began=NOW + 490) == 0
    assert reported(ledger, "s", 2.5, at=NOW + 700, began=NOW + 490) == 0.5


def test_a_counter_goes_on_in_the_next_session_of_a_process() -> None:
    """After /clear some versions of a client go on counting, and others begin at 0."""
    ledger = CostLedger()
    reported(ledger, "a", 2.0, at=NOW, began=NOW - 100)
    assert reported(ledger, "b", 2.25, at=NOW + 5, began=NOW - 100, previous=("a",)) == 0.25
    assert reported(ledger, "c", 0.125, at=NOW + 9, began=NOW - 100, previous=("a", "b")) == 0.125
    assert ledger.since(NOW - 900).usd == 2.375


def test_two_processes_with_the_same_session_are_counted_apart() -> None:
    ledger = CostLedger()
    reported(ledger, "s", 3.0, at=NOW, began=NOW - 100)
    assert reported(ledger, "s", 0.5, at=NOW + 1, began=NOW - 10) == 0.5
    assert reported(ledger, "s", 3.5, at=NOW + 2, began=NOW - 100) == 0.5
    assert reported(ledger, "s", 0.75, at=NOW + 3, began=NOW - 10) == 0.25


def test_a_report_that_was_overtaken_adds_nothing() -> None:
    ledger = CostLedger()
    reported(ledger, "s", 3.0, at=NOW, began=NOW - 100)
    assert reported(ledger, "s", 2.5, at=NOW + 0.1, began=NOW - 100) == 0
    assert reported(ledger, "s", 3.25, at=NOW + 1, began=NOW - 100) == 0.25


def test_the_cost_since_midnight_leaves_out_what_was_before() -> None:
    ledger = CostLedger()
    midnight = NOW - NOW % 900
    reported(ledger, "old", 2.0, at=midnight - 1, began=midnight - 100, folder="/p")
    reported(ledger, "old", 2.5, at=midnight + 1, began=midnight - 100, folder="/p")
    reported(ledger, "late", 4.0, at=midnight + 2, began=midnight - 3600)
    costs = ledger.since(midnight)
    assert [(one.id, one.usd, one.folder, one.at_most) for one in costs.sessions] == [
        ("late", 4.0, "", True),
        ("old", 0.5, "/p", False),
    ]
    assert (costs.usd, costs.at_most) == (4.5, True)
    assert ledger.since(midnight + 900).usd == 0


class Restarts(RuleBasedStateMachine):
    """Clients spend, are killed, continued, restored and cleared; the daemon is killed and reads its journal again."""

    def __init__(self) -> None:
        super().__init__()
        self.now = NOW
        self.ledger = CostLedger()
        self.journal: list[CostRecord] = []
        self.snapshot: tuple[bytes, int] = (b"{}", 0)
        self.clients: dict[str, list[float]] = {}
        """Session → when its process began, its counter in cents, its pid."""
        self.last_pid = 100
        self.spent: dict[str, int] = {}
        """Session → what it has really cost, in cents."""
        self.previous: dict[str, tuple[str, ...]] = {}
        self.delayed: list[CostRecord] = []

    def _report(self, session: str) -> CostRecord:
        began, cents, pid = self.clients[session]
        return CostRecord(at=self.now, session=session, counter=cents / 100, began=began, pid=int(pid))

    def _take(self, report: CostRecord) -> None:
        record = self.ledger.measure(report, self.previous.get(report.session, ()))
        if record is not None:
            self.journal.append(record)
            self.ledger.apply(record)

    @rule(number=st.integers(0, 3), pause=st.sampled_from([1, 10]))
    def start(self, number: int, pause: int) -> None:
        """A client starts, or is killed and continued: it counts from 0, and shows its line at once."""
        self.now += pause
        self.last_pid += 1
        self.clients[f"s{number}"] = [self.now, 0, self.last_pid]
        self.spent.setdefault(f"s{number}", 0)
        self._take(self._report(f"s{number}"))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), cents=st.integers(0, 500))
    def spend(self, data: st.DataObject, cents: int) -> None:
        session = data.draw(st.sampled_from(sorted(self.clients)))
        self.now += 3
        self.clients[session][1] += cents
        self.spent[session] += cents
        self._take(self._report(session))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def restore_counter(self, data: st.DataObject) -> None:
        """The client ends and is continued with its counter. It seems to have begun later."""
        session = data.draw(st.sampled_from(sorted(self.clients)))
        self.now += 30
        self.clients[session][0] += 30
        self.last_pid += 1
        self.clients[session][2] = self.last_pid
        self._take(self._report(session))

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), goes_on=st.booleans())
    def clear(self, data: st.DataObject, goes_on: bool) -> None:
        """The process goes on under another id, with its counter or from 0."""
        session = data.draw(st.sampled_from(sorted(self.clients)))
        began, cents, pid = self.clients.pop(session)
        name = f"{session}'"
        if name in self.spent:
            self.clients[session] = [began, cents, pid]
            return
        self.now += 3
        self.clients[name], self.spent[name] = [began, cents if goes_on else 0, pid], 0
        self.previous[name] = (session,)
        self._take(self._report(name))

    @precondition(lambda self: self.clients)
    @rule(data=st.data())
    def delay(self, data: st.DataObject) -> None:
        """A report is on its way, and arrives after later ones."""
        self.delayed.append(self._report(data.draw(st.sampled_from(sorted(self.clients)))))

    @precondition(lambda self: self.delayed)
    @rule()
    def arrive(self) -> None:
        report = self.delayed.pop(0)
        if self.clients.get(report.session, [0.0])[0] == report.began:
            self._take(msgspec.structs.replace(report, at=self.now))

    @rule()
    def save(self) -> None:
        self.snapshot = msgspec.json.encode(self.ledger.entries), len(self.journal)

    @rule()
    def kill_the_daemon(self) -> None:
        entries, position = self.snapshot
        self.ledger = CostLedger(msgspec.json.decode(entries, type=dict[str, CostEntry]))
        for record in self.journal[position:]:
            self.ledger.apply(record)

    @invariant()
    def the_sums_are_right(self) -> None:
        for session, cents in self.spent.items():
            assert round(100 * (self.ledger.total(session) or 0), 6) == cents
        assert round(100 * self.ledger.since(NOW - 900).usd, 6) == sum(self.spent.values())
        assert round(100 * sum(record.added for record in self.journal), 6) == sum(self.spent.values())


TestRestarts = Restarts.TestCase
TestRestarts.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
