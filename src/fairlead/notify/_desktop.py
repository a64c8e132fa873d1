"""Tell a person on the desktop. Only for the process that sends: what it imports is slow to load.

A note's text is data on every road: escaped where markup is read, never part of a script.
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

from fairlead.notify._unsent import MISSING, Unsent, reason
from fairlead.process import run_process

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.notify._when import Note

PATIENCE = 5.0
"""Seconds for each road: a desktop that does not answer by then will not."""


def show(note: Note, log: Callable[[str], None]) -> bool:
    """Take the first road that works; say of each that did not, why. Tells whether one did."""
    for name, road in _roads():
        try:
            road(note)
        except TimeoutError:
            log(f"desktop, by {name}: no answer within {PATIENCE:g} s")
            return False  # it may yet be shown: another road could show it twice
        except Exception as error:  # noqa: BLE001 - whatever a library raises, the next road is tried
            log(f"desktop, by {name}: {reason(error)}")
        else:
            return True
    return False


def _roads() -> list[tuple[str, Callable[[Note], None]]]:
    if platform.system() == "Darwin":
        return [("desktop-notifier", _by_library), ("osascript", _by_osascript)]
    return [("desktop-notifier", _by_library), ("notify-send", _by_notify_send)]


# -- the library ---------------------------------------------------------------------------------------


class _Warnings(logging.Handler):
    """The library never raises: it warns, and goes on."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.first: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        cause = record.exc_info[1] if record.exc_info else None
        self.first = self.first or f"{record.getMessage()}{f': {reason(cause)}' if cause is not None else ''}"


def _by_library(note: Note) -> None:
    try:
        from desktop_notifier import DesktopNotifier, Urgency
    except ImportError as error:
        raise Unsent(MISSING) from error
    _find_bus()
    warnings = _Warnings()
    logging.getLogger("desktop_notifier").addHandler(warnings)
    notifier = DesktopNotifier(app_name="Fairlead", app_icon=None)
    urgency = Urgency.Critical if note.status == "failure" else Urgency.Normal
    asyncio.run(asyncio.wait_for(notifier.send(note.title, _body(note), urgency), PATIENCE))
    if warnings.first:
        raise Unsent(warnings.first)


def _find_bus() -> None:
    """Where no address is set (a login by ssh, a cron job), the bus is where systemd puts it."""
    bus = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.getuid()}") / "bus"
    if bus.is_socket():
        os.environ.setdefault("DBUS_SESSION_BUS_ADDRESS", f"unix:path={bus}")


def _body(note: Note) -> str:
    """The freedesktop specification lets a body hold markup; a summary is plain."""
    return _escaped(note.body) if platform.system() == "Linux" else note.body


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


# -- programs ------------------------------------------------------------------------------------------


def _by_notify_send(note: Note) -> None:
    """Its only way in is its arguments. After `--` none is an option; a backslash in the body begins an escape."""
    _find_bus()
    urgency = "critical" if note.status == "failure" else "normal"
    body = _escaped(note.body).replace("\\", "\\\\")
    _run(["notify-send", "--app-name=Fairlead", f"--urgency={urgency}", "--", note.title, body], b"")


def _by_osascript(note: Note) -> None:
    """The script is a constant; the text comes to it as JSON, by stdin."""
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
        raise Unsent("not installed")
    result = run_process([program, *command[1:]], stdin, deadline=monotonic() + PATIENCE)
    if result.exit_code is None:
        raise TimeoutError
    if result.exit_code:
        raise Unsent(result.stderr.decode(errors="replace").strip() or f"exit code {result.exit_code}")
