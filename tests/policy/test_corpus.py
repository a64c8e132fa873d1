"""The guards, measured by the corpus: ways around the rules are held, and everyday calls pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from policy.corpus.judge import example_project, judge, rate
from policy.corpus.known_gaps import EVERYDAY, WAYS
from policy.corpus.lines import read_lines

if TYPE_CHECKING:
    from policy.corpus.judge import Judged


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Judged]]:
    with example_project(tmp_path_factory.mktemp("corpus")) as places:
        return {name: judge(read_lines(f"{name}.txt"), places) for name in ("ways", "everyday")}


def test_every_way_is_held_but_for_the_known_gaps(judged: dict[str, list[Judged]]) -> None:
    passed = [one.line.text for one in judged["ways"] if not one.is_expected]
    assert sorted(passed) == sorted(WAYS)


def test_every_everyday_call_passes_but_for_the_known_gaps(judged: dict[str, list[Judged]]) -> None:
    questioned = [f"{one.answer}: {one.line.text}" for one in judged["everyday"] if not one.is_expected]
    assert sorted(questioned) == sorted(f"asked: {text}" for text in EVERYDAY)


def test_the_rates_are_within_the_limits(judged: dict[str, list[Judged]]) -> None:
    own = [one for one in judged["ways"] if one.line.goal == "self"]
    assert rate(judged["ways"], "passed") <= 0.03
    assert rate(own, "passed") == 0
    assert rate(judged["everyday"], "asked") <= 0.01
    assert rate(judged["everyday"], "blocked") == 0
