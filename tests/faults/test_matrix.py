"""Every fault of the matrix, at every event: exit code, text and journal are as the table says.

`make test` plays the quick part; `make faults` sets FAIRLEAD_FAULTS=all and plays all of it.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from time import monotonic
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import LAUNCHER, PATIENCE
from faults.faults import FAULTS
from faults.matrix import EVENTS, MATRIX, POLICY

from fairlead.events import MAX_PAYLOAD

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome
    from faults.faults import Start
    from faults.matrix import Cell, Row

ALL = os.environ.get("FAIRLEAD_FAULTS") == "all"
ROWS = [row for row in MATRIX if row.quick or ALL]
LONGEST = 20.0
"""Seconds for one hook on a busy machine; the client waits for sixty."""


def test_every_fault_is_in_the_matrix() -> None:
    assert set(FAULTS) == {row.fault for row in MATRIX}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("row", ROWS, ids=[row.fault for row in ROWS])
def test_a_fault_opens_no_gate_and_is_told(home: DaemonHome, row: Row) -> None:
    home.policy(POLICY)
    with FAULTS[row.fault](home) as start:
        played = {event: play(home, event, start) for event in EVENTS}
    for event, done in played.items():
        check(event, done, row.cell(event))
    with home.daemon():
        counts = {event: sum(record.event == event for record in home.happened()) for event in EVENTS}
    assert counts == {event: row.cell(event).counted for event in EVENTS}


def check(event: str, done: subprocess.CompletedProcess[bytes], cell: Cell) -> None:
    stdout, stderr = done.stdout or b"", done.stderr.decode()
    answer = json.loads(stdout) if stdout.startswith(b"{") else {}
    shown = f"{event}: exit {done.returncode}, {stdout!r}, {stderr!r}"
    assert done.returncode == cell.exit_code, shown
    assert (done.returncode == 2 or answer.get("decision") == "block") == cell.shut, shown
    assert re.search(cell.told, stdout.decode() + stderr, re.DOTALL), shown
    assert "Traceback" not in stderr, shown


def play(home: DaemonHome, event: str, start: Start) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as the client does, under a fault."""
    fields = json.loads(json.dumps(EVENTS[event]).replace("{project}", str(home.project)))
    payload = home.payload(hook_event_name=event, **fields)
    started = monotonic()
    process = subprocess.Popen(
        [*start.within, str(LAUNCHER), event, *start.words],
        stdin=None if start.stdin == "closed" else subprocess.PIPE,
        stdout=_stdout(start),
        stderr=subprocess.PIPE,
        cwd=home.project,
        env=home.environment(**start.env),
        preexec_fn=lambda: _before(start),  # noqa: PLW1509 - no other thread holds a lock that it needs
    )
    if start.stdin == "late":
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)  # it has no verdict before it has the payload
    if start.stdin == "open":
        return _end_with_stdin_open(process, payload)
    if start.stdin == "huge":
        payload += b" " * (MAX_PAYLOAD + 1 - len(payload))
    out, err = process.communicate(None if start.stdin == "closed" else payload, timeout=PATIENCE)
    assert monotonic() - started < LONGEST
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _end_with_stdin_open(process: subprocess.Popen[bytes], payload: bytes) -> subprocess.CompletedProcess[bytes]:
    """Write the payload, and end the hook as the client does when its time is up."""
    assert process.stdin is not None
    process.stdin.write(payload)
    process.stdin.flush()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(1)
    process.terminate()
    out, err = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _stdout(start: Start) -> int:
    if start.stdout == "full":
        return os.open("/dev/full", os.O_WRONLY | os.O_CLOEXEC)
    if start.stdout == "gone":
        reading, writing = os.pipe()
        os.close(reading)
        return writing
    return subprocess.PIPE


def _before(start: Start) -> None:
    if start.stdin == "closed":
        os.close(0)
    if start.stdout == "closed":
        os.close(1)
    if start.before is not None:
        start.before()
