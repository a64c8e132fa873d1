"""Whether a process is alive, by its pid and start time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from fairlead.process import LivenessCache, dead_processes, is_alive, process_start_time


def test_a_process_is_identified_by_its_pid_and_its_start_time() -> None:
    start = process_start_time(os.getpid())

    assert start > 0
    assert is_alive(os.getpid(), start)
    assert is_alive(os.getpid())
    assert not is_alive(os.getpid(), start + 1)
    assert is_alive(0)


def test_a_killed_process_is_dead_even_before_it_is_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    pair = (process.pid, process_start_time(process.pid))
    try:
        assert dead_processes([pair]) == []
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert dead_processes([pair]) == [pair]
    finally:
        process.wait()
        if process.stdin:
            process.stdin.close()
    assert dead_processes([pair]) == [pair]


def test_a_cache_of_living_processes_notices_at_once_that_one_has_ended() -> None:
    processes = [subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) for _ in range(2)]
    pairs = [(process.pid, process_start_time(process.pid)) for process in processes]
    cache = LivenessCache(size=1)
    try:
        assert [cache.is_alive(pair) for pair in pairs * 2] == [True] * 4
        processes[1].send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, processes[1].pid, os.WEXITED | os.WNOWAIT)
        assert [cache.is_alive(pair) for pair in pairs] == [True, False]
        assert [cache.is_alive(pair) for pair in pairs] == [True, False]
        assert not cache.is_alive((os.getpid(), 1))
        assert cache.is_alive((os.getpid(), 0))
    finally:
        cache.close()
        for process in processes:
            process.kill()
            process.communicate()
