"""Regular expressions that may backtrack for exponential time are refused; some that are slow, too; others are not."""

from __future__ import annotations

import re
import time

import pytest
from policy.cases import for_each

from fairlead.policy import PolicyError, read_policy
from fairlead.policy.config._regex_safety import is_slow, may_backtrack

UNSAFE = [
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
SAFE = [
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


@for_each("pattern", [pattern for pattern, _ in UNSAFE])
def test_an_ambiguous_loop_is_refused(pattern: str) -> None:
    assert may_backtrack(pattern)


def test_a_part_that_is_repeated_a_few_times_is_not_a_loop() -> None:
    assert may_backtrack("(.*a){10}")
    assert not may_backtrack("(.*a){9}")


@for_each("pattern", SAFE)
def test_an_unambiguous_loop_is_accepted(pattern: str) -> None:
    assert not may_backtrack(pattern)


@for_each("pattern", SAFE)
def test_an_accepted_pattern_is_quick_on_texts_that_make_others_slow(pattern: str) -> None:
    """Sixty repetitions would take an unsafe pattern 2**60 steps."""
    before = time.process_time()
    for _, text in UNSAFE:
        re.search(pattern, text * 60 + "!")
    assert time.process_time() - before < 1


SLOW = [
    "x.*x.*y",
    "test.*unit.*test.*x",
    r"\s*\s*secret",
    r"\w*\d*;",
    "(?i)a[^;]*b[^;]*c[^;]*;",
    "x.*x.*x.*x.*y",
    ".*.*=",
]
QUICK = [
    r"corp-[0-9]+",
    r"\w+@\w+\.\w+",
    r"\s*secret",
    "x[^x]*y",
    r"(?i)key:\s*\S+",
    r"[A-Z]{3}-\d{4,}",
    r"acct_\w{16,}",
    "",
]


@for_each("pattern", SLOW)
def test_two_repeats_of_the_same_characters_are_slow_and_are_refused_where_nothing_can_interrupt_them(
    pattern: str,
) -> None:
    started = time.process_time()
    assert is_slow(pattern)
    assert time.process_time() - started < 5
    with pytest.raises(PolicyError, match="is slow on long texts: two of its repeats can match the same characters"):
        read_policy(f"journal: {{redact: ['{pattern}']}}", "config.yaml")


@for_each("pattern", QUICK)
def test_other_patterns_are_not(pattern: str) -> None:
    assert not is_slow(pattern)


@for_each("pattern", ["(ж+[д-я])+", "([e-é]+[g-ж])+", "(\\u0416+[\\u0400-\\u0450])+"])
def test_classes_beyond_ascii_are_compared_too(pattern: str) -> None:
    assert may_backtrack(pattern)
