"""Creates the files of receipts, and finds replies with mail that may not have been printed.

The file of a receipt exists until the reader has printed the mail, and removes it (`ipc.give_receipt`).
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from secrets import token_hex
from time import time
from typing import TYPE_CHECKING, Literal

from fairlead.ipc import PRINTING, receipts_folder
from fairlead.mail import MailUnreachable
from fairlead.paths import make_private
from fairlead.process import is_alive, process_start_time

if TYPE_CHECKING:
    from collections.abc import Iterator

State = Literal["unprinted", "printing", "printed", "unknown"]
"""Whether mail was printed. `printing`: it may have been printed. `unknown`: the reader gives no receipts."""

_MAX_OPENED = 20_000
_UNKNOWN_READER_AGE = 600.0
"""Seconds after which a reader whose process is not known counts as dead."""
_MAX_PID = 2**31


class Receipts:
    """The receipts that readers have not given yet, each identified by the id of its showing. Thread-safe."""

    def __init__(self) -> None:
        self._folder = receipts_folder()
        self._opened: OrderedDict[str, None] = OrderedDict()

    def make_folder(self) -> None:
        """Create the folder of the receipts. Errors are ignored, because `open` tries again."""
        with suppress(OSError):
            make_private(self._folder)

    def open(self, showing: str, pid: int) -> None:
        """Create the file of a receipt for the reader with that pid, which is 0 if it is not known.

        Raises `MailUnreachable` if that fails. No mail may be shown then.
        """
        self._opened[showing] = (
            None  # before the file exists, because then another thread may close it if its reader is dead
        )
        try:
            self._write(showing, pid)
        except OSError as error:
            self._opened.pop(showing, None)
            raise MailUnreachable(f"the mail is not shown, because no receipt can be kept: {error.strerror}") from None
        while len(self._opened) > _MAX_OPENED:
            self._opened.popitem(last=False)

    def _write(self, showing: str, pid: int) -> None:
        path = f"{self._folder}/{showing}"
        content = f"{pid} {process_start_time(pid) if pid else 0}".encode()
        try:
            file = _create(path)
        except FileNotFoundError:
            make_private(self._folder)
            file = _create(path)
        try:
            os.write(file, content)
        finally:
            os.close(file)

    def state(self, showing: str) -> State:
        """Return whether the mail of a showing was printed. Call it after its reader has ended."""
        path = f"{self._folder}/{showing}"
        if os.path.lexists(path):
            return "unprinted"
        if os.path.lexists(path + PRINTING):
            return "printing"
        return "printed" if showing in self._opened else "unknown"

    def close(self, showing: str) -> None:
        """Delete the file of a receipt, and forget its showing. Does nothing if there is none."""
        self._opened.pop(showing, None)
        for ending in ("", PRINTING):
            with suppress(OSError):
                os.unlink(f"{self._folder}/{showing}{ending}")

    def of_event(self, event_id: str) -> list[str]:
        """Return the ids of an event's showings that still have no receipt, even if an earlier daemon made them."""
        return [name for name in self._names() if name.partition(".")[0] == event_id]

    def abandoned(self) -> list[str]:
        """Return the ids of the showings whose reader has died without giving its receipt."""
        return [showing for showing in self._names() if self._is_abandoned(showing)]

    def _names(self) -> Iterator[str]:
        try:
            names = os.listdir(self._folder)
        except OSError:
            return iter(())
        return iter(sorted({name.removesuffix(PRINTING) for name in names}))

    def _is_abandoned(self, showing: str) -> bool:
        for ending in ("", PRINTING):
            try:
                with open(f"{self._folder}/{showing}{ending}", "rb") as file:
                    pid, start = map(int, file.read(100).split())
                    age = time() - os.fstat(file.fileno()).st_mtime
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                pid, start, age = 0, 0, _UNKNOWN_READER_AGE
            return age >= _UNKNOWN_READER_AGE if not pid else not is_alive(pid, start)
        return False


def reader_pid(event_id: str) -> int:
    """Return the launcher's pid, which is the hexadecimal end of its event id: `6a3f-1f` → 31; 0 if there is none."""
    start, dash, pid = event_id.partition(".")[0].rpartition("-")
    try:
        number = int(pid, 16)
    except ValueError:
        return 0
    return number if dash and "-" not in start and 0 < number < _MAX_PID else 0


def unique_showing(event_id: str) -> str:
    """Return a new id for a showing at an event, so that undoing an earlier showing of the event does not affect it."""
    return f"{event_id}.{token_hex(4)}"


def _create(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
