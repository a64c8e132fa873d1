"""What is said where there is nothing to show: why, and what to do. No screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.tui.model._view import Line

if TYPE_CHECKING:
    from fairlead.tui.model._view import View

_QUIET = """\
no sessions yet

A session is shown from its first event on, if its client has the hooks:

  fairlead hooks install   puts them in; then begin a session
  fairlead doctor          says what is wrong, if none comes"""


def nothing_to_show(view: View, ended: int) -> list[Line]:
    """Give the lines that stand in for sessions: so many have ended, and are not shown."""
    if view.words:
        return [Line("note", "nothing has these words; Esc shows all again")]
    if ended and not view.show_ended:
        who = "the only session has" if ended == 1 else f"all {ended} sessions have"
        return [Line("note", f"{who} ended; e shows {'it' if ended == 1 else 'them'}")]
    if view.project:
        return [Line("note", "no session works in this project; leave and run without --project to see all")]
    return [Line("note", line) for line in _QUIET.splitlines()]
