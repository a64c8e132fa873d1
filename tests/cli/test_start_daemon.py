"""Commands that ask the daemon start one if there is none, unless that is forbidden."""

from __future__ import annotations

import errno
import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import FAIRLEAD, scratch_home

from fairlead.cli.support.daemon_client import start_failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from daemon.daemon_home import DaemonHome

COMMANDS = {
    "sessions": "no session is running\n",
    "answer": "no open questions",
    "history": "no session since ",
    "watch --once": "",
}


@pytest.fixture
def home() -> Iterator[DaemonHome]:
    """A home without a daemon, in which one is started on demand."""
    with scratch_home() as made:
        yield made


def run(home: DaemonHome, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    words, environment = [str(FAIRLEAD), *command.split()], {**home.environment(), **variables}
    return subprocess.run(
        words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_starts_a_daemon_and_is_answered(home: DaemonHome, command: str) -> None:
    done = run(home, command)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(COMMANDS[command])
    assert home.status() is not None


def test_an_answer_to_a_question_of_the_last_daemon_says_that_it_is_over(home: DaemonHome) -> None:
    done = run(home, "answer k7qd3 allow")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fairlead: no open question has the id 'k7qd3'")


@pytest.mark.parametrize("command", COMMANDS)
def test_where_none_is_wanted_it_says_so(home: DaemonHome, command: str) -> None:
    done = run(home, command, FAIRLEAD_NO_DAEMON="1")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fairlead: no daemon is running")
    assert home.daemons() == []


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EACCES, "; make it writable, or set FAIRLEAD_HOME to a folder that is"),
        (errno.EEXIST, "; it must be a folder: remove what is there, or set FAIRLEAD_HOME"),
        (errno.ENOTDIR, "; it must be a folder: remove what is there, or set FAIRLEAD_HOME"),
        (errno.ENOSPC, ""),
    ],
)
def test_a_folder_that_keeps_a_daemon_from_starting_is_named_with_what_to_do(number: int, advice: str) -> None:
    told = str(start_failure(OSError(number, os.strerror(number), "/home/user/state")))
    assert told == f"the daemon cannot be started: /home/user/state: {os.strerror(number)}{advice}"
