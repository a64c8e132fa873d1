"""Whatever the caller's umask and folders are: only this user can read or change what Fairlead keeps."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from daemon.daemon_home import FAIRLEAD, LAUNCHER, scratch_home, until

if TYPE_CHECKING:
    from pathlib import Path

    from daemon.daemon_home import DaemonHome


def run(home: DaemonHome, *command: str, stdin: bytes = b"") -> None:
    subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        cwd=home.project,
        env=home.environment(),
        preexec_fn=lambda: os.umask(0),
        check=False,
    )


def open_to_others(folder: Path) -> list[str]:
    """Return what others than the owner may use in any way."""
    every = [folder, *folder.rglob("*")]
    return [f"{path} {path.lstat().st_mode:o}" for path in every if path.lstat().st_mode & 0o077]


@pytest.mark.parametrize("moved", [True, False], ids=["FAIRLEAD_HOME", "HOME"])
def test_without_a_umask_all_files_are_private(*, moved: bool) -> None:
    with scratch_home() as home:
        home.state.rmdir()
        kept = home.state if moved else home.folder / ".local"
        if not moved:
            home.env.update(FAIRLEAD_HOME="", XDG_RUNTIME_DIR=str(home.folder / ".local/state/run"))
            home.env.update(XDG_CONFIG_HOME=str(home.folder / ".local/config"))
            (home.folder / ".local/state/run").mkdir(parents=True, mode=0o700)
            for folder in (home.folder / ".local", home.folder / ".local/state"):
                folder.chmod(0o700)
        (home.project / ".fairlead.yaml").write_text("stop: {commands: [{run: 'exit 1'}]}\n")
        run(home, str(LAUNCHER), "PreToolUse", stdin=home.edit("a.txt"))
        run(home, str(LAUNCHER), "Stop", stdin=home.payload(hook_event_name="Stop"))
        run(home, str(FAIRLEAD), "trust", "--yes")
        lock = kept / "run/daemon.lock" if moved else kept / "state/run/fairlead/daemon.lock"
        until(lock.exists, "the event has started a daemon")
        until(lambda: list(kept.rglob("fairlead.db")), "it has opened its database")
        assert open_to_others(kept) == []
        if moved:
            return
        subprocess.run([FAIRLEAD, "daemon", "stop", "--yes"], env=home.environment(), capture_output=True, check=False)
        until(lambda: not list(kept.rglob("daemon.sock")), "it has ended")


def test_the_commands_of_a_policy_keep_the_callers_umask(home: DaemonHome) -> None:
    home.policy("stop: {commands: [{run: 'umask > mask'}]}\n")
    run(home, str(LAUNCHER), "Stop", stdin=home.payload(hook_event_name="Stop"))
    assert (home.project / "mask").read_text() == "0000\n"


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make a link of another user")
def test_a_strangers_link_in_a_shared_folder_is_not_followed(home: DaemonHome) -> None:
    shared, mine = home.folder / "shared", home.folder / "mine"
    shared.mkdir()
    shared.chmod(0o1777)
    mine.mkdir(mode=0o755)
    link = shared / "fairlead"
    link.symlink_to(mine)
    env = home.environment(FAIRLEAD_HOME="", XDG_RUNTIME_DIR=str(shared))
    command = [sys.executable, "-m", "fairlead.daemon"]
    os.lchown(link, 65534, 65534)
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.endswith(f"{link}: is another user's link, so no socket is put there; set FAIRLEAD_HOME\n")
    assert (list(mine.iterdir()), mine.stat().st_mode & 0o777) == ([], 0o755)
