"""Tells the person that a session needs them: on the desktop, and by channels. `sessions` decides of whom, and when.

Whatever may take long is done in threads, and the sending in a process of its own. What is told is written down before
it is sent: a daemon that is killed in between has told it to nobody, but no daemon tells it twice.
"""

from __future__ import annotations

import asyncio
import os
from functools import partial
from time import localtime, monotonic, time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from fairlead.errors import FairleadError
from fairlead.notify import NO_DESKTOP, AttentionRequest, attention_note, has_desktop, send
from fairlead.paths import state_folder
from fairlead.policy import Attention, is_within_hours, load_user_wide
from fairlead.sessions import Asked, AttentionLog, AttentionSettings, Terminals, decide

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fairlead.daemon.sessions._tracker import SessionTracker
    from fairlead.sessions import Session

DOCTOR_SESSION = "fairlead-doctor"
"""The session that `fairlead doctor` plays: nobody waits in it."""
MOST_NOTES = 3
"""So many sessions that come due together are told one by one; more of them in one note."""

_TICK = 0.25
_BETWEEN = 2.0
"""Seconds from one telling to the next: what comes meanwhile is told together."""
_DEAF = 3600.0
"""Seconds for which a desktop that has shown nothing is not tried again."""


class _Item(NamedTuple):
    session: Session
    root: Session
    """The main session, which has the pane and the project."""
    asked: Asked


class AttentionNotifier:
    """Watches who needs the person, and tells them."""

    def __init__(self, tracker: SessionTracker, trouble: Callable[[str], None]) -> None:
        self._tracker = tracker
        self._trouble = trouble
        self._book = AttentionLog()
        self._kept: dict[str, Asked] = {}
        """What is written down of it."""
        self._revision = -1
        self._next = 0.0
        self._deaf_until = 0.0
        self._can_tell = True
        self._told = 0
        self._said: set[str] = set()
        """What went wrong, and was said once."""

    def open(self) -> None:
        """Take up what an earlier daemon has told."""
        try:
            with open(_file(), "rb") as file:
                self._kept = msgspec.json.decode(file.read(), type=dict[str, Asked])
        except FileNotFoundError:
            pass
        except (OSError, ValueError) as error:
            self._say(f"what the person was told before cannot be read: {error}")
        self._book = AttentionLog(self._kept)

    async def watch(self) -> None:
        """Look now and then, but not before the processes of the sessions were looked for."""
        while True:
            await asyncio.sleep(_TICK)
            try:
                if self._tracker.is_checked:
                    await self._look()
            except Exception as error:  # noqa: BLE001 - to go on watching is worth more than any one note
                self._say(f"the person cannot be told who needs them: {error!r}")

    @property
    def is_pending(self) -> bool:
        """Whether the person is yet to be told of somebody, and can be."""
        return self._can_tell and self._book.untold > 0

    def status(self) -> dict[str, Any]:
        """Tell how many need the person, of how many the person was told or is told later, and if that is possible."""
        counts = {"waiting": self._book.waiting, "held": self._book.held(time()), "told": self._told}
        return {**counts, "can_tell": self._can_tell}

    # -- in the loop -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        self._observe()
        due = [] if monotonic() < self._next else self._book.due(time())
        if not due:
            return await self._write_down()
        items = [_Item(one, self._tracker.root_of(one), asked) for one, asked in due]
        in_thread = asyncio.get_running_loop().run_in_executor
        ways = await in_thread(None, self._ways)
        decided = await in_thread(None, _decide, items, ways, self._can_tell)
        self._observe()
        news = [i for i, after in zip(items, decided, strict=True) if self._book.take(i.session, i.asked, after)]
        await self._write_down()
        if news:
            self._next = monotonic() + _BETWEEN
            self._told += len(news)
            await in_thread(None, self._tell, news, ways)
        return None

    async def _write_down(self) -> None:
        told = self._book.told()
        if told != self._kept:
            self._kept = told
            await asyncio.get_running_loop().run_in_executor(None, self._keep, told)

    def _observe(self) -> None:
        changes, now = self._tracker.changes_since(self._revision), time()
        self._revision = self._tracker.revision
        if changes is None:
            self._book.see_all(filter(_is_real, self._tracker.live()), now)
            return
        for change in changes:
            if change.gone:
                self._book.forget(change.session.id)
            elif _is_real(change.session):
                self._book.see((change.session,), now)

    # -- in a thread -----------------------------------------------------------------------------------

    def _ways(self) -> Attention:
        """Read how the person wants to be told; what cannot be done here is left out."""
        try:
            ways = load_user_wide().attention
        except FairleadError as error:
            self._say(f"the user-wide policy cannot be read, so the person is told as by default: {error}")
            ways = Attention()
        is_heard = monotonic() >= self._deaf_until and has_desktop()
        ways = replace(ways, desktop=ways.desktop and is_heard)
        self._can_tell = ways.desktop or bool(ways.channels)
        return ways

    def _keep(self, told: Mapping[str, Asked]) -> None:
        beside = f"{_file()}.{os.getpid()}"
        try:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "wb") as file:
                file.write(msgspec.json.encode(told))
            os.replace(beside, _file())
        except OSError as error:
            self._say(f"what the person is told cannot be kept: {error}")

    def _tell(self, news: Sequence[_Item], ways: Attention) -> None:
        names = [_waiting(item) for item in news]
        notes = [names] if len(names) > MOST_NOTES else [[one] for one in names]
        for note in map(attention_note, notes):
            send(note, ways.channels, desktop=ways.desktop, then=self._sent)

    def _sent(self, failed: int) -> None:
        """Hear how it went, in a thread of the sender's."""
        if failed & NO_DESKTOP:
            self._deaf_until = monotonic() + _DEAF
        if failed:
            self._say("the person could not be told who needs them; see notify.log in the state folder")

    def _say(self, what: str) -> None:
        """Write down what went wrong, once in the life of this daemon."""
        if what not in self._said:
            self._said.add(what)
            self._trouble(what)


def _is_real(session: Session) -> bool:
    return session.id.partition("/")[0] != DOCTOR_SESSION


def _decide(due: Sequence[_Item], ways: Attention, can_tell: bool) -> list[Asked]:  # noqa: FBT001 - for a thread
    now = time()
    here, terminals = localtime(now), Terminals(now)
    spans = [ways.quiet_hours] if isinstance(ways.quiet_hours, str) else ways.quiet_hours
    is_quiet = is_within_hours(spans, here.tm_hour * 60 + here.tm_min)
    manners = AttentionSettings(ways.grace, can_tell and not is_quiet, ways.when_in_front)
    return [decide(item.asked, now, manners, partial(terminals.show, item.root.tmux, item.root.pane)) for item in due]


def _waiting(item: _Item) -> AttentionRequest:
    session, root, evidence = item.session, item.root, item.session.evidence
    folder = (root.project or root.cwd).rstrip("/").rpartition("/")[2]
    path = evidence.path.rpartition("/")[2] if evidence else ""
    agent = (session.agent_type or "subagent") if session.is_child else ""
    return AttentionRequest(folder or root.title or root.id[:8], item.asked.reason, agent, path)


def _file() -> str:
    return f"{state_folder()}/attention.json"
