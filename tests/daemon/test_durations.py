"""Which events are handled in the event loop: not those of places where they were slow lately."""

from __future__ import annotations

import pytest

from fairlead.daemon.events import _handler
from fairlead.daemon.events._handler import _Durations

PLACE = ("/project", "PreToolUse")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The time, and how long other programs have run in place of this thread."""
    times = {"now": 100.0, "delay": 0.0}
    monkeypatch.setattr(_handler, "monotonic", lambda: times["now"])
    monkeypatch.setattr(_handler, "_run_delay", lambda: times["delay"])
    return times


def take(durations: _Durations, clock: dict[str, float], seconds: float, delay: float = 0.0) -> None:
    """Handle an event that takes so long, for a part of which other programs ran."""
    before = durations.delay_before(PLACE)
    clock["delay"] += delay
    clock["now"] += seconds
    if before is not None or seconds > 0.002:
        durations.note(PLACE, seconds, before)


def test_the_first_event_is_handled_in_a_thread(clock: dict[str, float]) -> None:
    durations = _Durations()
    assert not durations.are_quick(PLACE)
    durations.note_in_thread(PLACE, 0.01)
    assert durations.are_quick(PLACE)
    assert not durations.are_quick(("/other", "PreToolUse"))


def test_after_two_slow_events_in_a_row_they_are_handled_in_threads_for_a_second(clock: dict[str, float]) -> None:
    durations = _Durations()
    durations.note_in_thread(PLACE, 0.01)
    for seconds in (0.01, 0.0001, 0.01):
        take(durations, clock, seconds)
        assert durations.are_quick(PLACE)
    take(durations, clock, 0.01)
    assert not durations.are_quick(PLACE)
    clock["now"] += 1.0
    assert durations.are_quick(PLACE)
    take(durations, clock, 0.0001)
    take(durations, clock, 0.01)
    assert durations.are_quick(PLACE)


def test_as_long_as_events_are_slow_they_are_tried_in_the_event_loop_less_and_less_often(
    clock: dict[str, float],
) -> None:
    durations = _Durations()
    durations.note_in_thread(PLACE, 5.0)
    pauses = [pause_of(durations, clock)]
    for _ in range(8):
        take(durations, clock, 5.0)
        pauses.append(pause_of(durations, clock))
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]
    take(durations, clock, 0.0001)
    take(durations, clock, 0.01)
    assert durations.are_quick(PLACE)


def pause_of(durations: _Durations, clock: dict[str, float]) -> int:
    """Return after how many seconds events are handled in the event loop again, and wait until then."""
    seconds = 0
    while not durations.are_quick(PLACE):
        clock["now"] += 1.0
        seconds += 1
    return seconds


def test_an_event_is_not_slow_if_other_programs_ran_meanwhile(clock: dict[str, float]) -> None:
    durations = _Durations()
    durations.note_in_thread(PLACE, 0.01)
    for _ in range(10):
        take(durations, clock, 0.05, delay=0.049)
        assert durations.are_quick(PLACE)


def test_how_long_others_ran_is_known_or_nothing() -> None:
    assert 0.0 <= _handler._run_delay() < 3600
