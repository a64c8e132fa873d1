"""Values: a payload parsed and encoded, ten outputs merged."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING, Any

import msgspec

from bench._data import HOOKS, PAYLOAD
from bench._table import Row, Target
from fairlead import HookOutput, encode, parse

if TYPE_CHECKING:
    from bench._harness import Effort


def rows(effort: Effort) -> list[Row]:
    event = parse(PAYLOAD)
    raw = json.loads(PAYLOAD)
    assert json.loads(encode(event)) == raw
    outputs = [HookOutput.allow().with_context(f"context {number}") for number in range(HOOKS)]
    plain: list[dict[str, Any]] = [msgspec.to_builtins(output) for output in outputs]
    calls = {
        "parse": lambda: parse(PAYLOAD),
        "json.loads": lambda: json.loads(PAYLOAD),
        "encode": lambda: encode(event),
        "json.dumps": lambda: json.dumps(raw).encode(),
        "merge": lambda: reduce(HookOutput.merge, outputs),
        "{**a, **b}": lambda: reduce(_updated, plain),
    }
    times = effort.compare({name: effort.looped(call) for name, call in calls.items()})
    kilobyte = f"{len(PAYLOAD)} bytes of PreToolUse"
    return [
        Row("parse", kilobyte, "µs", times["parse"], "json.loads", times["json.loads"], target=Target("time", 5)),
        Row("encode", "the same event", "µs", times["encode"], "json.dumps", times["json.dumps"]),
        Row("merge", "10 outputs into one", "µs", times["merge"], "{**a, **b} of 10 dicts", times["{**a, **b}"]),
    ]


def _updated(earlier: dict[str, Any], later: dict[str, Any]) -> dict[str, Any]:
    return {**earlier, **later}
