"""A signal reaches one very process: the pid alone is not enough."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from fairlead.process import ProcessNotEnded, process_folder, process_start_time, process_variables, terminate_process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells when a process started")


@contextmanager
def program(code: str, **settings: object) -> Iterator[subprocess.Popen[str]]:
    """Start a program that has printed a line when it is ready."""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, **settings) as process:  # type: ignore[call-overload]  # as given
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


SLEEPS = "import time; print('ready', flush=True); time.sleep(600)"
REFUSES = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPS}"


def test_a_process_is_ended_by_its_pid_and_start() -> None:
    with program(SLEEPS) as process:
        assert terminate_process(process.pid, process_start_time(process.pid), 10.0)
        assert process.wait(10) == -signal.SIGTERM


@pytest.mark.parametrize("difference", [-1, 1])
def test_a_process_that_has_the_pid_of_another_is_left_alone(difference: int) -> None:
    with program(SLEEPS) as process:
        with pytest.raises(ProcessNotEnded, match="another one has that pid now"):
            terminate_process(process.pid, process_start_time(process.pid) + difference, 10.0)
        with pytest.raises(ProcessNotEnded, match="is not known"):
            terminate_process(process.pid, 0, 10.0)
        assert process.poll() is None


def test_a_process_that_does_not_end_in_time_is_reported() -> None:
    with program(REFUSES) as process:
        assert not terminate_process(process.pid, process_start_time(process.pid), 0.2)


def test_a_process_that_is_gone_is_an_error() -> None:
    with program(SLEEPS) as process:
        start = process_start_time(process.pid)
        process.kill()
        process.wait()
        with pytest.raises(ProcessNotEnded, match="is gone"):
            terminate_process(process.pid, start, 1.0)


def test_the_folder_and_the_variables_of_a_process_are_read(tmp_path: Path) -> None:
    env = {**os.environ, "TMUX": "/tmp/t,1,0", "TMUX_PANE": "%3"}
    with program(SLEEPS, cwd=tmp_path, env=env) as process:
        assert process_folder(process.pid) == str(tmp_path)
        found = process_variables(process.pid, ("TMUX", "TMUX_PANE", "NOT_SET"))
        assert found == {"TMUX": "/tmp/t,1,0", "TMUX_PANE": "%3"}
        process.kill()
        process.wait()
        assert (process_folder(process.pid), process_variables(process.pid, ("TMUX",))) == ("", {})
