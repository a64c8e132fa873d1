"""Shows a note on the desktop. Used only by the sending process: its imports are slow.

The text of a note is always data: escaped where markup is read, and never part of a script.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import shutil
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import msgspec

from fairlead.notify._errors import NOT_INSTALLED, NotSent, error_text
from fairlead.process import run_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.notify._notes import Note

_TIMEOUT = 5.0
"""Seconds for each method: a desktop that has not answered by then will not."""


def show(note: Note, log: Callable[[str], None]) -> bool:
    """Show a note by the first method that works, log why others failed, and return whether one worked.

    After a method that does not answer in time no other is tried: the note may still be shown.
    """
    for name, show_by in _methods():
        try:
            show_by(note)
        except TimeoutError:
            log(f"desktop, by {name}: no answer within {_TIMEOUT:g} s")
            return False  # the note may still be shown, and another method would show it a second time
        except Exception as error:  # noqa: BLE001 - whatever a library raises, the next method is tried
            log(f"desktop, by {name}: {error_text(error)}")
        else:
            return True
    return False


def _methods() -> list[tuple[str, Callable[[Note], None]]]:
    if platform.system() == "Darwin":
        return [("desktop-notifier", _by_library), ("osascript", _by_osascript)]
    return [("desktop-notifier", _by_library), ("notify-send", _by_notify_send)]


# -- desktop-notifier ----------------------------------------------------------------------------------


class _FirstWarning(logging.Handler):
    """Keeps the first warning of the library, which logs its failures and never raises them."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.text: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.text = self.text or f"{record.getMessage()}{f': {error_text(cause)}' if cause is not None else ''}"


def _by_library(note: Note) -> None:
    try:
        from desktop_notifier import DesktopNotifier, Urgency
    except ImportError as error:
        raise NotSent(NOT_INSTALLED) from error
    _set_bus_address()
    warning = _FirstWarning()
    logging.getLogger("desktop_notifier").addHandler(warning)
    notifier = DesktopNotifier(app_name="Fairlead", app_icon=None)
    urgency = Urgency.Critical if note.status == "failure" else Urgency.Normal
    asyncio.run(asyncio.wait_for(notifier.send(note.title, _body(note), urgency), _TIMEOUT))
    if warning.text:
        raise NotSent(warning.text)


def _set_bus_address() -> None:
    """Set the environment's session bus to that of systemd if none is set, as after a login by ssh or in a cron job."""
    bus = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
    if bus.is_socket():
        os.environ.setdefault("DBUS_SESSION_BUS_ADDRESS", f"unix:path={bus}")


def _body(note: Note) -> str:
    """Return the body, escaped on Linux: the freedesktop specification allows markup in bodies only."""
    return _escape(note.body) if platform.system() == "Linux" else note.body


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- programs ------------------------------------------------------------------------------------------


def _by_notify_send(note: Note) -> None:
    """Run `notify-send` with the note after `--`: no text is taken for an option. Backslashes are escaped, too."""
    _set_bus_address()
    urgency = "critical" if note.status == "failure" else "normal"
    body = _escape(note.body).replace("\\", "\\\\")
    _run(["notify-send", "--app-name=Fairlead", f"--urgency={urgency}", "--", note.title, body], b"")


def _by_osascript(note: Note) -> None:
    """Run `osascript` with a constant script, which reads the note as JSON from stdin."""
    text = msgspec.json.encode({"title": note.title, "body": note.body})
    _run(["osascript", "-l", "JavaScript", "-e", _SCRIPT], text)


_SCRIPT = """
ObjC.import("Foundation");
const data = $.NSFileHandle.fileHandleWithStandardInput.readDataToEndOfFile;
const note = JSON.parse($.NSString.alloc.initWithDataEncoding(data, $.NSUTF8StringEncoding).js);
const app = Application.currentApplication();
app.includeStandardAdditions = true;
app.displayNotification(note.body, {withTitle: note.title});
"""


def _run(command: list[str], stdin: bytes) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise NotSent("not installed")
    result = run_process([program, *command[1:]], stdin, deadline=monotonic() + _TIMEOUT)
    if result.exit_code is None:
        raise TimeoutError
    if result.exit_code:
        raise NotSent(result.stderr.decode(errors="replace").strip() or f"exit code {result.exit_code}")
