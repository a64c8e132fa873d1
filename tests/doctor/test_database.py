"""The look at the database: one that a daemon is just making is not taken for a damaged one."""

from __future__ import annotations

from contextlib import ExitStack
from threading import Thread
from typing import TYPE_CHECKING

from fairlead.doctor._look_state import _look
from fairlead.store import Store
from fairlead.store._files import locked

if TYPE_CHECKING:
    from pathlib import Path

_LATER = 0.3
"""Seconds in which a look that does not wait would be over."""


def test_a_database_that_is_being_made_is_waited_for(tmp_path: Path) -> None:
    made, file = tmp_path / "made.db", tmp_path / "fairlead.db"
    Store.open(f"sqlite:///{made}").close()
    file.touch()
    found: list[tuple[str, str, bool]] = []
    look = Thread(target=lambda: found.append(_look(str(file))))
    with ExitStack() as stack:
        stack.enter_context(locked(file))
        look.start()
        look.join(_LATER)
        assert look.is_alive()
        made.rename(file)
    look.join()
    ((revision, problem, is_whole),) = found
    assert revision
    assert (problem, is_whole) == ("", True)


def test_one_that_stays_empty_is_damaged(tmp_path: Path) -> None:
    file = tmp_path / "fairlead.db"
    file.touch()
    assert _look(str(file)) == ("", "it is empty", True)
