"""The error of the light structs."""

from __future__ import annotations


class NeedsMsgspec(BaseException):
    """The light structs cannot do this.

    Not an `Exception`, because code that handles the failure of a guard must not catch it.
    """
