"""The check of a database."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from unprivileged import without_permission

from fairlead.doctor.probes._state import _check_database, probe_state
from fairlead.store import Store
from fairlead.store._files import create_if_missing

if TYPE_CHECKING:
    import pytest


def test_an_emptied_database_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.db"
    Store.open(f"sqlite:///{file}").close()
    revision, *rest = _check_database(str(file))
    assert revision
    assert rest == ["", True]

    file.write_bytes(b"")
    assert _check_database(str(file)) == ("", "it is empty", True)


def test_one_that_a_daemon_is_just_making_is_not(tmp_path: Path) -> None:
    create_if_missing(tmp_path / "fairlead.db")
    assert _check_database(str(tmp_path / "fairlead.db")) == ("", "", True)


def test_a_state_folder_that_may_not_be_entered_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        state = Path(folder, "state")
        state.mkdir()
        monkeypatch.setenv("FAIRLEAD_HOME", str(state))
        with without_permission(state):
            facts = probe_state()

    assert facts.write_error == "Permission denied"
    assert facts.store is not None
    assert facts.store.set_aside == ()
