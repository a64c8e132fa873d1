"""The light structs beside those of msgspec: the same fields, defaults, equality, texts and encoded forms."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from fairlead.structs import encode_msgpack
from fairlead.structs._msgpack import unpack

COMPARE = """
import json, sys
if sys.argv[1] == "light":
    from fairlead.lazy import use_light_structs
    use_light_structs()
from fairlead.structs import LIGHT, Raw, Struct, asdict, encode_json, replace, to_builtins
assert LIGHT == (sys.argv[1] == "light")
import fairlead
from fairlead.clients import _tool_calls, protocol
from fairlead.decide import _context, _decision, _settle
from fairlead.events import _agent_events, _event, _output, _session_events
from fairlead.journal import _records
from fairlead.policy.config import _disk_cache, _files, _lookup, _types
from fairlead.policy.trust import _session_snapshots, _store

def kinds(kind):
    for one in kind.__subclasses__():
        yield one
        yield from kinds(one)

def made(kind):
    values = {}
    while True:
        try:
            return kind(**values)
        except TypeError as error:
            name = str(error).partition("'")[2].partition("'")[0]
            if not str(error).startswith("Missing required argument") or name in values:
                return None
            values[name] = f"<{name}>"

shown = {}
for kind in kinds(Struct):
    if not kind.__module__.startswith("fairlead."):
        continue
    value = made(kind) if kind.__name__ != "EventRecord" else kind(id="1", at=1.5, event="Stop", payload=Raw(b"[1]"))
    key = f"{kind.__module__}.{kind.__name__}"
    shown[key] = {"fields": kind.__struct_fields__, "made": value is not None}
    if value is None:
        continue
    if kind.__name__ == "EventRecord":
        shown[key]["json"] = encode_json(value).decode()
        continue
    shown[key]["repr"] = repr(value)
    copy = replace(value)
    shown[key] |= {"same": copy == value, "is": copy is value, "other": value == 1, "dict": repr(asdict(value))}
    try:
        hash(value)
        shown[key]["hash"] = hash(copy) == hash(value)
    except TypeError:
        shown[key]["hash"] = None
    try:
        value.brand_new = 1
        shown[key]["frozen"] = False
    except AttributeError:
        shown[key]["frozen"] = True
    if kind.__module__ in {"fairlead.policy.config._types", "fairlead.events._output"}:
        shown[key]["plain"] = to_builtins(value)
    if kind.__module__ == "fairlead.journal._records":
        shown[key]["json"] = encode_json(value).decode()
print(json.dumps(shown, default=repr))
"""


def compared(mode: str) -> dict[str, Any]:
    done = subprocess.run([sys.executable, "-I", "-c", COMPARE, mode], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_struct_is_the_same_with_and_without_msgspec() -> None:
    full, light = compared("full"), compared("light")
    assert len(light) > 90
    assert {name: (full.get(name), light[name]) for name in light if full.get(name) != light[name]} == {}


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, False, 0, 127, 128, 255, 256, 65536, 2**32, 2**63, -1, -32, -33, -129, -32769, -(2**31) - 1),
        *(1.5, -0.0, "", "ä" * 31, "a" * 32, "a" * 300, "a" * 70_000, b"", b"a" * 300, b"a" * 70_000),
        *([], [1, "a", None], [0] * 20, [0] * 70_000, {}, {"a": {"b": [1]}}, {str(n): n for n in range(20)}),
        {str(n): n for n in range(70_000)},
    ],
    ids=lambda value: f"{type(value).__name__}-{str(value)[:12]}",
)
def test_messagepack_is_read_as_msgspec_reads_it(value: object) -> None:
    data = encode_msgpack(value)
    assert unpack(data) == msgspec.msgpack.decode(data) == value
    for end in {0, 1, len(data) // 2, len(data) - 1} - {len(data)}:
        with pytest.raises(ValueError, match="not MessagePack"):
            unpack(data[:end])
    with pytest.raises(ValueError, match="not MessagePack"):
        unpack(data + b"\0")


NAMES = """
import sys
if sys.argv[1] == "light":
    from fairlead.lazy import use_light_structs
    use_light_structs()
from fairlead.events import HookEvent
assert ("enum" in sys.modules) == (sys.argv[1] != "light")
stop = HookEvent.Stop
print([(one.name, one.value, repr(one), str(one), HookEvent[one.name] is one) for one in HookEvent], len(HookEvent))
print(HookEvent("Stop") is stop, HookEvent(stop) is stop, isinstance(stop, HookEvent))
print({stop: 1}[HookEvent.parse("stop")])
print(stop == "Stop", stop in HookEvent.__members__.values(), stop.can_block, list(HookEvent.__members__)[:2])
for wrong in (lambda: HookEvent("Other"), lambda: HookEvent["Other"]):
    try:
        wrong()
    except (ValueError, KeyError) as error:
        print(type(error).__name__, error)
"""


def test_the_names_of_events_are_the_same_with_and_without_the_module_enum() -> None:
    full, light = (
        subprocess.run([sys.executable, "-I", "-c", NAMES, mode], capture_output=True, text=True, check=False)
        for mode in ("full", "light")
    )
    assert (light.stderr, full.stderr) == ("", "")
    assert light.stdout == full.stdout
