"""The check of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.doctor.probes._state import _check_database
from fairlead.store import Store
from fairlead.store._files import create_if_missing

if TYPE_CHECKING:
    from pathlib import Path


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
