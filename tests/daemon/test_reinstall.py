"""A daemon whose code was installed anew, in whatever version, makes room for one that runs it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from daemon.daemon_home import until

import fairlead
from fairlead.daemon._installed_code import InstalledCode

if TYPE_CHECKING:
    from daemon.daemon_home import DaemonHome

PACKAGE = Path(fairlead.__file__).parent


def test_the_next_event_is_answered_by_the_code_that_is_installed(home: DaemonHome, tmp_path: Path) -> None:
    """An edit of the same size in a copy of the package: no version, and no file is new."""
    copied = tmp_path / "fairlead"
    shutil.copytree(PACKAGE, copied, ignore=shutil.ignore_patterns("__pycache__"))
    with home.daemon(PYTHONPATH=str(tmp_path)) as daemon:
        home.hook("PreToolUse", home.edit("src/a.txt"))
        changed = copied / "daemon/_shutdown.py"
        changed.write_text(changed.read_text().replace("shut down", "shut DOWN"))
        until(lambda: daemon.poll() is not None, "it has noticed")

        assert daemon.returncode == 0
        assert home.hook("PreToolUse", home.edit("src/a.txt")).exit_code == 0
        assert len(home.happened()) + len(home.spooled()) == 2, "none is lost"
    texts = [file.read_text() for file in (home.state / "journal").iterdir()]
    assert any("stopped: the installed code has changed" in text for text in texts)


def test_a_daemon_goes_when_an_installation_is_over_and_not_for_a_new_time(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    for name in ("__init__.py", "part/a.py"):
        (tmp_path / name).write_text("one")
    code = InstalledCode(str(tmp_path))
    assert not code.has_changed()

    os.utime(tmp_path / "part/a.py", (1, 1))
    assert [code.has_changed(), code.has_changed()] == [False, False]
    (tmp_path / "__init__.py").unlink()
    assert [code.has_changed(), code.has_changed()] == [False, False], "pip has removed it, and is not done"
    (tmp_path / "__init__.py").write_text("two")
    assert [code.has_changed(), code.has_changed()] == [False, True]


def test_a_new_and_a_removed_module_are_changes(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text("one")
    code = InstalledCode(str(tmp_path))
    (tmp_path / "b.py").write_text("")
    assert [code.has_changed(), code.has_changed()] == [False, True]
