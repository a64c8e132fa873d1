"""Notifies the user, on the desktop and by other channels.

Reads no policy file: settings are passed as plain values. A separate process sends a note, so that neither a slow
service nor a missing library can delay or fail a hook.
"""

from fairlead.notify._notes import (
    CommandStatus,
    Note,
    Status,
    WaitingSession,
    attention_note,
    command_note,
    event_note,
    is_system_event,
    mail_note,
)
from fairlead.notify._send import NO_CHANNEL, NO_DESKTOP, has_desktop, log_file, send

__all__ = [
    "NO_CHANNEL",
    "NO_DESKTOP",
    "CommandStatus",
    "Note",
    "Status",
    "WaitingSession",
    "attention_note",
    "command_note",
    "event_note",
    "has_desktop",
    "is_system_event",
    "log_file",
    "mail_note",
    "send",
]
