"""The file with the leases. It is replaced as a whole, so that a killed daemon leaves a complete file."""

from __future__ import annotations

import os

import msgspec

from fairlead.files import write_private
from fairlead.leases import Lease
from fairlead.paths import make_private, state_folder

_NAME = "leases.json"


class LeaseFile:
    """Reads and writes all leases at once, because there are few and they rarely change."""

    def __init__(self, folder: str = "") -> None:
        """Use the file in a folder; by default in the user's state folder."""
        self._folder = folder or state_folder()
        self.path = f"{self._folder}/{_NAME}"

    def read(self) -> tuple[Lease, ...]:
        """Return the leases; none without a file.

        Raise `OSError` if it cannot be read, and `ValueError` if it is damaged, after renaming it.
        """
        try:
            with open(self.path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            return ()
        try:
            return msgspec.json.decode(content, type=tuple[Lease, ...])
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            os.replace(self.path, f"{self.path}.damaged")
            raise ValueError(f"{self.path} is damaged, and was set aside: {error}") from None

    def write(self, leases: tuple[Lease, ...]) -> None:
        """Replace the file. It survives a power failure once this returns. Raise `OSError` if it cannot be written."""
        make_private(self._folder)
        write_private(self.path, msgspec.json.encode(leases), durable=True)
