"""Receipts: files that record which replies with mail were not printed yet.

The daemon creates a file before it marks mail as shown. The process that prints the reply renames the file before it
prints, and removes the file afterwards. So a later daemon knows the state even if a process was killed: with the
original name, the reply was not printed; with the other name, it may have been printed; without a file, it was printed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from fairlead.paths import runtime_folder

PRINTING = ".printing"
"""The suffix of the file's name while the reply is being printed."""


def receipts_folder() -> str:
    """Return the folder of the receipts."""
    return f"{runtime_folder()}/receipts"


def begin_printing(name: str) -> None:
    """Rename a receipt, which records that its reply is about to be printed.

    Does nothing if `name` is empty or contains a slash. Errors are ignored.
    """
    if name and "/" not in name:
        path = f"{receipts_folder()}/{name}"
        with suppress(OSError):
            os.rename(path, path + PRINTING)


def give_receipt(name: str) -> None:
    """Remove a receipt, which records that its reply was printed.

    Does nothing if `name` is empty or contains a slash. Errors are ignored.
    """
    if name and "/" not in name:
        with suppress(OSError):
            os.unlink(f"{receipts_folder()}/{name}{PRINTING}")
