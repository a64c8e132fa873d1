"""The line of a process, walked up: with real processes, and with tables that change while one walks."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fairlead.process import _tree as _kin
from fairlead.process._alive import process_start_time
from fairlead.process._tree import MOST, Ancestry, Row, ancestry_of

SHOW = "from fairlead.process import ancestry_of; import os; print(ancestry_of(os.getpid()).processes)"


def row(parent: int, start: int = 0) -> Row:
    return Row(parent, start, has_terminal=False)


def test_a_process_comes_first_then_its_parent_then_theirs() -> None:
    line = ancestry_of(os.getpid()).processes
    assert line[:2] == (
        (os.getpid(), process_start_time(os.getpid())),
        (os.getppid(), process_start_time(os.getppid())),
    )
    assert line[-1][0] == 1 or len(line) >= 2  # in a container that hides it, less


def test_a_child_of_a_child_is_found_below_us() -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW!r}])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"({os.getpid()}, {process_start_time(os.getpid())})" in done.stdout


def test_a_process_that_has_ended_has_no_line() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert ancestry_of(child.pid) == Ancestry()


@pytest.mark.parametrize("pid", [0, -1])
def test_a_process_that_cannot_be_seen_has_no_line(pid: int) -> None:
    assert ancestry_of(pid) == Ancestry()


def test_a_session_of_its_own_has_no_terminal() -> None:
    code = "from fairlead.process import ancestry_of; import os; print(ancestry_of(os.getpid()).has_terminal)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, start_new_session=True, check=True
    )
    assert done.stdout == "False\n"


def test_who_sits_at_a_terminal_has_one() -> None:
    master, slave = os.openpty()
    code = (
        "import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR));"
        "from fairlead.process import ancestry_of; print(ancestry_of(os.getpid()).has_terminal)"
    )
    command = [sys.executable, "-c", code, os.ttyname(slave)]
    done = subprocess.run(command, capture_output=True, text=True, start_new_session=True, check=True)
    os.close(slave)
    os.close(master)
    assert done.stdout == "True\n"


def test_the_walk_ends_where_a_process_has_gone_meanwhile() -> None:
    table = {9: row(8, 90), 8: row(7, 80)}
    assert ancestry_of(9, table.get).processes == ((9, 90), (8, 80))


def test_a_process_that_took_over_a_pid_is_nobodys_parent() -> None:
    table = {9: row(8, 90), 8: row(7, 95), 7: row(1, 10)}
    assert ancestry_of(9, table.get).processes == ((9, 90),)


def test_a_table_that_goes_round_does_not_keep_us() -> None:
    table = {9: row(8), 8: row(9)}
    assert len(ancestry_of(9, table.get).processes) == MOST


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="there is no ps here")  # noqa: PTH110 - a word
def test_where_there_is_no_proc_ps_tells_the_same() -> None:
    by_ps = ancestry_of(os.getpid(), _kin._from_ps())
    by_proc = ancestry_of(os.getpid())
    assert [pid for pid, _ in by_ps.processes] == [pid for pid, _ in by_proc.processes]
    assert by_ps.has_terminal == by_proc.has_terminal
