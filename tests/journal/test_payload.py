"""Any payload becomes one line of valid JSON of bounded size; an ordinary one is kept unchanged."""

from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead.journal import Caller, CommandResult, CommandsRecord, DaemonRecord, EventRecord, Record, record_payload
from fairlead.journal._lines import MAX_LINE_BYTES, MAX_PAYLOAD_BYTES, decode, encode, record_key
from fairlead.journal._records import Verdict

fuzz = settings(max_examples=80, deadline=None)  # a busy machine may be slow

half = st.text(st.characters(exclude_categories=()), max_size=10)  # with lone surrogates
long = st.builds(lambda text, times: text * times, half, st.sampled_from([60, 600, 3000]))
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
leaves = st.none() | st.booleans() | numbers | half | long
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(half | long, inner), max_leaves=8)
repeated = st.builds(
    lambda value, times: [value] * times, leaves | st.dictionaries(half, half), st.sampled_from([3, 30, 300])
)
layouts = st.sampled_from([{"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": True}, {"indent": "\r\n"}])


def assert_sound(payload: msgspec.Raw) -> Any:
    line = bytes(payload)
    assert b"\n" not in line
    assert b"\r" not in line
    assert len(line) <= MAX_PAYLOAD_BYTES
    record = EventRecord(id="1", at=1.0, event="Stop", payload=payload)
    assert decode(encode(record)) == record
    return json.loads(line)


@fuzz
@given(st.binary(max_size=300) | st.builds(lambda data, times: data * times, st.binary(), st.integers(1, 3000)))
@example(b"")
@example(b'{"a": "\xff"}')
@example(b"[" * 5000 + b"]" * 5000)
@example(b"[" * 900 + b"]" * 900)
@example(b'"\x00' * 20_000)
@example(b"\xff" * 20_000)
@example(b"[1e400]")
@example(b"-" * 16 * 1024)
def test_any_bytes_become_one_line(raw: bytes) -> None:
    payload, _ = record_payload(raw)

    assert_sound(payload)


@fuzz
@given(values | repeated, layouts)
@example({"a": "\ud800"}, {})
@example("\x1f\x7f\U00010000" * 1000, {})
@example([2**70, "\ud83d"], {})
@example([["\U0001f600" * 300] * 40] * 40, {})
@example({"k" * 600 + str(number): 1 for number in range(100)}, {})
def test_any_json_becomes_one_line(value: Any, layout: Any) -> None:
    raw = json.dumps(value, **layout).encode()

    payload, is_cut = record_payload(raw)

    kept = assert_sound(payload)
    if not is_cut and "\\ud" not in json.dumps(value) and len(raw) <= MAX_PAYLOAD_BYTES:
        assert kept == value


def test_an_ordinary_payload_is_kept_unchanged() -> None:
    raw = b'{"a": 1.50, "b": "\\u00e4 \xc3\xa4", "c": [1e3, 123456789012345678901234567890]}'

    assert record_payload(raw) == (msgspec.Raw(raw), False)


def test_whitespace_between_lines_is_removed() -> None:
    assert record_payload(b'{\r\n  "a": "b\\n",\n  "c": 1.50\n}\n') == (msgspec.Raw(b'{"a":"b\\n","c":1.50}'), False)
    wide = b"{" + b" \n" * MAX_PAYLOAD_BYTES + b'"c": 1.50}'
    assert record_payload(wide) == (msgspec.Raw(b'{"c":1.50}'), False)


def test_a_payload_up_to_16_kib_is_complete_and_above_it_long_texts_are_cut() -> None:
    frame = len(b'{"a":""}')
    for size in (MAX_PAYLOAD_BYTES - frame, MAX_PAYLOAD_BYTES - frame + 1):
        payload, is_cut = record_payload(b'{"a":"' + b"x" * size + b'"}')
        assert is_cut == (size + frame > MAX_PAYLOAD_BYTES)
    assert json.loads(bytes(payload)) == {"a": f"{'x' * 500}… ({size - 500} more)"}


def test_only_the_beginning_of_a_long_list_is_kept() -> None:
    payload, is_cut = record_payload(json.dumps({"id": "s1", "list": ["x" * 20] * 5000}).encode())

    assert is_cut
    assert json.loads(bytes(payload)) == {"id": "s1", "list": ["x" * 20] * 50 + ["… (4950 more)"]}


def test_what_is_nested_too_deeply_is_left_out() -> None:
    payload, is_cut = record_payload(b'{"a":' * 100 + b"1" + b"}" * 100)

    assert is_cut
    assert bytes(payload) == b'{"a":' * 60 + '"…"'.encode() + b"}" * 60


@pytest.mark.parametrize(
    ("raw", "kept"),
    [(b"", ""), (b"{not json\n", "{not json\n"), (b"\xff{}", "\\xff{}"), (b"x" * 9000, "x" * 2000 + "…")],
)
def test_invalid_json_is_kept_as_text(raw: bytes, kept: str) -> None:
    payload, is_cut = record_payload(raw)

    assert (json.loads(bytes(payload)), is_cut) == (kept, len(raw) > 2000)


# -- records -------------------------------------------------------------------------------------------

plain = st.text(max_size=30)
moments = st.floats(0, 1e11)
verdicts = st.sampled_from(get_args(Verdict))
wholes = st.integers(-(2**31), 2**31)
payloads = st.builds(lambda value: record_payload(json.dumps(value).encode())[0], values)


def callers(text: st.SearchStrategy[str]) -> st.SearchStrategy[Caller]:
    return st.builds(Caller, wholes, wholes, text, text, text, text, text)


def records(text: st.SearchStrategy[str]) -> st.SearchStrategy[Record]:
    common: Any = {"id": text, "at": moments, "verdict": verdicts, "exit": wholes, "reason": text, "seconds": moments}
    ran = st.builds(CommandResult, text, text, st.none() | wholes, moments)
    fields: Any = dict.fromkeys(("event", "client", "session", "agent", "tool", "cwd"), text)
    events = st.builds(
        EventRecord,
        **common,
        **fields,
        route=st.sampled_from(["daemon", "cold"]),
        steps=wholes,
        caller=callers(text),
        payload=payloads,
        cut=st.booleans(),
    )
    ends = st.builds(CommandsRecord, **common, steps=st.lists(ran, max_size=30).map(tuple))
    return events | ends | st.builds(DaemonRecord, at=moments, what=text, pid=wholes, version=text)


@fuzz
@given(records(plain))
def test_a_record_can_be_decoded_from_its_line(record: Record) -> None:
    line = encode(record)

    assert decode(line) == record
    assert (line.count(b"\n"), line[-1:]) == (1, b"\n")


@fuzz
@given(records(half | long))
def test_the_line_of_any_record_is_bounded(record: Record) -> None:
    line = encode(record)

    assert len(line) <= MAX_LINE_BYTES
    assert line.count(b"\n") == 1
    assert type(decode(line)) is type(record)


def test_a_record_whose_payload_has_several_lines_is_one_line() -> None:
    record = EventRecord(id="1", at=1.0, event="Stop", payload=msgspec.Raw(b'{\n"a":1}'))

    assert decode(encode(record)) == msgspec.structs.replace(record, payload=msgspec.Raw(b'{"a":1}'))


def test_a_key_identifies_a_record() -> None:
    assert record_key(EventRecord(id="1", at=1.0, event="Stop")) == "1"
    assert record_key(CommandsRecord(id="1", at=1.0)) == "1.done"
    assert record_key(DaemonRecord(at=1.0, what="started")) == ""


def test_the_route_is_written_as_road() -> None:
    """Journals and spools of earlier versions have that key, and older readers expect it."""
    record = EventRecord(id="1", at=1.0, event="Stop", route="cold")

    assert b'"road":"cold"' in encode(record)
    assert decode(encode(record)) == record
