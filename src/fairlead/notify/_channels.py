"""Sends a note to channels, each an Apprise URL. Used only by the sending process.

The URLs contain secrets, so the log has only the number and service of a channel, and the names of its variables.
"""

from __future__ import annotations

import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from fairlead.notify._errors import NOT_INSTALLED, NotSent, error_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from apprise import Apprise

    from fairlead.notify._notes import Note, Status

_VARIABLE = re.compile(r"\$\{(\w+)\}")


def publish(note: Note, channels: Sequence[str], log: Callable[[str], None]) -> bool:
    """Send a note to all channels in parallel, and return whether all of them accepted it.

    `channels` are URLs, which may contain variables as `${NAME}`. `log` is called with each error.
    """
    if not channels:
        return True
    log = _redacting(channels, os.environ, log)
    try:
        import apprise  # noqa: F401 - an optional extra
    except ImportError:
        log(f"channels, by apprise: {NOT_INSTALLED}")
        return False
    targets = [_open(number, channel, log) for number, channel in enumerate(channels, 1)]
    _log_apprise_warnings(log)  # not earlier: Apprise logs the complete URL if it does not understand it
    with ThreadPoolExecutor(len(targets)) as pool:
        return all([*pool.map(lambda target: target is not None and _notify(note, target, log), targets)])


class _Target(NamedTuple):
    name: str
    service: Apprise


def _open(number: int, channel: str, log: Callable[[str], None]) -> _Target | None:
    from apprise import Apprise

    scheme = re.match(r"([a-z0-9]+)://", channel)
    target = _Target(f"channel {number}{f' ({scheme[1]})' if scheme else ''}", Apprise())
    try:
        if target.service.add(_expand(channel, os.environ)):
            return target
        log(f"{target.name}: Apprise does not understand this URL")
    except NotSent as error:
        log(f"{target.name}: {error}")
    return None


def _notify(note: Note, target: _Target, log: Callable[[str], None]) -> bool:
    from apprise import NotifyFormat, NotifyType

    kind = NotifyType(_KINDS[note.status])
    try:
        if target.service.notify(note.body, note.title, notify_type=kind, body_format=NotifyFormat.TEXT):
            return True
        log(f"{target.name}: not sent")
    except Exception as error:  # noqa: BLE001 - whatever a service's code raises is logged
        log(f"{target.name}: {error_text(error)}")
    return False


_KINDS: dict[Status, str] = {
    "success": "success",
    "failure": "failure",
    "blocked": "warning",
    "running": "info",
    "warning": "warning",
}


def _expand(channel: str, environ: Mapping[str, str]) -> str:
    """Return a channel with each `${NAME}` replaced by that variable. Raises `NotSent` if a variable is not set."""
    missing = [name for name in _VARIABLE.findall(channel) if not environ.get(name)]
    if missing:
        raise NotSent(f"not set in the environment: {', '.join(dict.fromkeys(missing))}")
    return _VARIABLE.sub(lambda match: environ[match[1]], channel)


def _redacting(
    channels: Sequence[str], environ: Mapping[str, str], log: Callable[[str], None]
) -> Callable[[str], None]:
    """Return a log function that replaces the values of the variables in `channels` by `${NAME}`."""
    names = {name for channel in channels for name in _VARIABLE.findall(channel) if environ.get(name)}

    def write(text: str) -> None:
        for name in sorted(names, key=lambda name: -len(environ[name])):
            text = text.replace(environ[name], f"${{{name}}}")
        log(text)

    return write


def _log_apprise_warnings(log: Callable[[str], None]) -> None:
    """Copy Apprise's warnings to the log: only they say why a note was not sent."""

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(f"apprise: {record.getMessage()}")

    logging.getLogger("apprise").addHandler(Handler(logging.WARNING))
