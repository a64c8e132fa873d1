"""The error of the light structs."""

from __future__ import annotations


class NeedsMsgspec(BaseException):
    """Raised for what the light structs cannot do. A process with msgspec then decides the event.

    Not an `Exception`, because code that handles the failure of a guard must not catch it.
    """
