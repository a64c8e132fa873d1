"""Why a note could not be sent, as text for the log."""

from __future__ import annotations

NOT_INSTALLED = "not installed; try: pip install 'fairlead[notify]'"


class NotSent(Exception):
    """A note could not be shown on the desktop, or sent to a channel. The message is the reason."""


def error_text(error: BaseException) -> str:
    """Return the message of an error; the name of its class if it has none."""
    return str(error) or type(error).__name__
