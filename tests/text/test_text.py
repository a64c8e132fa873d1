"""Text from outside: safe to show, cut by cells, in tables; times and costs in a few cells; imported lightly."""

from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.text import (
    ago,
    cell_width,
    compact_number,
    cost_or_unknown,
    cost_text,
    duration,
    first_line,
    fit,
    fit_end,
    money,
    one_line,
    printable,
    printable_block,
    printable_lines,
    quoted,
    table,
    truncate,
)

ANY_TEXT = st.text(st.characters(codec=None), max_size=80)


@pytest.mark.parametrize(
    ("text", "line", "block"),
    [
        ("plain  [bold]", "plain  [bold]", "plain  [bold]"),
        ("\x1b[2J\x07", "␛[2J␇", "␛[2J␇"),
        ("a\nb\tc\r\nd", "a␊b␉c␍␊d", "a\nb\tc\nd"),
        ("a\u202eb\u2066c", "a�b�c", "a�b�c"),
        ("tag\U000e0041 zero\u200bwidth", "tag� zero�width", "tag� zero�width"),
        ("\x7f\x85\x9b31m", "␡��31m", "␡��31m"),
        ("line\u2028line\u00a0x", "line�line x", "line�line x"),
        ("👩\u200d💻 é 漢", "👩💻 é 漢", "👩\u200d💻 é 漢"),
        ("❤\ufe0f\U000e0105", "❤", "❤\ufe0f�"),
        (
            "half \ud800 private \ue000 unassigned \u0378",
            "half � private � unassigned �",
            "half � private � unassigned �",
        ),
        ("ไม้ a\u0301\u0302\u0303\u0304b", "ไม้ a\u0301\u0302b", "ไม้ a\u0301\u0302\u0303\u0304b"),
    ],
)
def test_what_is_not_text_becomes_a_visible_sign(text: str, line: str, block: str) -> None:
    assert printable(text) == line
    assert printable_block(text) == block


@given(ANY_TEXT)
def test_nothing_unprintable_is_left(text: str) -> None:
    assert printable(text).isprintable()
    assert one_line(text).isprintable()
    kinds = {unicodedata.category(char) for char in printable_block(text) if char not in "\n\t\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    assert printable_block(printable_block(text)) == printable_block(text)


def test_a_text_is_folded_into_one_line_and_cut() -> None:
    assert one_line("  a\n\tb\u2028c\x0bd\x1b ") == "a b c d␛"
    assert one_line("x" * 500, 5) == "xxxx…"
    assert len(one_line("x" * 1_000_000)) == 400
    assert first_line("\n first \n second") == "first"
    assert truncate("abc", 3) == "abc"
    assert printable_lines("\n\na\r\n\n\x07b\n") == ["a", "", "␇b"]
    assert quoted("it\x1b[31m") == "'it\\x1b[31m'"
    assert len(quoted("x" * 100)) == 62


@given(ANY_TEXT, st.integers(0, 40))
def test_a_text_is_exactly_as_wide_as_asked(text: str, cells: int) -> None:
    for safe in (one_line(text), printable(text)):
        assert cell_width(fit(safe, cells)) == cells
        assert cell_width(fit_end(safe, cells)) <= cells


def test_what_is_too_wide_is_cut_by_cells() -> None:
    assert fit("日本語", 4) == "日 …"
    assert fit_end("/a/long/path", 5) == "…path"


def test_a_table_aligns_wide_characters_and_leaves_out_empty_columns() -> None:
    rows = [("#1", "", "日本", "first"), ("#12", "", "é", "x" * 60)]

    assert list(table(rows)) == ["#1   日本  first", "#12  é     " + "x" * 60]
    assert list(table(rows, width=40))[1] == "#12  é     " + "x" * 28 + "…"
    assert list(table(rows, width=10))[1] == "#12  é     " + "x" * 19 + "…"
    assert next(table(rows, style=lambda cell: f"<{cell}>")) == "<#1 >  <日本>  first"
    assert list(table([])) == []


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *((-5, "0s"), (0, "0s"), (59.9, "59s"), (60, "1m00s"), (599, "9m59s"), (600, "10m"), (3600, "1h00m")),
        *((35_999, "9h59m"), (36_000, "10h"), (86_400, "1d00h"), (864_000, "10d"), (8.64e9, "100000d")),
    ],
)
def test_a_duration_takes_a_few_cells(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_costs_counts_and_times_are_short() -> None:
    assert [money(cost) for cost in (0, 1.234, 999.99, 12_345)] == ["$0.00", "$1.23", "$999.99", "$12.3k"]
    assert [cost_or_unknown(cost) for cost in (None, 0, 1.234)] == ["unknown", "$0.00", "$1.23"]
    assert [cost_text(None, 2), cost_text(1.2)] == ["cost unknown", "$1.20"]
    assert cost_text(0, 2) == "$0.00, cost of 2 unknown"
    assert [compact_number(tokens) for tokens in (999, 31_250, 999_499, 1_200_000)] == ["999", "31k", "999k", "1.2M"]
    assert [compact_number(tokens) for tokens in (9_949_999, 9_950_000, 123_400_000)] == ["9.9M", "10M", "123M"]
    assert [ago(at, 100.0) for at in (99.5, 40.0)] == ["now", "1m00s ago"]


def test_rich_is_imported_only_for_the_width_of_text_beyond_ascii() -> None:
    beyond = "import sys, fairlead.text as t; t.fit(t.one_line('é'), 3)"
    ascii_only = (
        "import sys, fairlead.text as t; t.fit(t.one_line('e' * 9), 3); t.duration(3); list(t.table([('a', 'b')]))"
    )
    ends = "print(sorted({'rich', 'json', 'msgspec', 'unicodedata', 'dataclasses'} & set(sys.modules)))"

    def loaded(code: str) -> str:
        return subprocess.run(
            [sys.executable, "-c", f"{code}; {ends}"], capture_output=True, text=True, check=True
        ).stdout

    assert loaded(ascii_only) == "[]\n"
    assert "rich" in loaded(beyond)
