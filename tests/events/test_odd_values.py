"""No value of any field makes an event take long, or raises what is not ours: it is parsed, answered and recorded."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
import pytest

from fairlead.clients import client_named
from fairlead.decide import GUARDED_EVENTS, PolicyContext, decide, settle, verdict_of
from fairlead.errors import FairleadError, PayloadError
from fairlead.events import Event, HookEvent, parse, to_payload
from fairlead.journal import event_record
from fairlead.policy import Guards, Layer, Policy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

CLAUDE = client_named("claude")
MAX_SECONDS = 10
"""For all values of one event together, some thousand payloads: each takes less than a millisecond."""

SURROGATE = '"\\ud83d"'
ODD_VALUES = (
    *(SURROGATE, f'{{"a":{SURROGATE}}}', f"{{{SURROGATE}:1}}", f"[{SURROGATE}]", '"\\udc00\\ud800"'),
    *('"\\u0000"', '""', '" "', '"\\ufeff"', '"' + "x" * 10_000 + '"', '"../../etc/passwd"', '"~root/x"'),
    *("null", "true", "false", "0", "-1", "0.5", "1e308", "1e999", "-0.0", "9" * 30, "9" * 5000, "NaN", "Infinity"),
    *("[]", "{}", "[[[]]]", "[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900, '{"a":1,"a":2}', '[1,"a",null]'),
    '{"command":"\\ud83d","file_path":"\\u0000","path":7}',
    '{"command":["rm"],"file_path":{"a":1},"edits":"x"}',
)
BESIDE = (',"zz":1', f",{SURROGATE}:1", ',"fairlead:extra":"x","fairlead:client":7', ',"effort":"\\ud83d","cwd":"/"')
"""What else a payload has."""

COMPLETE = {
    "session_id": '"s"',
    "tool_name": '"Bash"',
    "tool_input": '{"command":"true"}',
    "error": '"e"',
    "prompt": '"p"',
    "agent_id": '"a1"',
    "agent_type": '"coder"',
}


def payloads(name: str) -> Iterator[str]:
    """Yield a payload for each field, odd value, and thing beside it; and the same truncated, doubled, with a BOM."""
    kind = parse({"session_id": "s"}, name).__class__ if name not in HookEvent.__members__ else HookEvent[name].type
    fields = [field.encode_name for field in msgspec.structs.fields(kind)]
    for field_number, field in enumerate(("hook_event_name", *fields)):
        base = {"hook_event_name": json.dumps(name), **COMPLETE}
        base.pop(field, None)
        rest = "".join(f',"{key}":{value}' for key, value in base.items())
        for at, value in enumerate(ODD_VALUES):
            whole = f'{{"{field}":{value}{rest}'
            yield from (f"{whole}{beside}}}" for beside in ("", BESIDE[at % 4], BESIDE[(at + field_number) % 4]))
            ends = (whole, "\ufeff" + whole + "}", f'{whole},"{field}":{value}}}', whole[: len(whole) // 2])
            yield ends[(at + field_number) % 4]


@contextmanager
def limit(seconds: int) -> Iterator[None]:
    """Fail, rather than hang, if the block does not end in time."""

    def expire(_number: int, _frame: FrameType | None) -> None:
        pytest.fail(f"still busy after {seconds} s")

    before = signal.signal(signal.SIGALRM, expire)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def handle(payload: bytes, name: str) -> Event | None:
    """Decide, answer and record a payload, as every route does; return the event."""
    try:
        event = CLAUDE.parse(payload, name)
    except FairleadError as error:
        answer = CLAUDE.refuse(name, payload, str(error))
        assert answer.exit_code == (2 if b'"PreToolUse"' in payload or name == "PreToolUse" else 1)
        event_record("1", name, payload, None, client="claude", route="daemon", verdict="failed", exit_code=1)
        return None
    policy = PolicyContext(layers=(Layer("/p/.fairlead.yaml", "/p", Policy()),))
    guards = Guards(policy.layers) if event.event_name in GUARDED_EVENTS else None
    settled = settle(event, decide(event, policy, guards))
    answer = CLAUDE.render(event, settled.output)
    assert answer.exit_code in {0, 2}
    verdict = verdict_of(settled.output)
    event_record("1", name, payload, event, client="claude", route="daemon", verdict=verdict, exit_code=0)
    return event


@pytest.mark.parametrize("name", [*(event.value for event in HookEvent), "BrandNew"])
def test_any_value_of_any_field_is_parsed_or_refused_in_time(name: str) -> None:
    with limit(MAX_SECONDS):
        for payload in payloads(name):
            try:
                parse(payload.encode("utf-8", "surrogatepass"), name)
            except PayloadError:
                continue


@pytest.mark.parametrize("name", ["PreToolUse", "PermissionRequest", "UserPromptSubmit", "Stop", "SubagentStop"])
def test_any_value_of_any_field_is_answered_and_recorded(name: str) -> None:
    answered = 0
    with limit(6 * MAX_SECONDS):
        for number, payload in enumerate(payloads(name)):
            if number % 5 == 0:
                answered += handle(payload.encode("utf-8", "surrogatepass"), name) is not None
    assert answered > 100


@pytest.mark.parametrize("beside", ["", ',"zz":1'])
def test_half_a_character_where_no_text_belongs_is_refused_or_kept(beside: str) -> None:
    """It took for ever, or raised UnicodeEncodeError."""
    base = f'{{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash"{beside}'
    with limit(MAX_SECONDS):
        with pytest.raises(PayloadError, match="tool_input: not valid Unicode text"):
            parse(f'{base},"tool_input":"\\ud83d"}}')
        event = parse(f'{base},"tool_input":{{}},"effort":"\\ud83d","mcp_server":"\\udc00"}}')
    assert (event.effort, event.extra["effort"], event.extra["mcp_server"]) == (None, "\ud83d", "\udc00")
    assert to_payload(event)["effort"] == "\ud83d"


def test_a_payload_cannot_set_fields_that_are_not_the_clients() -> None:
    event = parse('{"hook_event_name":"Stop","session_id":"s","fairlead:client":"x","fairlead:metadata":{"a":1}}')
    assert (event.client, event.metadata) == ("claude", None)
    assert event.extra == {"fairlead:client": "x", "fairlead:metadata": {"a": 1}}


@pytest.mark.parametrize("key", ["fairlead:client", r"f\u0061irlead:client"])
def test_a_payload_of_an_expected_event_cannot_set_them_with_escapes_either(key: str) -> None:
    event = parse(f'{{"hook_event_name":"Stop","session_id":"s","{key}":"gemini"}}'.encode(), "Stop")
    assert (event.client, event.extra) == ("claude", {"fairlead:client": "gemini"})
