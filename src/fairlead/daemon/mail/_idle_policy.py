"""How an agent stays that has nothing left to do: mail first, then its tasks, then it waits, at last a heartbeat.

Three ways (`mail.stay`): `always` waits in the hook that the client waits for, `wake` in one that it does not wait for,
`no` does not wait.
"""

from __future__ import annotations

import asyncio
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from fairlead.clients import client_named
from fairlead.daemon.events._handler import HookReply
from fairlead.daemon.events._mail import shown
from fairlead.decide import find_policy, idle_settings, read_event
from fairlead.events import HookOutput, Stop, encode_json
from fairlead.journal import LONGEST_REASON, CommandsRecord
from fairlead.mail import MailError, incomplete
from fairlead.mail import _render as words
from fairlead.policy import NotCached

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.clients import Task
    from fairlead.daemon.events._request import HookRequest
    from fairlead.daemon.mail._service import MailService
    from fairlead.daemon.mail._waiters import Waiter, WaitToken, Way
    from fairlead.decide import IdleSettings
    from fairlead.events import Event
    from fairlead.journal import Record
    from fairlead.mail import Agent, MessageService

WAKE = 2_000_000
"""Seconds that a wake waits at most, 23 days: what the timers of all clients can count."""

_OPENING = 5.0
_GRACE = 0.5
"""Seconds that a wake leaves to the hook that the client started in the same moment: its word needs no turn more."""
_MOST_REMINDED = 2000
_WAITS = 303
_NO_SUCH = 404
_UNAVAILABLE = 503
_ONLY_AT_END = b"only at the end of a turn is there something to wait for"


class IdlePolicy:
    """Lets agents stay."""

    def __init__(self, mail: MailService, keep: Callable[[Record], object], trouble: Callable[[str], None]) -> None:
        self._mail = mail
        self._keep = keep
        self._trouble = trouble
        self._lock = Lock()
        self._reminded: dict[str, tuple[tuple[Task, ...], int]] = {}
        """By session: the tasks that it was reminded of last, and how often in a row."""

    def how(self, event: Event, ask: HookRequest) -> IdleSettings:
        """Say how an agent stays."""
        return idle_settings(event, find_policy(event.cwd or ask.cwd), ask.env)

    def never(self, agent: Agent, event: Event, ask: HookRequest) -> bool:
        """Tell whether an agent does not stay, as before, without a look at the disk."""
        if self._mail.stay_of(agent) != "no":
            return False
        try:
            policing = find_policy(event.cwd or ask.cwd, cached_only=True)
        except NotCached:
            return False
        return idle_settings(event, policing, ask.env).stay == "no"

    # -- at the end of a turn, in a thread -------------------------------------------------------------

    def mail(self, office: MessageService, event: Stop, ask: HookRequest) -> HookOutput | None:
        """Show what has come, which keeps the agent going."""
        agent = self._mail.agent_of(office, event, ask)
        self._mail.stays(agent, self.how(event, ask).stay)
        messages, left = shown(office, agent, event, ask)
        return HookOutput.block(words.stop_reason(messages, left)) if messages else None

    def begin(self, event: Stop, ask: HookRequest, said: bytes) -> HookReply:
        """Let an agent wait for which no mail has come: if it has tasks of its own, it is reminded of them instead."""
        how = self.how(event, ask)
        client = client_named(ask.client)
        kept = client.read_tasks(client.config_folder(ask.env, ask.cwd), event.session_id)
        tasks = incomplete(self._mail.tasks.of(event.session_id, kept))
        if tasks and self._may_remind(event.session_id, tasks, how.most_blocks):
            return _blocked(event, ask, words.tasks_reason(tasks), said)
        self.mark_idle(event)
        if self._mail.is_hopeless:
            return HookReply(200, stdout=said)
        return self._promised("stop", event, ask, how.wait, said)

    def again(self, payload: bytes, ask: HookRequest, said: bytes, *, wakes: bool = False) -> HookReply:
        """Take up a stop that was decided elsewhere, or whose wait has broken off: what it was shown was never seen."""
        event = read_event(payload, ask.event, ask.client)
        if not isinstance(event, Stop):
            return HookReply(_NO_SUCH, stdout=_ONLY_AT_END)
        office, output = self._mail.office_within(_OPENING), None
        try:
            if office is not None:
                office.unshow(ask.id)
                output = None if wakes else self.mail(office, event, ask)
        except MailError as error:
            self._trouble(f"mail could not be shown at {event.event_name}: {error}")
        if output is not None:
            return _blocked(event, ask, output.reason or "", said)
        return self.wake(payload, ask) if wakes else self.begin(event, ask, said)

    def wake(self, payload: bytes, ask: HookRequest) -> HookReply:
        """Let a hook wait that the client does not wait for, if agents are to be woken there.

        A client without a terminal (`-p`, the SDK) does wait for it, and would never end.
        """
        event = read_event(payload, ask.event, ask.client)
        if not isinstance(event, Stop):
            return HookReply(_NO_SUCH, stdout=_ONLY_AT_END)
        if client_named(ask.client).is_headless(ask.env) or self.how(event, ask).stay != "wake":
            return HookReply(200)
        return self._promised("wake", event, ask, WAKE, b"")

    def mark_idle(self, event: Stop) -> None:
        """Tell whoever asked this agent something that it is idle now, unless subagents of it still work."""
        office = self._mail.office_within(0)
        agent = office.known(event.session_id) if office else None
        if office is None or agent is None or _has_helpers(event):
            return
        try:
            office.went_idle(agent)
        except MailError as error:
            self._trouble(f"who waits for {agent.name} could not be told: {error}")

    def _may_remind(self, session: str, tasks: tuple[Task, ...], most: int) -> bool:
        """Count how often the same tasks were named in a row: one who cannot do them is not asked for ever."""
        with self._lock:
            before, so_far = self._reminded.get(session, ((), 0))
            so_far = so_far if before == tasks else 0
            if most and so_far >= most:
                return False
            if len(self._reminded) >= _MOST_REMINDED:
                self._reminded.clear()
            self._reminded[session] = tasks, so_far + 1
        return True

    def _promised(self, way: Way, event: Stop, ask: HookRequest, seconds: float, said: bytes) -> HookReply:
        promise = self._mail.waits.promise(way, event, ask, seconds, said)
        return HookReply(_WAITS, token=promise.token, milliseconds=int(seconds * 1000))

    # -- waiting, in the loop --------------------------------------------------------------------------

    async def hold(self, token: str, is_gone: Callable[[], bool]) -> HookReply:
        """Keep a promise: answer when mail comes, or time is up. To one who `is_gone` nothing counts as shown."""
        office = await self._mail.opened()
        promise = self._mail.waits.claim(token)
        if promise is None:
            return HookReply(_NO_SUCH, stdout=b"nobody promised that; ask again")
        if promise.is_over or office is None:
            return HookReply(200, stdout=promise.said)
        try:
            agent = await self._mail.run(self._mail.agent_of, office, promise.event, promise.ask)
            with self._mail.waits.held(promise, agent.id) as waiter:
                return await self._wait(office, agent, promise, waiter, is_gone)
        except Exception as error:  # noqa: BLE001 - without an answer it would be asked again, and again
            self._trouble(f"nobody can wait for mail: {error}")
            return HookReply(200, stdout=promise.said)

    async def _wait(
        self, office: MessageService, agent: Agent, promise: WaitToken, waiter: Waiter, is_gone: Callable[[], bool]
    ) -> HookReply:
        end = "mail" if promise.way == "stop" else await waiter.wait(_GRACE)
        while end in {"mail", "time"}:
            if office.waiting(agent):
                reply = await self._deliver(office, agent, promise, is_gone)
                if reply is not None:
                    return reply
            elif promise.left() <= 0:
                return await self._heartbeat(promise)
            end = await waiter.wait(promise.left())
        return (
            HookReply(_UNAVAILABLE, stdout=b"the daemon goes")
            if end == "leaving"
            else HookReply(200, stdout=promise.said)
        )

    async def _deliver(
        self, office: MessageService, agent: Agent, promise: WaitToken, is_gone: Callable[[], bool]
    ) -> HookReply | None:
        """Show what has come; `None` if another event has shown it meanwhile."""
        showing = asyncio.ensure_future(self._mail.run(self._show, office, agent, promise))
        try:
            reply = await asyncio.shield(showing)
        except asyncio.CancelledError:
            showing.add_done_callback(lambda _: self._mail.undo_delivery(promise.ask.id))
            raise
        if reply is not None and is_gone():
            self._mail.undo_delivery(promise.ask.id)
        return reply

    def _show(self, office: MessageService, agent: Agent, promise: WaitToken) -> HookReply | None:
        self._mail.retry_undo(office)
        messages, left = shown(office, agent, promise.event, promise.ask)
        if not messages:
            return None
        reason = words.stop_reason(messages, left)
        self._write_down(promise, reason)
        if promise.way == "wake":
            return HookReply(200, 2, stderr=f"{reason}\n".encode(errors="replace"), shows=promise.ask.id)
        return replace(_blocked(promise.event, promise.ask, reason, promise.said), shows=promise.ask.id)

    async def _heartbeat(self, promise: WaitToken) -> HookReply:
        """Say that nothing came; who only wakes has nothing to say, and waits on."""
        if promise.way == "wake":
            return self._promised("wake", promise.event, promise.ask, WAKE, b"")
        await self._mail.run(self._write_down, promise, words.HEARTBEAT)
        return _blocked(promise.event, promise.ask, words.HEARTBEAT, promise.said)

    def _write_down(self, promise: WaitToken, reason: str) -> None:
        """Add to the event's record how its wait ended. A record that cannot be kept is no reason not to answer."""
        seconds = round(monotonic() - promise.made, 6)
        done = CommandsRecord(
            id=promise.ask.id, at=time(), verdict="blocked", reason=reason[:LONGEST_REASON], seconds=seconds
        )
        try:
            self._keep(done)
        except Exception as error:  # noqa: BLE001 - a full disk; `trouble` is told of it, and no more
            self._trouble(f"how a wait ended is not written down: {error}")


def _blocked(event: Stop, ask: HookRequest, reason: str, said: bytes) -> HookReply:
    """Keep an agent going; what was to be said already is said, too."""
    answer = client_named(ask.client).render(event, HookOutput.block(reason))
    stdout = answer.stdout
    if said:
        document: dict[str, Any] = {**_object(said), **_object(stdout)}
        stdout = encode_json(document) + b"\n"
    return HookReply(200, answer.exit_code, stdout, answer.stderr.encode(errors="replace"), "blocked", reason)


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _has_helpers(event: Stop) -> bool:
    """Tell whether subagents work on in the background: then the turn goes on when they are done."""
    tasks = event.background_tasks or []
    return any(isinstance(task, dict) and task.get("type") == "subagent" for task in tasks)
