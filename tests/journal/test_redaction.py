"""What looks like a secret is not written down; everything else is, and a line stays a record."""

from __future__ import annotations

import json
from time import process_time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from journal.records import commands, event

from fairlead.journal import EventRecord, _redact, set_redaction, spool_record
from fairlead.journal._lines import decode, encode
from fairlead.journal._redact import Redactor

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRETS: dict[str, tuple[dict[str, Any], str]] = {
    "a header of curl": ({"command": "curl -H 'Authorization: Bearer hunter2hunter2' x.org"}, "hunter2"),
    "a header in JSON": ({"headers": {"Authorization": "Basic hunter2"}}, "hunter2"),
    "a bearer": ({"text": "use bearer hunter2hunter2"}, "hunter2"),
    "a field": ({"api_key": 'hun"ter2', "name": "kept"}, "ter2"),
    "a field in a text": ({"content": json.dumps({"client_secret": 'x "hunter2', "name": "kept"})}, "hunter2"),
    "a line of YAML": ({"content": "db:\n  password: hunter2\n  name: kept\n"}, "hunter2"),
    "a variable": ({"command": "DB_PASSWORD='hunter 2' kept"}, "hunter"),
    "an option": ({"command": "mysql --password hunter2 kept"}, "hunter2"),
    "an option with =": ({"command": "x --token=hunter2 kept"}, "hunter2"),
    "an env file": ({"file_path": "/x/.env", "content": 'HOST=hunter2\nexport A="hunter2 b"\n'}, "hunter2"),
    "a URL": ({"command": "git clone https://joe:hunter2@kept.org/x"}, "hunter2"),
    "a key of a service": ({"prompt": "it is sk-proj-hunter2hunter2hunter2"}, "hunter2"),
    "a token of a forge": ({"prompt": "ghp_hunter2hunter2hunter2hunter2 kept"}, "hunter2"),
    "a key of a cloud": ({"prompt": "AKIAHUNTERHUNTERHUNT kept"}, "HUNTER"),
    "a web token": ({"prompt": "eyJhunter2hunter.eyJhunter2hunter.hunter2 kept"}, "hunter2"),
    "a token beside a count of tokens": ({"content": "tokens: 24\ntoken: hunter2\nname: kept"}, "hunter2"),
    "a name that ends in tokens": ({"content": "tokens: 24\nsecretokens: hunter2\nname: kept"}, "hunter2"),
    "a private key": (
        {"content": "-----BEGIN RSA PRIVATE KEY-----\nhunter2\nhunter2=\n-----END RSA PRIVATE KEY-----\nkept"},
        "hunter2",
    ),
}
INNOCENT: list[dict[str, Any]] = [
    {"usage": {"input_tokens": 12, "total_tokens": 100}, "max_tokens": 5},
    {"token": 12, "secret": None, "password": True, "authorization": {"a": 1}, "api_key": ["x"]},
    {"authorization": False, "keyboard": "qwerty", "key": "value", "old_string": "risk-free", "env": "A=b"},
    {"command": "ls -la && git log --format=%an@%ae", "description": "the tokens of the parser"},
]


@pytest.fixture(autouse=True)
def default_settings() -> Iterator[None]:
    yield
    set_redaction("redacted", ())


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("field", ["tool_input", "prompt"])
def test_what_looks_like_a_secret_is_not_written(name: str, field: str) -> None:
    value, secret = SECRETS[name]
    line = encode(event(1, payload=msgspec.Raw(json.dumps({"session_id": "s1", field: value}).encode())))

    assert secret.encode() not in line
    assert b"[redacted]" in line
    record = decode(line)
    assert isinstance(record, EventRecord)
    kept = json.loads(bytes(record.payload))
    assert kept["session_id"] == "s1"
    assert kept[field].keys() == value.keys()
    assert (b"kept" in line) == ("kept" in json.dumps(value))


@pytest.mark.parametrize("payload", INNOCENT)
def test_what_looks_like_no_secret_is_written_as_it_is(payload: dict[str, Any]) -> None:
    data = json.dumps(payload).encode()
    assert Redactor().redact(data) == data


LONG = ("token", "secret-", "api_key_", "-eyJ", "eyJaaaaaaaa.", "authorization", "://a:", "-password ", "A=", "bearer ")


@pytest.mark.parametrize("word", [*LONG, *(f"{word} .env" for word in LONG), '-token=\\"', "token='", "token  "])
def test_a_long_text_of_hints_takes_no_time(word: str) -> None:
    """`token`, three thousand times, took twelve seconds: of a name, each part was the start of another one."""
    payload = json.dumps({"tool_input": {"text": word * (16_000 // len(word))}}).encode()
    started = process_time()
    Redactor().redact(payload)
    assert process_time() - started < 1


def test_a_reason_and_the_end_of_commands_have_no_secrets_either() -> None:
    line = encode(event(1, reason="blocked: export API_TOKEN=hunter2", payload=msgspec.Raw(b'{"tool_input":{}}')))
    assert b"hunter2" not in line
    assert b"hunter2" not in encode(commands(1, reason="password: hunter2"))


def test_the_spool_has_no_secrets(tmp_path: Path) -> None:
    spool_record(str(tmp_path), event(1, payload=msgspec.Raw(b'{"tool_input":{"password":"hunter2"}}')))
    [file] = tmp_path.glob("*.json")
    assert b"hunter2" not in file.read_bytes()


def test_more_patterns_apply_to_texts_alone() -> None:
    set_redaction("redacted", ["corp-[0-9]+", "s1|PreToolUse"])
    record = decode(
        encode(event(1, session="s1", payload=msgspec.Raw(b'{"session_id":"s1","x":["a corp-12 b","s1"]}')))
    )
    assert isinstance(record, EventRecord)
    assert (record.session, record.event) == ("s1", "PreToolUse")
    assert json.loads(bytes(record.payload)) == {"session_id": "s1", "x": ["a [redacted] b", "[redacted]"]}


def test_payloads_can_be_left_out_or_kept_whole() -> None:
    payload = msgspec.Raw(b'{"session_id":"s1","tool_name":"Bash","tool_input":{"command":"x --token=hunter2"}}')
    set_redaction("none", ())
    record = decode(encode(event(1, payload=payload)))
    assert isinstance(record, EventRecord)
    assert json.loads(bytes(record.payload)) == {"session_id": "s1", "tool_name": "Bash"}
    set_redaction("full", ())
    assert b"hunter2" in encode(event(1, payload=payload))


words = st.sampled_from(
    [
        *(
            "password",
            "token",
            "Authorization",
            "api_key",
            ".env",
            "A=",
            ":",
            "=",
            " ",
            '"',
            "\\",
            "'",
            "\n",
            "Bearer ",
        ),
        *("-----BEGIN RSA PRIVATE KEY-----", "-----END", "{", "}", "[", ",", "x", "é", "\u2028", "://a:", "@", "eyJ"),
        *("sk-", "0", "export ", "\t", "\x00", "\U0001f600", "--token "),
    ]
)
texts = st.lists(words, max_size=12).map("".join)
values = st.recursive(
    texts | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(texts, values, max_size=4))
@settings(max_examples=200, deadline=None)
def test_any_line_stays_json_of_the_same_shape(payload: dict[str, Any]) -> None:
    text = json.dumps(payload)
    for data in (text.encode(), msgspec.json.encode(payload), json.dumps([text]).encode()):
        assert _shape(Redactor().redact(data)) == _shape(data)


def _shape(data: bytes) -> Any:
    """The types of all values, in their order; two keys may become the same one."""
    value = json.loads(data, object_pairs_hook=lambda pairs: [item for _, item in pairs])
    return _types(value)


def _types(value: Any) -> Any:
    return [_types(item) for item in value] if isinstance(value, list) else type(value)


def test_a_search_for_all_hints_finds_what_a_search_for_each_does() -> None:
    search = _redact._any_hint()
    for hint in _redact._HINTS:
        for text in (b'{"a": "' + hint + b'x"}', b'{"a": "x' + hint[:-1] + b' x"}', b'{"a": "x' + hint[1:] + b'"}'):
            may_hold = any(one in text for one in _redact._HINTS)
            assert (search(text, 0) is not None) == may_hold, text
    assert search(b'{"a": "task-notification, 12 tokens"}', 0) is None
