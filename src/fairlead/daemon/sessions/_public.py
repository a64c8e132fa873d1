"""Sessions as they are shown to people and programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.sessions import SessionMemory, bounded

if TYPE_CHECKING:
    from fairlead.sessions import Session

_NO_MEMORY = SessionMemory()


def public(session: Session, *, is_whole: bool = False) -> Session:
    """Return a session without its internal state, and with long questions cut unless `is_whole`."""
    return replace(session if is_whole else bounded(session), memory=_NO_MEMORY)
