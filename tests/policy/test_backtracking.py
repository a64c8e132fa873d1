"""Regular expressions that could take for ever are refused, those that cannot are not."""

from __future__ import annotations

import re
import time

import pytest

from fairlead.policy.config._regex_safety import may_backtrack

EXPLODING = [
    ("(a+)+$", "a"),
    ("(a*)*$", "a"),
    ("(a|a)*$", "a"),
    ("(a|aa)+$", "a"),
    (r"(\w+\s?)*$", "a"),
    (r"(\s*a\s*)+$", " a"),
    (r"(\w\w|\d\d\d)+$", "1"),
    ("(a?b?)+$", "ab"),
    (r"(f\d*\d*)+$", "f1"),
    ("(x+x+)+y", "x"),
    ("(?=(a+)+$)", "a"),
    ("([A-Z]+|[a-z]+)*$", "a"),
    ("(|a)+$", "a"),
    ("(?:a{2,3})+$", "a"),
    ("(.*a){10,}", "a"),
    ("(?:.(?:(?=a)){2,12})+$", "a"),
]
HARMLESS = [
    "",
    "foo|bar",
    r"(?i)\bfix(ed|es)?\b",
    r"test.*(unit|e2e)",
    r"(\w+,\s*)+",
    r"(\w+\s)+",
    "(foo|for|bar)+",
    r"(foo|bar\d+)+",
    r"(\d{1,3}\.)+",
    "(?:ab?)+",
    r"[\w.-]+@[\w-]+(\.[\w-]+)+",
    "(?:a++)+",
    "(?<!x)y+",
    r"(?:[^,]*,)+",
    r"^(?:/[^/\s]+)+$",
    r"(?P<q>['\"]).*?(?P=q)",
]


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in EXPLODING])
def test_a_loop_that_reads_one_text_in_many_ways_is_refused(pattern: str) -> None:
    assert may_backtrack(pattern)


def test_a_part_that_is_repeated_a_few_times_is_no_loop() -> None:
    assert may_backtrack("(.*a){10}")
    assert not may_backtrack("(.*a){9}")


@pytest.mark.parametrize("pattern", HARMLESS)
def test_a_loop_that_knows_its_way_is_not(pattern: str) -> None:
    assert not may_backtrack(pattern)


@pytest.mark.parametrize("pattern", HARMLESS)
def test_what_is_let_pass_is_quick_on_what_makes_others_explode(pattern: str) -> None:
    """Sixty repetitions would take an exploding pattern longer than anyone lives."""
    before = time.process_time()
    for _, text in EXPLODING:
        re.search(pattern, text * 60 + "!")
    assert time.process_time() - before < 1


@pytest.mark.parametrize("pattern", ["(ж+[д-я])+", "([e-é]+[g-ж])+", "(\\u0416+[\\u0400-\\u0450])+"])
def test_classes_beyond_ascii_are_compared_too(pattern: str) -> None:
    assert may_backtrack(pattern)
