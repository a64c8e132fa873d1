"""What was done, and where it is written: the journal, and the spool of events that met no daemon.

The parts are loaded on first use: who puts one record into the spool needs few of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.journal._errors import JournalError, SpoolFull
    from fairlead.journal._journal import Journal, Recovered
    from fairlead.journal._lines import name_of
    from fairlead.journal._payload import record_payload
    from fairlead.journal._reader import Position, Reader, journal_folder
    from fairlead.journal._records import LONGEST_REASON, Caller, Done, Happened, Ran, Record, Road, Turn, Verdict
    from fairlead.journal._spool import pending, put, remove, spool_folder, take

__all__ = [
    "LONGEST_REASON",
    "Caller",
    "Done",
    "Happened",
    "Journal",
    "JournalError",
    "Position",
    "Ran",
    "Reader",
    "Record",
    "Recovered",
    "Road",
    "SpoolFull",
    "Turn",
    "Verdict",
    "journal_folder",
    "name_of",
    "pending",
    "put",
    "record_payload",
    "remove",
    "spool_folder",
    "take",
]

_HOMES = {
    "JournalError": "_errors",
    "SpoolFull": "_errors",
    "Journal": "_journal",
    "Recovered": "_journal",
    "name_of": "_lines",
    "record_payload": "_payload",
    "Position": "_reader",
    "Reader": "_reader",
    "journal_folder": "_reader",
    "pending": "_spool",
    "put": "_spool",
    "remove": "_spool",
    "spool_folder": "_spool",
    "take": "_spool",
}


def __getattr__(name: str) -> object:
    """Load a public name on first use."""
    if name in __all__:
        from importlib import import_module  # noqa: PLC0415 - only the first use pays for it

        home = import_module(f"fairlead.journal.{_HOMES.get(name, '_records')}")
        globals()[name] = value = getattr(home, name)
        return value
    raise AttributeError(f"module 'fairlead.journal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
