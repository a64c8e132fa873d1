"""The registry of all sessions and subagents, computed from events. One writer; no I/O, no clock.

**Which session an event belongs to.** A main session is identified by its id; its process is an attribute, because one
process may have several sessions and many payloads name none. An event with an `agent_id` belongs to that subagent; the
start and the stop of a subagent also concern its parent.

**Unknown sessions** are created by their first event, whatever it is; a session of which only the end is seen is kept
as ended. Unknown subagents are created in the same way, except by a stop without a type: the client's compaction fires
that.

**The parent of a subagent** is known only from the answer of the tool call that started it. Until then it is guessed
(see `_subagent_linker`).

**A subagent ends** by its stop; when the answer of its call says so; when the list at its parent's Stop lacks it; and
with its parent.

**Processes.** A session belongs to the process that sent its latest event. A second process that sends events for the
same id (twice, or a start) is kept in `others`: the session then ends with the last of them. A process that started
later with the same pid ends the sessions of the earlier one; if one of those sends another event, the pid is shared (by
containers, or machines) and is no evidence from then on.

**/clear and /resume** end one id and start another in the same process: the new session lists the old id in `previous`,
the old one has the new id in `next_id`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import STARTING
from fairlead.durations import DAY, HOUR
from fairlead.events import (
    DEFAULT_CLIENT,
    Notification,
    PostToolUse,
    PreToolUse,
    SessionEnd,
    SessionStart,
    SubagentStart,
    SubagentStop,
    TeammateIdle,
)
from fairlead.journal import Caller
from fairlead.sessions._changes import ChangeLog, SessionChange
from fairlead.sessions._limits import MAX_ID_LENGTH, MAX_PATH_LENGTH, MAX_PREVIOUS_IDS, clean_text, public_session
from fairlead.sessions._reconcile import discovered_session, reconcile, reconcile_child
from fairlead.sessions._session import AttentionNeeded, Session
from fairlead.sessions._subagent_linker import SubagentLinker, end_session
from fairlead.sessions.transitions._activity import with_answer
from fairlead.sessions.transitions._apply import apply
from fairlead.sessions.transitions._tools import started_subagent, starts_subagent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import ClientSessionFile, Usage
    from fairlead.events import Event
    from fairlead.journal import Verdict
    from fairlead.process import Process

PROCESS_GONE = "process gone"
"""The end reason of a session whose process has ended."""
KEEP_ENDED = HOUR
"""Seconds for which an ended session is kept."""
MAX_ENDED = 200
MAX_SESSIONS = 5000
FORGET_AFTER = 7 * DAY
"""Seconds without activity after which a session that never ended is dropped."""

_MAX_OTHERS = 4
_PERMISSION_PROMPT = "permission_prompt"
_SAME_PROCESS = frozenset({"clear", "resume", "fork"})
_UNKNOWN_CALLER = Caller()
_ACTIVITY_INTERVAL = 60.0
"""Seconds by which a parent's last activity may lag behind its subagents': not each of their events updates it."""


class Registry(SubagentLinker):
    """All sessions. Every public method that changes sessions returns the numbered changes."""

    def __init__(self, revision: int = 0) -> None:
        """Create an empty registry. `revision` should increase from one start to the next, as a clock does."""
        super().__init__()
        self.log = ChangeLog(revision)
        self.start_times: dict[int, int] = {}
        """Pid → the latest start time that was seen."""
        self.shared_pids: set[int] = set()
        """Pids that several processes have at the same time: they are no evidence."""

    # -- changes ---------------------------------------------------------------------------------------

    def apply_event(
        self,
        event: Event,
        at: float,
        caller: Caller = _UNKNOWN_CALLER,
        *,
        client: str = DEFAULT_CLIENT,
        verdict: Verdict = "none",
    ) -> list[SessionChange]:
        """Apply an event that happened at `at` in the process of `caller`; `verdict` is our own answer to it."""
        root = self._root(event, at, caller, client)
        if isinstance(event, SessionEnd) and (remaining := _without_process(root, (caller.pid, caller.start))):
            self.put(apply(remaining, event, at, "blocked"))
        elif not event.agent_id:
            self._apply_to_root(root, event, at, verdict)
        elif isinstance(event, SubagentStart):
            self.start_subagent(root, event, at, verdict)
        elif isinstance(event, SubagentStop):
            self.stop_subagent(root, event, at, verdict)
        else:
            self._apply_to_child(root, event, at, verdict)
        return self._publish()

    def reconcile(self, files: Iterable[ClientSessionFile], now: float) -> list[SessionChange]:
        """Compare the sessions with the client's own files, and add sessions that only a file knows.

        Some states also end by the passage of time, so call it every second or so, even without files.
        """
        by_id = {file.session_id: file for file in files}
        for name in [name for name in self.by_id if name.startswith(STARTING) and name not in by_id]:
            self.drop(name)  # its dialog is answered: it has a session now, or has ended
        for name, file in by_id.items():
            if name not in self.by_id and (session := discovered_session(file, now)):
                self.put(session)
                if file.in_terminal:  # a terminal has one session at a time; other programs have many
                    self._link_predecessor(session, "resume", now)
        for root in self.roots():
            if root.ended is None:
                self._reconcile(root, by_id.get(root.id), now)
        return self._publish()

    def end_processes(self, dead: Iterable[Process], now: float) -> list[SessionChange]:
        """End the sessions of processes that have ended. A session with another process continues there."""
        for process in dead:
            for root in self.roots():
                if root.ended is None and process in root.others:
                    self.put(replace(root, others=tuple(other for other in root.others if other != process)))
            for name in list(self.by_process.get(process, ())):
                self._end_process(self.by_id[name], now, "the process is gone")
        return self._publish()

    def update_usage(self, session_id: str, usage: Usage, unknown: Session | None = None) -> list[SessionChange]:
        """Update the usage of a session. It never changes the state: the figures also arrive after Stop.

        `unknown` is the session to add if there is none of this id.
        """
        session = self.by_id.get(session_id)
        if session is None and unknown is not None:
            self._make_room()
            session = self.put(unknown)
        if session is not None:
            merged = session.usage.merged(usage) if session.usage else usage
            if merged != session.usage:
                self.put(replace(session, usage=merged, model=merged.model or session.model))
        return self._publish()

    def set_answered(self, session_id: str, tool: str, question: str, at: float) -> list[SessionChange]:
        """Clear a question of an agent that the user has answered outside of the client, which no event reports."""
        session = self.by_id.get(session_id)
        if session is not None:
            after = with_answer(session, tool, question, at)
            if after is not session:
                self.update(session, after, None, at)
        return self._publish()

    def prune(self, now: float) -> list[SessionChange]:
        """Drop sessions that ended long ago, ended ones above the limit, and those without activity for a week."""
        roots = self.roots()
        ended = sorted((s for s in roots if s.ended is not None), key=lambda s: s.ended or 0.0)
        too_many = len(ended) - MAX_ENDED
        old = [s for index, s in enumerate(ended) if index < too_many or now - (s.ended or 0.0) > KEEP_ENDED]
        old += [s for s in roots if s.ended is None and now - s.last_activity > FORGET_AFTER]
        for session in old:
            self.drop(session.id)
        return self._publish()

    # -- queries ---------------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of the latest change."""
        return self.log.revision

    def changes_since(self, revision: int) -> list[SessionChange] | None:
        """Return the changes after a revision; `None` means that all sessions have to be read again."""
        return self.log.since(revision)

    def get(self, session_id: str) -> Session | None:
        """Find a session by its id, or by an id that it had before."""
        session = self.by_id.get(session_id)
        while session is not None and session.ended is not None and session.next_id in self.by_id:
            session = self.by_id[session.next_id]
        return session

    def get_public(self, session_id: str, *, is_whole: bool = False) -> Session | None:
        """Find a session as `get` does, and return it as people and programs see it."""
        session = self.get(session_id)
        return session and public_session(session, is_whole=is_whole)

    def sessions(self, *, ended: bool = False) -> list[Session]:
        """Return the main sessions, on request with those that have ended."""
        return [session for session in self.roots() if ended or session.ended is None]

    def children_of(self, session_id: str) -> list[Session]:
        """Return the subagents of a session, the oldest first, including those that have ended."""
        return [self.by_id[name] for name in self.children.get(session_id, ())]

    def agent(self, agent_id: str) -> Session | None:
        """Find a subagent by its agent id."""
        return self.by_id.get(self.by_agent.get(agent_id, ""))

    def in_process(self, pid: int, start: int) -> list[Session]:
        """Return the main sessions of a process."""
        return [self.by_id[name] for name in self.by_process.get((pid, start), ())]

    def processes(self) -> set[Process]:
        """Return the processes of all sessions that have not ended."""
        live = [session for session in self.roots() if session.ended is None]
        return {pair for s in live for pair in ((s.pid, s.pid_start), *s.others) if pair[0]}

    # -- main sessions ---------------------------------------------------------------------------------

    def _apply_to_root(self, root: Session, event: Event, at: float, verdict: Verdict) -> None:
        if isinstance(event, TeammateIdle) and (teammate := self._teammate(root, event)):
            self.put(apply(teammate, event, at, verdict))
            return
        if (
            isinstance(event, Notification)
            and event.notification_type == _PERMISSION_PROMPT
            and self._subagent_asks(root)
        ):
            verdict = "blocked"  # it repeats the subagent's question
        self.update(root, apply(root, event, at, verdict), event, at)
        self._link_call(root.id, event, at)

    def _apply_to_child(self, root: Session, event: Event, at: float, verdict: Verdict) -> None:
        if root.ended is not None and at > root.ended and not root.next_id:
            root = self.put(replace(root, ended=None, end_reason=""))
        child = self.get_or_create_child(root, event, at)
        after = self.update(child, apply(child, event, at, verdict), event, at)
        if after.ended is None:
            self.mark_working(after, at)
        self._link_call(child.id, event, at)
        root = self.by_id[root.id]
        if at - root.last_activity > _ACTIVITY_INTERVAL:
            self.put(replace(root, last_activity=at))

    def _link_call(self, parent_id: str, event: Event, at: float) -> None:
        if isinstance(event, PostToolUse) and starts_subagent(event) and (agent_id := started_subagent(event)):
            self.link_subagent(self.by_id[parent_id], agent_id, event, at)
        elif isinstance(event, PreToolUse) and starts_subagent(event):
            self.assign_subagent(self.by_id[parent_id], clean_text(event.tool_use_id or "", MAX_ID_LENGTH), at)

    def _teammate(self, root: Session, event: TeammateIdle) -> Session | None:
        """Find a teammate by its name: some clients do not send its id."""
        named = [child for child in self.descendants(root.id) if child.agent_type == event.teammate_name]
        return named[-1] if named else None

    def _subagent_asks(self, root: Session) -> bool:
        """Return whether the question on the screen is a subagent's."""
        if type(root.state) is AttentionNeeded:
            return False
        return any(child.ended is None and type(child.state) is AttentionNeeded for child in self.descendants(root.id))

    def _root(self, event: Event, at: float, caller: Caller, client: str) -> Session:
        name = clean_text(event.session_id, MAX_ID_LENGTH)
        root = self.by_id.get(name)
        is_new = root is None or (root.evidence is None and not root.memory.newest)  # known from a status line only
        if root is None:
            self._make_room()
            root = Session(id=name, client=clean_text(client), started=at, since=at, last_activity=at)
        root = self.put(self._with_caller(root, event, at, caller))
        if isinstance(event, SessionStart) and event.source in _SAME_PROCESS and (is_new or root.ended is not None):
            root = self._link_predecessor(root, event.source, at)
        return root

    def _link_predecessor(self, root: Session, source: str, at: float) -> Session:
        """Link a session with the previous one of the same process."""
        process = (root.pid, root.pid_start)
        earlier = [self.by_id[name] for name in self.by_process.get(process, ()) if name != root.id] if root.pid else []
        candidates = [s for s in earlier if s.ended is None or s.end_reason in _SAME_PROCESS]
        before = max(candidates, key=lambda s: s.last_activity, default=None)
        if before is None or before.next_id:
            return root
        if before.ended is None:
            before = self.put(end_session(before, "SessionStart", at, source))
            self.end_descendants(before, "SessionStart", at)
        self.put(replace(before, next_id=root.id))
        ids = [name for name in (*before.previous, before.id) if name != root.id]
        return self.put(replace(root, previous=tuple(dict.fromkeys(ids))[-MAX_PREVIOUS_IDS:]))

    # -- processes -------------------------------------------------------------------------------------

    def _with_caller(self, root: Session, event: Event, at: float, caller: Caller) -> Session:
        pid, start = caller.pid, caller.start
        same = (root.pid, root.pid_start) == (pid, start)
        if not pid or (same and root.pane == caller.pane and root.tmux == caller.tmux):
            return root
        if root.pid and not same and (isinstance(event, SessionEnd) or at < root.memory.newest):
            return root
        self._note_start_time(pid, start, at, root)
        others, memory = root.others, root.memory
        if not same:
            others = tuple(other for other in others if other != (pid, start))
            if root.pid not in (0, pid) and root.ended is None and memory.process_events > 1:
                others = (*others, (root.pid, root.pid_start))[-_MAX_OTHERS:]
            memory = replace(memory, process_events=0)
        return replace(
            root,
            pid=pid,
            pid_start=start,
            others=others,
            tmux=clean_text(caller.tmux),
            pane=clean_text(caller.pane),
            project=clean_text(caller.project, MAX_PATH_LENGTH) or root.project,
            memory=memory,
        )

    def _note_start_time(self, pid: int, start: int, at: float, root: Session) -> None:
        """Record the start time of a pid; if the pid is reused, end the sessions of its former process."""
        known = self.start_times.get(pid, 0)
        if start > known:
            self.start_times[pid] = start
            if known and pid not in self.shared_pids:
                for name in list(self.by_process.get((pid, known), ())):
                    if name != root.id:
                        self._end_process(self.by_id[name], at, f"another process has its pid {pid}")
        elif 0 < start < known and root.end_reason == PROCESS_GONE and at > (root.ended or 0.0):
            self.shared_pids.add(pid)

    def _end_process(self, root: Session, at: float, evidence: str) -> None:
        if root.ended is not None:
            return
        if root.others:
            pid, start = root.others[-1]
            self.put(replace(root, pid=pid, pid_start=start, others=root.others[:-1]))
            return
        self.put(end_session(root, evidence, at, PROCESS_GONE, source="process"))
        self.end_descendants(root, evidence, at)

    # -- the client's files -----------------------------------------------------------------------------

    def _reconcile(self, root: Session, file: ClientSessionFile | None, now: float) -> None:
        subagent_asks = self._subagent_asks(root)
        if not (subagent_asks and file is not None and file.status == "waiting"):
            after = reconcile(root, file, now)
            if after is not root:
                self.update(root, after, None, now)
        if subagent_asks and file is not None:
            for child in list(self.descendants(root.id)):
                self.put(reconcile_child(child, file, now))

    # -- limits ----------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Drop the oldest session if there are too many, ended ones first."""
        if len(self.by_id) < MAX_SESSIONS:
            return
        roots = self.roots()
        if len(roots) >= MAX_SESSIONS:
            self.drop(min(roots, key=lambda s: (s.ended is None, s.last_activity)).id)

    def _publish(self) -> list[SessionChange]:
        dropped = self.log.add(self.pop_dropped(), gone=True) if self.dropped else []
        return dropped + self.log.add(self.pop_changed())


def _without_process(root: Session, process: Process) -> Session | None:
    """Return the session without a process that has ended; `None` if it has no other process."""
    if process in root.others:
        return replace(root, others=tuple(other for other in root.others if other != process))
    if root.others and process == (root.pid, root.pid_start):
        pid, start = root.others[-1]
        return replace(root, pid=pid, pid_start=start, others=root.others[:-1])
    return None
