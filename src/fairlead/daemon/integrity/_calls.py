"""The running tool calls of all sessions, to find out which of them may have changed a file."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING

from fairlead.process import LivenessCache
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import Client
    from fairlead.daemon.integrity._project import CheckedProject
    from fairlead.events import Event, ToolEvent
    from fairlead.journal import Caller

_MAX_CALLS = 1000
_MAX_CONCURRENT = 5
_MAX_SHOWN = 200
"""Characters of a command in a report."""


class CallDescription:
    """A call in a few words, which are computed when they are first used."""

    __slots__ = ("_client", "_event", "_text")

    def __init__(self, event: ToolEvent, client: Client) -> None:
        self._event, self._client = event, client
        self._text = ""

    def __str__(self) -> str:
        if not self._text:
            self._text = describe_call(self._event, self._client)
        return self._text


class RunningCall:
    """A tool call that may write, from its `PreToolUse` on."""

    def __init__(self, event: ToolEvent, event_id: str, cwd: str, caller: Caller, client: Client) -> None:
        self.key = call_key(event)
        self.session = event.session_id
        self.agent_id = event.agent_id or ""
        self.event_id = event_id
        self.cwd = cwd
        self.process = caller.pid, caller.start
        self.project: CheckedProject | None = None
        """The project whose files are checked when it ends; `None` for a tool whose files are known."""
        self.folders = _at_or_above(cwd)
        """The folders that it concerns: it runs in or below them, or under a policy for them."""
        self.description = CallDescription(event, client)
        self.concurrent: list[CallDescription] = []
        """Other calls that ran at some time since it began."""
        self.is_checked = False
        """Whether the files were checked right before it began."""
        self.is_approved = False
        """Whether the user was asked about it."""
        self.task = ""
        """The id of the background task in which it continues; "" if there is none."""
        self.has_ended = False

    @property
    def summary(self) -> str:
        """The call in a few words."""
        return str(self.description)

    def concerns(self, folders: Iterable[str]) -> bool:
        """Return whether the call runs in or below one of these folders, or under a policy for one of them."""
        return not self.folders.isdisjoint(folders)


class RunningCalls:
    """All running calls, and calls that may have left a running process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: dict[str, RunningCall] = {}
        self._by_folder: dict[str, dict[str, RunningCall]] = {}
        self._stale: dict[str, RunningCall] = {}
        """Calls that are older than the latest prompt: they may have been interrupted, which no event reports."""
        self._liveness = LivenessCache()
        self._unfinished: list[RunningCall] = []
        """Background commands, and calls whose end was not seen."""

    def begin(self, call: RunningCall, project: CheckedProject | None = None) -> list[RunningCall]:
        """Add a call, and return the other running calls that concern its folders.

        Each of them and the new call are noted in each other's `concurrent`. `project` is the project whose files are
        checked when the call ends.
        """
        folders: Iterable[str] = (call.cwd.rstrip("/") or "/",)
        if project is not None:
            call.project, folders = project, project.folders
            call.folders = call.folders.union(folders)
        with self._lock:
            if self._stale:
                self._drop_stale(call)
            others = self._running_for(folders, call.session)
            unfinished = [
                unfinished_call
                for unfinished_call in self._unfinished
                if unfinished_call.concerns(folders) and not unfinished_call.has_ended
            ]
            if others or unfinished:
                call.concurrent += [other.description for other in (*others, *unfinished)[:_MAX_CONCURRENT]]
            for other in others:
                other.concurrent[_MAX_CONCURRENT - 1 :] = [call.description]
            if len(self._running) >= _MAX_CALLS:
                self._remove(next(iter(self._running)))
            self._remove(call.key)
            self._running[call.key] = call
            for folder in call.folders:
                self._by_folder.setdefault(folder, {})[call.key] = call
            return others

    def end(self, event: ToolEvent, task: str = "") -> RunningCall | None:
        """Remove a call that has ended, and return it; `None` if it is unknown.

        `task` is the id of the background task that it became, if any. Such a call may still change files.
        """
        with self._lock:
            call = self._remove(call_key(event))
            if call is not None and task:
                call.task = task
                self._add_unfinished(call)
            return call

    @property
    def has_unfinished(self) -> bool:
        """Whether there are background commands, or calls whose end was not seen."""
        return bool(self._unfinished)

    def take_unfinished(self, folders: Iterable[str]) -> list[RunningCall]:
        """Return the unfinished calls that may have changed files in these folders since the last check.

        Calls among them that have ended are forgotten.
        """
        if not self._unfinished:
            return []
        with self._lock:
            concerned = [call for call in self._unfinished if call.concerns(folders)]
            self._unfinished = [call for call in self._unfinished if call not in concerned or not call.has_ended]
            return concerned

    def end_blocked_call(self, event_id: str) -> None:
        """Forget a call that was denied, by the id of its `PreToolUse`."""
        with self._lock:
            for key in [key for key, call in self._running.items() if call.event_id == event_id]:
                self._remove(key)

    def note_approval(self, event_id: str) -> None:
        """Note that the user is asked about a call: if it runs, they have agreed."""
        with self._lock:
            for call in self._running.values():
                call.is_approved = call.is_approved or call.event_id == event_id

    def note_prompt(self, session: str) -> None:
        """Note a prompt: calls of the session's main agent that still seem to run may have been interrupted."""
        with self._lock:
            self._stale.update(
                (key, call) for key, call in self._running.items() if call.session == session and not call.agent_id
            )

    def end_calls_of_agent(self, event: Event) -> None:
        """Note that no call of the event's agent runs any more. Calls whose end was not seen may have changed files."""
        with self._lock:
            agent = event.session_id, event.agent_id or ""
            self._mark_unfinished([call for call in self._running.values() if (call.session, call.agent_id) == agent])

    def end_calls_of_session(self, session: str) -> None:
        """Note that nothing of a session runs any more."""
        with self._lock:
            self._mark_unfinished([call for call in self._running.values() if call.session == session])
            for call in self._unfinished:
                call.has_ended = call.has_ended or call.session == session

    def end_tasks(self, session: str, running: frozenset[str] | None, ended: str = "") -> None:
        """Note which background tasks of a session have ended: all that are not in `running`.

        If `running` is `None`, only the task `ended` has ended.
        """
        with self._lock:
            for call in self._unfinished:
                is_over = call.task == ended if running is None else call.task not in running
                call.has_ended = call.has_ended or (call.session == session and is_over)

    def _drop_stale(self, new: RunningCall) -> None:
        """End the calls that an agent began before the latest prompt: its new call shows that they are over."""
        agent = new.session, new.agent_id
        self._mark_unfinished([call for call in self._stale.values() if (call.session, call.agent_id) == agent])

    def _running_for(self, folders: Iterable[str], session: str) -> list[RunningCall]:
        """Return the running calls that concern one of the folders. End calls of clients that have exited."""
        concerned: dict[str, RunningCall] = {}
        for folder in folders:
            concerned.update(self._by_folder.get(folder, ()))
        is_alive = self._liveness.is_alive
        gone = [call for call in concerned.values() if call.session != session and not is_alive(call.process)]
        if gone:
            self._mark_unfinished(gone)
        return [call for call in concerned.values() if call not in gone]

    def _remove(self, key: str) -> RunningCall | None:
        call = self._running.pop(key, None)
        if call is not None:
            self._stale.pop(key, None)
            for folder in call.folders:
                below = self._by_folder[folder]
                del below[key]
                if not below:
                    del self._by_folder[folder]
        return call

    def _mark_unfinished(self, calls: list[RunningCall]) -> None:
        for call in calls:
            self._remove(call.key)
            call.has_ended = True
            if call.project is not None:
                self._add_unfinished(call)

    def _add_unfinished(self, call: RunningCall) -> None:
        self._unfinished = [*self._unfinished[-_MAX_CALLS:], call]


@lru_cache(1024)
def _at_or_above(folder: str) -> frozenset[str]:
    """Return a folder and all folders above it."""
    names = folder.rstrip("/").split("/")
    return frozenset(("/".join(names[:count]) or "/") for count in range(1, len(names) + 1))


def call_key(event: ToolEvent) -> str:
    """Return a key that identifies a call in its events. Some clients give it no id."""
    prefix = f"{event.session_id}/{event.agent_id or ''}/"
    return prefix + (event.tool_use_id or f"{event.tool_name} {event.tool_input!r}")


def describe_call(event: ToolEvent, client: Client) -> str:
    """Return a call in a few words, in backticks: its shell command, or else its tool and what that is used on."""
    subject = client.summary_of(event.tool_input)
    text = subject if subject and client.kind_of(event.tool_name) == "shell" else f"{event.tool_name} {subject}"
    return f"`{one_line(text.strip(), _MAX_SHOWN)}`"
