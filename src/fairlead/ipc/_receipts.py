"""Receipts: the files that say which replies with mail were not printed yet.

The daemon makes a file before it marks mail as shown, named by the showing. Who prints the reply renames it before,
and removes it after. So whatever process is killed, a later daemon can tell: a file under its own name was not
printed, one under the other name may have been, and one that is gone was.
"""

from __future__ import annotations

import os
from contextlib import suppress

from fairlead.paths import runtime_folder

PRINTING = ".printing"
"""What the name ends with while the reply is being printed."""


def receipts_folder() -> str:
    """Return the folder of the receipts."""
    return f"{runtime_folder()}/receipts"


def begin_printing(name: str) -> None:
    """Note that a reply is about to be printed; without a name it needs no receipt."""
    if name and "/" not in name:
        path = f"{receipts_folder()}/{name}"
        with suppress(OSError):
            os.rename(path, path + PRINTING)


def give_receipt(name: str) -> None:
    """Note that a reply was printed."""
    if name and "/" not in name:
        with suppress(OSError):
            os.unlink(f"{receipts_folder()}/{name}{PRINTING}")
