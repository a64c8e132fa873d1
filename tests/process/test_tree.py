"""The ancestors of a process: with real processes, and with tables that change during the walk."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.process import Ancestry, ancestry_of, command_line, process_start_time
from fairlead.process._table import MAX_ANCESTORS, ProcessRow, _rows_from_ps

SHOW = "import os; from fairlead.process import ancestry_of; print(ancestry_of(os.getpid()).{})"


def row(parent: int, start: int = 0) -> ProcessRow:
    return ProcessRow(parent, start, has_terminal=False)


def run_python(code: str, *args: str, new_session: bool = False) -> str:
    command = [sys.executable, "-c", code, *args]
    return subprocess.run(command, capture_output=True, text=True, start_new_session=new_session, check=True).stdout


def test_a_process_comes_first_then_its_parent_then_theirs() -> None:
    processes = ancestry_of(os.getpid()).processes
    assert processes[:2] == (
        (os.getpid(), process_start_time(os.getpid())),
        (os.getppid(), process_start_time(os.getppid())),
    )
    assert processes[-1][0] == 1 or len(processes) >= 2  # in a container that hides it, less


def test_the_command_line_has_every_argument_and_no_more() -> None:
    command = [sys.executable, "-c", "input(1)", "", "two words"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.read(1) == b"1"  # it runs: before that, the system shows no arguments
        assert command_line(child.pid) == command
        child.stdin.write(b"\n")
    assert command_line(child.pid) == []


def test_the_ancestors_of_a_grandchild_include_us() -> None:
    shown = run_python(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SHOW.format('processes')!r}])")
    assert f"({os.getpid()}, {process_start_time(os.getpid())})" in shown


def test_a_process_that_has_ended_has_no_ancestry() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert ancestry_of(child.pid) == Ancestry()


@pytest.mark.parametrize("pid", [0, -1])
def test_a_process_that_is_not_visible_has_no_ancestry(pid: int) -> None:
    assert ancestry_of(pid) == Ancestry()


def test_a_new_session_has_no_terminal() -> None:
    assert run_python(SHOW.format("has_terminal"), new_session=True) == "False\n"


def test_a_process_with_a_controlling_terminal_has_one() -> None:
    master, slave = os.openpty()
    code = f"import os, sys; os.close(os.open(sys.argv[1], os.O_RDWR)); {SHOW.format('has_terminal')}"
    shown = run_python(code, os.ttyname(slave), new_session=True)
    os.close(slave)
    os.close(master)
    assert shown == "True\n"


def test_the_walk_ends_at_a_process_that_has_ended_meanwhile() -> None:
    table = {9: row(8, 90), 8: row(7, 80)}
    assert ancestry_of(9, table.get).processes == ((9, 90), (8, 80))


def test_a_process_that_reuses_a_pid_is_not_taken_for_the_parent() -> None:
    table = {9: row(8, 90), 8: row(7, 95), 7: row(1, 10)}
    assert ancestry_of(9, table.get).processes == ((9, 90),)


def test_a_cycle_in_the_table_ends_the_walk() -> None:
    table = {9: row(8), 8: row(9)}
    assert len(ancestry_of(9, table.get).processes) == MAX_ANCESTORS


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="/bin/ps is not installed")
def test_ps_lists_the_same_ancestors_as_proc() -> None:
    by_ps = ancestry_of(os.getpid(), _rows_from_ps())
    by_proc = ancestry_of(os.getpid())
    assert [pid for pid, _ in by_ps.processes] == [pid for pid, _ in by_proc.processes]
    assert by_ps.has_terminal == by_proc.has_terminal
