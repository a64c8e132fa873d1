"""Notifies the user of mail to them, on the desktop and by channels, once for each message.

The id of the last message is saved before its notification is sent. So if the daemon is killed in between, a
notification is lost, but none is sent twice.
"""

from __future__ import annotations

import asyncio
from time import time
from typing import TYPE_CHECKING

from fairlead.errors import FairleadError
from fairlead.files import write_private
from fairlead.mail import USER
from fairlead.notify import has_desktop, mail_note, send
from fairlead.paths import state_folder
from fairlead.policy import Attention, is_quiet, load_user_wide

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon.mail._service import MailService
    from fairlead.mail import Message, MessageService

_TICK = 0.5
_RETRY_DELAY = 5.0
"""Seconds until the next attempt, if the user cannot be notified now."""
_MAX_NEW = 100


class UserMailNotifier:
    """Watches the mail of the user, and notifies them after the grace period and outside the quiet hours."""

    def __init__(self, mail: MailService, errors: ErrorLog) -> None:
        self._mail = mail
        self._errors = errors
        self._checked = -1
        """The value of `MailService.user_mail_count` when the user had last been notified of all mail."""
        self._not_before = 0.0
        """The Unix time of the next check."""
        self.is_pending = False
        """Whether the user will be notified of mail after the grace period or the quiet hours."""
        self._last: int | None = None
        """The id of the newest message of which the user was notified; `None` if it was not read from its file yet."""

    async def run_forever(self) -> None:
        """Check for new mail twice a second, until the task is cancelled. Fast while there is none."""
        while True:
            await asyncio.sleep(_TICK)
            service = self._mail.service_within(0)
            if service is None or self._checked == self._mail.user_mail_count or time() < self._not_before:
                continue
            try:
                await self._mail.run(self._check, service, self._mail.user_mail_count)
            except Exception as error:
                self._errors.report(f"the user cannot be notified of mail: {error}")
                self._not_before = time() + _RETRY_DELAY

    # -- in a thread -----------------------------------------------------------------------------------

    def _check(self, service: MessageService, count: int) -> None:
        if self._last is None:
            self._last = _read_last()
        new = [message for _, message in service.inbox(USER, stages=("queued",), limit=_MAX_NEW)]
        new = [message for message in new if message.id > self._last]
        settings = _settings()
        can_notify = bool(settings.channels) or (settings.desktop and has_desktop())
        self.is_pending = bool(new) and can_notify
        if not new:
            self._checked = count
            return
        due = max(message.at for message in new) + settings.grace
        if time() < due:  # a user with `fairlead watch` open may read it meanwhile
            self._not_before = min(due, time() + settings.grace)
        elif is_quiet(settings, time()) or not can_notify:
            self._not_before = time() + _RETRY_DELAY
        else:
            self._notify(new, settings)
            self._checked, self.is_pending = count, False

    def _notify(self, new: list[Message], settings: Attention) -> None:
        self._last = max(message.id for message in new)
        _write_last(self._last)
        rows = [(message.sender, message.subject or message.body, message.intent == "request") for message in new]
        send(mail_note(rows), settings.channels, desktop=settings.desktop and has_desktop())


def _settings() -> Attention:
    try:
        return load_user_wide().attention
    except FairleadError:
        return Attention()  # the notifier of sessions reports it


def _file() -> str:
    return f"{state_folder()}/user-mail"


def _read_last() -> int:
    try:
        with open(_file(), encoding="ascii") as file:
            return int(file.read(100))
    except (OSError, ValueError):
        return 0


def _write_last(number: int) -> None:
    write_private(_file(), str(number).encode())
