"""The history: its first pages among many events, and what filling it adds to an event in the process of the store."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import msgspec

from bench._harness import Timing
from bench._table import Row, Target
from fairlead.daemon.store._event_texts import ExtractedTexts
from fairlead.journal import Caller, CostRecord, EventRecord, Position
from fairlead.sessions import HistoryQuery
from fairlead.store import Store
from fairlead.testing import make_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench._harness import Effort
    from fairlead.journal import Record

MANY, QUICK_MANY = 1_000_000, 4_000
_BATCH = 500
_PER_SESSION = 400
_START = 1_790_000_000.0
_FILLED = 20_000
_KINDS = ("UserPromptSubmit", *("PreToolUse", "PostToolUse") * 9, "Stop")


def rows(effort: Effort) -> list[Row]:
    size = QUICK_MANY if effort.is_quick else MANY
    with tempfile.TemporaryDirectory(prefix="flb") as folder, closing(Store.open(f"sqlite:///{folder}/h.db")) as store:
        for done, _ in enumerate(_fill(store, size)):
            effort.tick(f"{done * _BATCH} of {size} events stored")
        last = f"s{(size - 1) // _PER_SESSION}"
        pages: dict[str, Callable[[], object]] = {
            "first page of all sessions": lambda: store.find_history(HistoryQuery()),
            "first page of a search, in all": lambda: store.find_history(HistoryQuery(search="test_login")),
            "a search that finds nothing": lambda: store.find_history(HistoryQuery(search="no such text")),
            "first page of one session": lambda: (store.history_of(last), store.events(session=last, limit=200)),
            "summary of the last hour": lambda: store.summarize(_START + size - 3600, _START + size),
        }
        times = effort.compare({name: effort.looped(page) for name, page in pages.items()})
    shown = [
        Row("history", f"{name}, {size} events", "ms", times[name], "", target=Target("time", 100)) for name in pages
    ]
    return [*shown, _filling(effort)]


def _filling(effort: Effort) -> Row:
    """Compare the processor time of an event with its history, and of one that belongs to no session."""
    size = 2_000 if effort.is_quick else _FILLED
    samples: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(2 if effort.is_quick else 3):
        for has_history, found in samples.items():
            with tempfile.TemporaryDirectory(prefix="flb") as folder:
                store = Store.open(f"sqlite:///{Path(folder) / 'h.db'}")
                with closing(store):
                    start = process_time()
                    for _ in _fill(store, size, has_history=has_history):
                        pass
                    found.append((process_time() - start) / size)
    with_it, without = Timing.of(samples[True]), Timing.of(samples[False])
    return Row("history", "storing an event, processor time", "µs", with_it, "without its history", without)


def _fill(store: Store, size: int, *, has_history: bool = True) -> Iterator[None]:
    for start in range(0, size, _BATCH):
        records = [_event(number, has_history=has_history) for number in range(start, min(size, start + _BATCH))]
        extracted = ExtractedTexts(records if has_history else ())
        more: list[Record] = [
            CostRecord(at=_START + start, session=f"s{start // _PER_SESSION}", counter=0.1, added=0.1)
        ]
        rows = [*records, *(more if has_history else ())]
        store.add_records(rows, Position(1, start), extracted.texts, extracted.ends)
        yield


def _event(number: int, *, has_history: bool) -> EventRecord:
    kind = _KINDS[number % len(_KINDS)]
    return EventRecord(
        id=f"{number:016x}-1",
        at=_START + number,
        event=kind,
        session=f"s{number // _PER_SESSION}" if has_history else "",
        tool="Bash" if "Tool" in kind else "",
        cwd="/home/user/project",
        caller=Caller(pid=7, project=f"/home/user/project{number % 7}"),
        payload=_PAYLOADS[kind],
    )


def _payload(kind: str) -> msgspec.Raw:
    fields = {"prompt": "Fix the login, and write a test for it."} if kind == "UserPromptSubmit" else {}
    command = {"command": "pytest -q tests/test_login.py -k test_login", "description": "Run the test"}
    if "Tool" in kind:
        return msgspec.Raw(json.dumps(make_payload(kind, tool_name="Bash", tool_input=command)).encode())
    return msgspec.Raw(json.dumps(make_payload(kind, **fields)).encode())


_PAYLOADS = {kind: _payload(kind) for kind in set(_KINDS)}
