"""Tell a person by channels, each an Apprise URL. Only for the process that sends.

The URLs hold secrets: in the log a channel is its number and its service, and a variable's value is its name again.
"""

from __future__ import annotations

import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

from fairlead.notify._unsent import MISSING, Unsent, reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from apprise import Apprise

    from fairlead.notify._when import Note, Status

VARIABLE = re.compile(r"\$\{(\w+)\}")


def publish(note: Note, channels: Sequence[str], log: Callable[[str], None]) -> bool:
    """Send to all at once, so that one which hangs holds up no other. Tells whether each took it."""
    if not channels:
        return True
    log = _keeping_secrets(channels, os.environ, log)
    try:
        import apprise  # noqa: F401 - an optional extra
    except ImportError:
        log(f"channels, by apprise: {MISSING}")
        return False
    targets = [_opened(number, channel, log) for number, channel in enumerate(channels, 1)]
    _listen(log)  # not before: of a URL that it does not understand, Apprise writes the whole
    with ThreadPoolExecutor(len(targets)) as pool:
        return all([*pool.map(lambda target: target is not None and _notify(note, target, log), targets)])


class _Target(NamedTuple):
    name: str
    service: Apprise


def _opened(number: int, channel: str, log: Callable[[str], None]) -> _Target | None:
    from apprise import Apprise

    scheme = re.match(r"([a-z0-9]+)://", channel)
    target = _Target(f"channel {number}{f' ({scheme[1]})' if scheme else ''}", Apprise())
    try:
        if target.service.add(filled(channel, os.environ)):
            return target
        log(f"{target.name}: no URL that Apprise understands")
    except Unsent as error:
        log(f"{target.name}: {error}")
    return None


def _notify(note: Note, target: _Target, log: Callable[[str], None]) -> bool:
    from apprise import NotifyFormat, NotifyType

    kind = NotifyType(_KINDS[note.status])
    try:
        if target.service.notify(note.body, note.title, notify_type=kind, body_format=NotifyFormat.TEXT):
            return True
        log(f"{target.name}: not sent")
    except Exception as error:  # noqa: BLE001 - whatever a service's code raises, it is logged
        log(f"{target.name}: {reason(error)}")
    return False


_KINDS: dict[Status, str] = {
    "success": "success",
    "failure": "failure",
    "blocked": "warning",
    "running": "info",
    "warning": "warning",
}


def filled(channel: str, environ: Mapping[str, str]) -> str:
    """Put the values of variables where `${NAME}` stands."""
    missing = [name for name in VARIABLE.findall(channel) if not environ.get(name)]
    if missing:
        raise Unsent(f"not set in the environment: {', '.join(dict.fromkeys(missing))}")
    return VARIABLE.sub(lambda found: environ[found[1]], channel)


def _keeping_secrets(
    channels: Sequence[str], environ: Mapping[str, str], log: Callable[[str], None]
) -> Callable[[str], None]:
    names = {name for channel in channels for name in VARIABLE.findall(channel) if environ.get(name)}

    def write(text: str) -> None:
        for name in sorted(names, key=lambda name: -len(environ[name])):
            text = text.replace(environ[name], f"${{{name}}}")
        log(text)

    return write


def _listen(log: Callable[[str], None]) -> None:
    """Apprise says why something was not sent to its logger alone."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            log(f"apprise: {record.getMessage()}")

    logging.getLogger("apprise").addHandler(Listener(logging.WARNING))
