"""How a person is told: on the desktop, and by other channels.

Knows no policy file: what the user set comes in as plain values. Deciding is pure; sending is a process of its own,
so that neither a slow service nor a missing library can delay or fail a hook.
"""

from fairlead.notify._send import NO_CHANNEL, NO_DESKTOP, has_desktop, log_file, send
from fairlead.notify._when import (
    CommandStatus,
    Note,
    Status,
    Waiting,
    is_system_event_hook,
    note_for,
    note_of_command,
    note_of_waiting,
)

__all__ = [
    "NO_CHANNEL",
    "NO_DESKTOP",
    "CommandStatus",
    "Note",
    "Status",
    "Waiting",
    "has_desktop",
    "is_system_event_hook",
    "log_file",
    "note_for",
    "note_of_command",
    "note_of_waiting",
    "send",
]
