"""The guards, measured by the corpus: ways around the rules are held, and everyday calls pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.corpus.judge import example_project, judge, rate
from policy.corpus.known_gaps import EVERYDAY, WAYS
from policy.corpus.lines import read_lines

if TYPE_CHECKING:
    from policy.corpus.judge import Judged

pytestmark = pytest.mark.timeout(300)
"""Seconds: the first test waits until all lines are judged."""

NAMES = ("ways", "everyday", "blind_ways", "blind_everyday", "basic_ways", "basic_everyday")


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Judged]]:
    with example_project(tmp_path_factory.mktemp("corpus")) as places:
        return {name: judge(read_lines(f"{name}.txt"), places) for name in NAMES}


def test_every_way_is_held_but_for_the_known_gaps(judged: dict[str, list[Judged]]) -> None:
    passed = [one.line.text for one in judged["ways"] if not one.is_expected]
    assert sorted(passed) == sorted(WAYS)


def test_every_everyday_call_passes_but_for_the_known_gaps(judged: dict[str, list[Judged]]) -> None:
    questioned = [f"{one.answer}: {one.line.text}" for one in judged["everyday"] if not one.is_expected]
    assert sorted(questioned) == sorted(f"asked: {text}" for text in EVERYDAY)


@pytest.mark.parametrize("name", ["basic_ways", "basic_everyday"])
def test_the_basic_calls_have_no_gap(judged: dict[str, list[Judged]], name: str) -> None:
    assert [f"{one.answer}: {one.line.text}" for one in judged[name] if not one.is_expected] == []


@pytest.mark.parametrize("part", ["", "blind_"])
def test_the_rates_are_within_the_limits(judged: dict[str, list[Judged]], part: str) -> None:
    ways, everyday = judged[f"{part}ways"], judged[f"{part}everyday"]
    own = [one for one in ways if one.line.goal == "self"]
    assert rate(ways, "passed") <= 0.03
    assert rate(own, "passed") == 0
    assert rate(everyday, "asked") <= 0.01
    assert rate(everyday, "blocked") == 0
