"""Why a note reached nobody, in words for the log."""

from __future__ import annotations

MISSING = "not installed; try: pip install 'fairlead[notify]'"


class Unsent(Exception):
    """A road that leads nowhere on this machine."""


def reason(error: BaseException) -> str:
    """What an error says; some say nothing but their name."""
    return str(error) or type(error).__name__
