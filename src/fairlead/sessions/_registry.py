"""The registry of all sessions and subagents, computed from events. Not thread-safe; it does no I/O and reads no clock.

**Which session an event belongs to.** A main session is identified by its id. Its process is only an attribute, because
one process may have several sessions, and is not known for many events. An event with an `agent_id` belongs to that
subagent. The start and the stop of a subagent also concern its parent.

**Unknown sessions** are created by their first event, whatever it is. A session of which only the end is seen is kept
as ended. Unknown subagents are created in the same way, except by a stop without a type, which comes from the client's
compaction and not from a subagent.

**The parent of a subagent** is known only from the result of the tool call that started it. Until then it is guessed
(see `_subagent_linker`).

**A subagent ends** by its stop, or when the result of its call reports the end, or when its parent's Stop does not list
it as a background task, or with its parent.

**Processes.** A session belongs to the process that sent its latest event. If another process had sent more than one
event of the session before, it is kept in `others`, and the session ends only with the last of its processes. If a pid
is found with a later start time, the earlier process has ended, and so have its sessions. If such a session sends
another event, the pid is used by several processes at a time (in containers, or on several machines), and is no
evidence from then on.

**/clear and /resume** end one session and start another in the same process. The new session has the old id in
`previous`, and the old one has the new id in `next_id`.
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
"""The `end_reason` of a session whose process has ended."""
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
"""Seconds by which `last_activity` of a main session may be behind its subagents', whose events rarely update it."""


class Registry(SubagentLinker):
    """All sessions. The methods from `apply_event` to `prune` change sessions, and return the numbered changes."""

    def __init__(self, revision: int = 0) -> None:
        """Create an empty registry, whose first change has the number `revision + 1`.

        `revision` should be higher than that of any earlier registry, so that readers notice a restart.
        """
        super().__init__()
        self.log = ChangeLog(revision)
        self.start_times: dict[int, int] = {}
        """By pid: the latest start time that an event has reported for it."""
        self.shared_pids: set[int] = set()
        """Pids that several processes have at the same time. They are no evidence that a session has ended."""

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
        """Apply an event to its session, which is created if it is unknown, and to its subagents.

        `at` is the Unix time of the event, `caller` the client's process, `verdict` what Fairlead answered.
        """
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
        """Compare the sessions with the client's own files, and add sessions that only a file reports.

        Some states also end after some time, so call this about every second, even without files.
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
        """End the sessions of processes that have ended. A session that has another process continues with that one."""
        for process in dead:
            for root in self.roots():
                if root.ended is None and process in root.others:
                    self.put(replace(root, others=tuple(other for other in root.others if other != process)))
            for name in list(self.by_process.get(process, ())):
                self._end_process(self.by_id[name], now, "the process is gone")
        return self._publish()

    def update_usage(self, session_id: str, usage: Usage, unknown: Session | None = None) -> list[SessionChange]:
        """Update the usage of a session, but not its state: the figures also arrive after Stop.

        `unknown` is the session to add if there is none of this id; `None` to add none.
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
        """Clear an agent's question that the user has answered outside of the client, which no event reports.

        `tool` and `question` identify it. Do nothing if that question is not open.
        """
        session = self.by_id.get(session_id)
        if session is not None:
            after = with_answer(session, tool, question, at)
            if after is not session:
                self.update(session, after, None, at)
        return self._publish()

    def prune(self, now: float) -> list[SessionChange]:
        """Drop sessions that ended over an hour ago, the oldest ended ones above 200, and those inactive for a week."""
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
        """Return the latest change of each session after a revision; `None` if all sessions have to be read again."""
        return self.log.since(revision)

    def get(self, session_id: str) -> Session | None:
        """Return a session by its id, or by an id that it had before /clear or /resume; `None` if it is unknown."""
        session = self.by_id.get(session_id)
        while session is not None and session.ended is not None and session.next_id in self.by_id:
            session = self.by_id[session.next_id]
        return session

    def get_public(self, session_id: str, *, is_whole: bool = False) -> Session | None:
        """Return the same session as `get`, as `public_session` returns it; `None` if it is unknown."""
        session = self.get(session_id)
        return session and public_session(session, is_whole=is_whole)

    def sessions(self, *, ended: bool = False) -> list[Session]:
        """Return the main sessions that have not ended; with `ended`, all main sessions."""
        return [session for session in self.roots() if ended or session.ended is None]

    def children_of(self, session_id: str) -> list[Session]:
        """Return the direct subagents of a session, the oldest first, including those that have ended."""
        return [self.by_id[name] for name in self.children.get(session_id, ())]

    def agent(self, agent_id: str) -> Session | None:
        """Return a subagent by its agent id; `None` if it is unknown.

        If several have that id, the newest one is returned.
        """
        return self.by_id.get(self.by_agent.get(agent_id, ""))

    def in_process(self, pid: int, start: int) -> list[Session]:
        """Return the main sessions of a process, including ended ones, by its pid and start time."""
        return [self.by_id[name] for name in self.by_process.get((pid, start), ())]

    def processes(self) -> set[Process]:
        """Return all known processes of the sessions that have not ended, as pairs of pid and start time."""
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
        """Return the teammate that an event names; `None` if it is unknown. Some clients do not send its id."""
        named = [child for child in self.descendants(root.id) if child.agent_type == event.teammate_name]
        return named[-1] if named else None

    def _subagent_asks(self, root: Session) -> bool:
        """Return whether a subagent waits for the user, and the main session itself does not."""
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
        """Link a session with the previous one of the same process, which ends for the reason `source`.

        Return the session. It is unchanged if there is no previous one, or if that is linked with another session.
        """
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
        """Record the start time of a pid. If another process had the pid before, end its sessions, but not `root`.

        If the pid turns out to be used by several processes at a time, record that instead.
        """
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
        """If the limit is reached, drop the main session that was inactive for the longest time, ended ones first."""
        if len(self.by_id) < MAX_SESSIONS:
            return
        roots = self.roots()
        if len(roots) >= MAX_SESSIONS:
            self.drop(min(roots, key=lambda s: (s.ended is None, s.last_activity)).id)

    def _publish(self) -> list[SessionChange]:
        dropped = self.log.add(self.pop_dropped(), gone=True) if self.dropped else []
        return dropped + self.log.add(self.pop_changed())


def _without_process(root: Session, process: Process) -> Session | None:
    """Return the session without a process that has ended.

    Return `None` if the session has no other process, or if it is not a session of that process.
    """
    if process in root.others:
        return replace(root, others=tuple(other for other in root.others if other != process))
    if root.others and process == (root.pid, root.pid_start):
        pid, start = root.others[-1]
        return replace(root, pid=pid, pid_start=start, others=root.others[:-1])
    return None
