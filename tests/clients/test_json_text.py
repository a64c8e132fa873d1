"""JSON edited as text: what is read is what any reader reads, and what is not meant to change keeps its bytes."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from clients.generated_settings import VALUE, _scattered, settings_texts
from hypothesis import given
from hypothesis import strategies as st

from fairlead.clients._json_text import (
    JsonTextError,
    Raw,
    apply,
    insertion,
    parse,
    position,
    removal,
    replacement,
    style_of,
)


def added(text: str, *members: tuple[str | None, Any]) -> str:
    root = parse(text)
    return apply(text, [insertion(text, root, members, style_of(text, root))])


@given(VALUE, st.randoms(use_true_random=False))
def test_it_reads_what_any_reader_of_json_reads(value: Any, random: Any) -> None:
    text = _scattered(value, random)
    assert parse(text).value() == json.loads(text)


@given(settings_texts())
def test_every_value_has_its_place(text: str) -> None:
    if text.strip("\ufeff \r\n"):
        root = parse(text)
        for key, item in zip(root.keys, root.items, strict=True):
            assert json.loads(text[item.start : item.end]) == item.value() == root.value()[key]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: not valid JSON: expected a value, got the end of the file"),
        ('{"a": 1, // no\n"b": 2}', "1:10: a comment, which JSON does not allow; remove it"),
        ("/* x */ {}", "1:1: a comment, which JSON does not allow; remove it"),
        ("# x\n{}", "1:1: a comment, which JSON does not allow; remove it"),
        ('{\n  "a": 1,\n}', "2:9: a comma after the last item; remove it"),
        ("[1, 2,]", "1:6: a comma after the last item; remove it"),
        ("{a: 1}", "1:2: not valid JSON: expected a string in double quotes, closed on its line, got 'a'"),
        ('{"a" 1}', "1:6: not valid JSON: expected ':', got '1'"),
        ('{"a": 1 "b": 2}', "1:9: not valid JSON: expected ',' or '}', got '\"'"),
        ('{"a": 1', "1:8: not valid JSON: expected ',' or '}', got the end of the file"),
        ('{"a": "x\ny"}', "1:7: not valid JSON: expected a string in double quotes, closed on its line, got '\"'"),
        ('["\\x"]', "1:2: not valid JSON: expected a string in double quotes, closed on its line, got '\"'"),
        ("[NaN]", "1:2: not valid JSON: expected a value, got 'N'"),
        ("[01]", "1:3: not valid JSON: expected ',' or ']', got '1'"),
        ("{} x", "1:4: not valid JSON: expected the end of the file, got 'x'"),
        ("\ufeff{} x", "1:4: not valid JSON: expected the end of the file, got 'x'"),
        ("\0\1\2", "1:1: not valid JSON: expected a value, got '\\x00'"),
        ("[" * 300, "1:202: nested more than 200 levels deep"),
    ],
)
def test_what_is_no_json_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(JsonTextError) as caught:
        parse(text)
    assert str(caught.value) == expected


@given(st.text(max_size=40) | st.text('{}[]":,truefalsn01-.eE\\u \n', max_size=40))
def test_it_accepts_what_python_accepts_and_nothing_else(text: str) -> None:
    try:
        wanted = json.loads(text, parse_constant=int)  # NaN and Infinity are Python's own
    except ValueError:
        with pytest.raises(JsonTextError):
            parse(text)
    else:
        assert parse(text).value() == wanted


def test_a_broken_string_of_a_megabyte_is_refused_at_once() -> None:
    begun = time.monotonic()
    with pytest.raises(JsonTextError):
        parse('["' + "a" * 1_000_000)
    assert time.monotonic() - begun < 2


def test_a_number_of_many_digits_is_no_trouble() -> None:
    assert parse("9" * 5000).value() == float("inf")
    assert parse("-12").value() == -12


def test_of_two_equal_keys_the_last_counts() -> None:
    node = parse('{"a": 1, "b": 2, "a": 3}')
    assert (node.member("a"), node.duplicate_key()) == (node.items[2], "a")
    assert node.member("c") is None
    assert parse("[1]").member("a") is None


def test_a_place_counts_lines_and_columns_from_one() -> None:
    assert [position("ab\ncd", at) for at in (0, 1, 3, 4)] == ["1:1", "1:2", "2:1", "2:2"]


# -- layout --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", '{\n  "n": {\n    "x": ["y"]\n  }\n}'),
        ("{ \n }\n", '{\n  "n": {\n    "x": ["y"]\n  }\n}\n'),
        ('{"a":1}', '{"a":1,"n":{"x":["y"]}}'),
        ('{"a": 1}', '{"a": 1, "n": {"x": ["y"]}}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"n": {\n\t\t"x": ["y"]\n\t}\n}'),
        ('{\n    "a": 1\n}', '{\n    "a": 1,\n    "n": {\n        "x": ["y"]\n    }\n}'),
        ('{\n"a": 1\n}', '{\n"a": 1,\n"n": {\n"x": ["y"]\n}\n}'),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "n": {\r\n    "x": ["y"]\r\n  }\r\n}\r\n'),
        ('\ufeff{\n  "a": 1}', '\ufeff{\n  "a": 1,\n  "n": {\n    "x": ["y"]\n  }}'),
    ],
)
def test_what_is_added_looks_like_the_rest(text: str, expected: str) -> None:
    assert added(text, ("n", {"x": ["y"]})) == expected


def test_items_are_taken_out_with_one_comma_each() -> None:
    text = "[ 1,\n  2, 3 ,4 ]"
    root = parse(text)

    def left(*gone: int) -> str:
        return apply(text, removal(root, gone))

    assert left(0) == "[ 2, 3 ,4 ]"
    assert left(1) == "[ 1, 3 ,4 ]"
    assert left(3) == "[ 1,\n  2, 3 ]"
    assert left(0, 1, 3) == "[ 3 ]"
    assert left(1, 2, 3) == "[ 1 ]"
    assert left(0, 1, 2, 3) == "[]"
    assert left() == text


@given(st.lists(VALUE, max_size=6), st.sets(st.integers(0, 5)), st.randoms(use_true_random=False))
def test_taking_out_leaves_valid_json_and_the_others(values: list[Any], gone: set[int], random: Any) -> None:
    text = _scattered(values, random)
    indices = [index for index in gone if index < len(values)]
    left = apply(text, removal(parse(text), indices))
    assert json.loads(left) == [value for index, value in enumerate(values) if index not in indices]


@given(settings_texts(), VALUE)
def test_what_was_added_can_be_taken_out_without_a_trace(text: str, value: Any) -> None:
    root = parse(text if text.strip("\ufeff \r\n") else "{}")
    if root.items and text.strip("\ufeff \r\n"):
        longer = added(text, ("a new key", value), ("another", [value]))
        assert json.loads(longer.removeprefix("\ufeff"))["a new key"] == value
        again = parse(longer)
        assert apply(longer, removal(again, [len(again.items) - 2, len(again.items) - 1])) == text


def test_a_value_is_replaced_where_it_stands() -> None:
    text = '{\n  "a": null,\n  "b": {"x": 1}\n}'
    root = parse(text)
    style = style_of(text, root)
    assert apply(text, [replacement(text, root.items[0], {"y": Raw("1.50")}, style)]) == (
        '{\n  "a": {\n    "y": 1.50\n  },\n  "b": {"x": 1}\n}'
    )
    assert apply(text, [replacement(text, root.items[1], {"y": [1]}, style)]) == '{\n  "a": null,\n  "b": {"y": [1]}\n}'
