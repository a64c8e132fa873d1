"""Who is running: every session and subagent, told from events. One writer; no I/O, no clock.

**Which session an event belongs to.** A main session is known by its id; its process is an attribute, because one
process may hold several sessions and many payloads come without one. An event that carries an `agent_id` is its
subagent's; the start and the stop of a subagent are also news for the session that made it.

**Unknown sessions** are made by the first event that we hear, whatever it is; one that we only hear the end of is kept
as ended. An unknown subagent likewise, unless all we hear is a stop without a type: that is the client's compaction.

**Who made a subagent** is told by the answer of the tool call alone. Until then it is guessed (see `_family`).

**A subagent ends** by its stop; when the answer of its call says so; when it is not on the list of its maker's Stop;
and with its parent.

**Processes.** The session is the process's that spoke last. A second process which speaks for the same id (twice, or
by starting it) is kept in `others`: the session then ends with the last of them. A process that began later under the
same pid ends the sessions of the earlier one; if one of those speaks again, the pid is shared (by containers, or
machines) and proves nothing from then on.

**/clear and /resume** end one id and start another in the same process: the new one lists the old one in `previous`,
the old one names the new one in `next_id`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

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
from fairlead.sessions._changes import Change, ChangeLog
from fairlead.sessions._limits import LONGEST_ID, LONGEST_PATH, MOST_PREVIOUS, clean
from fairlead.sessions._session import Session
from fairlead.sessions._session_files import discovered, reconcile, reconcile_child
from fairlead.sessions._states import AttentionNeeded
from fairlead.sessions._subagent_linker import SubagentLinker, ended_by
from fairlead.sessions.transitions._apply import apply
from fairlead.sessions.transitions._tools import made_agent, makes_agent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.clients import ClientSessionFile, Usage
    from fairlead.events import Event
    from fairlead.journal import Verdict
    from fairlead.process import Process

PROCESS_GONE = "process gone"
"""The end reason of a session whose process died."""
KEEP_ENDED = 3600.0
"""Seconds for which an ended session is kept."""
MOST_ENDED = 200
MOST_SESSIONS = 5000
FORGET_AFTER = 7 * 24 * 3600.0
"""Seconds without a sign of life after which a session is forgotten that never said goodbye."""

_MOST_OTHERS = 4
_ASKED = "permission_prompt"
_SAME_PROCESS = frozenset({"clear", "resume", "fork"})
_NOBODY = Caller()
_SIGN_OF_LIFE = 60.0
"""A parent's last activity follows that of its subagents by so many seconds at most: not each is a change of it."""


class Registry(SubagentLinker):
    """All sessions. Every method that changes something gives the changes, numbered."""

    def __init__(self, revision: int = 0) -> None:
        """Begin empty. A daemon gives a number that rises from one life to the next, such as the clock."""
        super().__init__()
        self.log = ChangeLog(revision)
        self.starts: dict[int, int] = {}
        """Pid → the latest start that was seen of it."""
        self.shared: set[int] = set()
        """Pids that more than one process has at a time: they prove nothing."""

    # -- what is told ----------------------------------------------------------------------------------

    def take(
        self,
        event: Event,
        at: float,
        caller: Caller = _NOBODY,
        *,
        client: str = DEFAULT_CLIENT,
        verdict: Verdict = "none",
    ) -> list[Change]:
        """Take an event in: what happened, when, in which process, and what was answered."""
        root = self._root(event, at, caller, client)
        if isinstance(event, SessionEnd) and (kept := _without(root, (caller.pid, caller.start))):
            self.put(apply(kept, event, at, "blocked"))
        elif not event.agent_id:
            self._of_root(root, event, at, verdict)
        elif isinstance(event, SubagentStart):
            self.started(root, event, at, verdict)
        elif isinstance(event, SubagentStop):
            self.stopped(root, event, at, verdict)
        else:
            self._of_child(root, event, at, verdict)
        return self._published()

    def look(self, witnesses: Iterable[ClientSessionFile], now: float) -> list[Change]:
        """Hold the sessions against the client's own files, and take in those that nobody told us of.

        Also lets go of what only time can tell, so it is to be called every second or so, with what files there are.
        """
        told = {witness.session_id: witness for witness in witnesses}
        for name, witness in told.items():
            if name not in self.by_id and (found := discovered(witness)):
                self.put(found)
                if witness.in_terminal:  # a terminal has one session at a time; other programs have many
                    self._succeed(found, "resume", now)
        for root in self.roots():
            if root.ended is None:
                self._reconcile(root, told.get(root.id), now)
        return self._published()

    def bury(self, dead: Iterable[Process], now: float) -> list[Change]:
        """End the sessions of processes that are gone. A session that another process speaks for goes on there."""
        for process in dead:
            for root in self.roots():
                if root.ended is None and process in root.others:
                    self.put(replace(root, others=tuple(other for other in root.others if other != process)))
            for name in list(self.by_process.get(process, ())):
                self._gone(self.by_id[name], now, "the process is gone")
        return self._published()

    def measure(self, session_id: str, usage: Usage, unknown: Session | None = None) -> list[Change]:
        """Take in figures of the status line. They come after Stop too: the state is never told from them.

        `unknown` is the session as the status line tells of it, if nobody else has.
        """
        session = self.by_id.get(session_id)
        if session is None and unknown is not None:
            self._make_room()
            session = self.put(unknown)
        if session is not None:
            known = session.usage.merged(usage) if session.usage else usage
            if known != session.usage:
                self.put(replace(session, usage=known, model=known.model or session.model))
        return self._published()

    def sweep(self, now: float) -> list[Change]:
        """Forget what ended long ago, what is too much, and what was not heard of for a week."""
        roots = self.roots()
        ended = sorted((s for s in roots if s.ended is not None), key=lambda s: s.ended or 0.0)
        too_many = len(ended) - MOST_ENDED
        old = [s for index, s in enumerate(ended) if index < too_many or now - (s.ended or 0.0) > KEEP_ENDED]
        old += [s for s in roots if s.ended is None and now - s.last_activity > FORGET_AFTER]
        for session in old:
            self.drop(session.id)
        return self._published()

    # -- what is asked ---------------------------------------------------------------------------------

    @property
    def revision(self) -> int:
        """The number of the last change."""
        return self.log.revision

    def changes_since(self, revision: int) -> list[Change] | None:
        """Give what changed since; `None` means: read `sessions` anew."""
        return self.log.since(revision)

    def get(self, session_id: str) -> Session | None:
        """Find a session by its id, or by an id that it had before."""
        session = self.by_id.get(session_id)
        while session is not None and session.ended is not None and session.next_id in self.by_id:
            session = self.by_id[session.next_id]
        return session

    def sessions(self, *, ended: bool = False) -> list[Session]:
        """Give the main sessions, with those that ended if asked."""
        return [session for session in self.roots() if ended or session.ended is None]

    def children_of(self, session_id: str) -> list[Session]:
        """Give the subagents that a session made, the oldest first, also those that are done."""
        return [self.by_id[name] for name in self.children.get(session_id, ())]

    def agent(self, agent_id: str) -> Session | None:
        """Find a subagent by the client's id of it."""
        return self.by_id.get(self.by_agent.get(agent_id, ""))

    def in_process(self, pid: int, start: int) -> list[Session]:
        """Give the main sessions of a process."""
        return [self.by_id[name] for name in self.by_process.get((pid, start), ())]

    def processes(self) -> set[Process]:
        """Name the processes of all sessions that have not ended: those to look whether they are still there."""
        live = [session for session in self.roots() if session.ended is None]
        return {pair for s in live for pair in ((s.pid, s.pid_start), *s.others) if pair[0]}

    # -- main sessions ---------------------------------------------------------------------------------

    def _of_root(self, root: Session, event: Event, at: float, verdict: Verdict) -> None:
        if isinstance(event, TeammateIdle) and (mate := self._teammate(root, event)):
            self.put(apply(mate, event, at, verdict))
            return
        if isinstance(event, Notification) and event.notification_type == _ASKED and self._asks_below(root):
            verdict = "blocked"  # it is the subagent's question, told again
        self.advance(root, apply(root, event, at, verdict), event, at)
        self._told_maker(root.id, event, at)

    def _of_child(self, root: Session, event: Event, at: float, verdict: Verdict) -> None:
        if root.ended is not None and at > root.ended and not root.next_id:
            root = self.put(replace(root, ended=None, end_reason=""))
        child = self.child(root, event, at)
        after = self.advance(child, apply(child, event, at, verdict), event, at)
        if after.ended is None:
            self.readopt(after, at)
        self._told_maker(child.id, event, at)
        root = self.by_id[root.id]
        if at - root.last_activity > _SIGN_OF_LIFE:
            self.put(replace(root, last_activity=at))

    def _told_maker(self, maker: str, event: Event, at: float) -> None:
        if isinstance(event, PostToolUse) and makes_agent(event) and (made := made_agent(event)):
            self.link(self.by_id[maker], made, event, at)
        elif isinstance(event, PreToolUse) and makes_agent(event):
            self.claim(self.by_id[maker], clean(event.tool_use_id or "", LONGEST_ID), at)

    def _teammate(self, root: Session, event: TeammateIdle) -> Session | None:
        """Find a teammate by its name, for clients that do not send its id."""
        named = [child for child in self.below(root.id) if child.agent_type == event.teammate_name]
        return named[-1] if named else None

    def _asks_below(self, root: Session) -> bool:
        """Tell whether the question on the screen is a subagent's."""
        if type(root.state) is AttentionNeeded:
            return False
        return any(child.ended is None and type(child.state) is AttentionNeeded for child in self.below(root.id))

    def _root(self, event: Event, at: float, caller: Caller, client: str) -> Session:
        name = clean(event.session_id, LONGEST_ID)
        root = self.by_id.get(name)
        is_new = root is None or (root.evidence is None and not root.memory.heard)  # only a status line told of it
        if root is None:
            self._make_room()
            root = Session(id=name, client=clean(client), started=at, since=at, last_activity=at)
        root = self.put(self._spoken_for(root, event, at, caller))
        if isinstance(event, SessionStart) and event.source in _SAME_PROCESS and (is_new or root.ended is not None):
            root = self._succeed(root, event.source, at)
        return root

    def _succeed(self, root: Session, source: str, at: float) -> Session:
        """Link a session with the one that the same process had before."""
        process = (root.pid, root.pid_start)
        earlier = [self.by_id[name] for name in self.by_process.get(process, ()) if name != root.id] if root.pid else []
        fitting = [s for s in earlier if s.ended is None or s.end_reason in _SAME_PROCESS]
        before = max(fitting, key=lambda s: s.last_activity, default=None)
        if before is None or before.next_id:
            return root
        if before.ended is None:
            before = self.put(ended_by(before, "SessionStart", at, source))
            self.close_below(before, "SessionStart", at)
        self.put(replace(before, next_id=root.id))
        ids = [name for name in (*before.previous, before.id) if name != root.id]
        return self.put(replace(root, previous=tuple(dict.fromkeys(ids))[-MOST_PREVIOUS:]))

    # -- processes -------------------------------------------------------------------------------------

    def _spoken_for(self, root: Session, event: Event, at: float, caller: Caller) -> Session:
        pid, start = caller.pid, caller.start
        same = (root.pid, root.pid_start) == (pid, start)
        if not pid or (same and root.pane == caller.pane and root.tmux == caller.tmux):
            return root
        if root.pid and not same and (isinstance(event, SessionEnd) or at < root.memory.heard):
            return root
        self._reused(pid, start, at, root)
        others, memory = root.others, root.memory
        if not same:
            others = tuple(other for other in others if other != (pid, start))
            if root.pid not in (0, pid) and root.ended is None and memory.spoken > 1:
                others = (*others, (root.pid, root.pid_start))[-_MOST_OTHERS:]
            memory = replace(memory, spoken=0)
        return replace(
            root,
            pid=pid,
            pid_start=start,
            others=others,
            tmux=clean(caller.tmux),
            pane=clean(caller.pane),
            project=clean(caller.project, LONGEST_PATH) or root.project,
            memory=memory,
        )

    def _reused(self, pid: int, start: int, at: float, root: Session) -> None:
        """See that a pid belongs to another process than before."""
        known = self.starts.get(pid, 0)
        if start > known:
            self.starts[pid] = start
            if known and pid not in self.shared:
                for name in list(self.by_process.get((pid, known), ())):
                    if name != root.id:
                        self._gone(self.by_id[name], at, f"another process has its pid {pid}")
        elif 0 < start < known and root.end_reason == PROCESS_GONE and at > (root.ended or 0.0):
            self.shared.add(pid)

    def _gone(self, root: Session, at: float, said: str) -> None:
        if root.ended is not None:
            return
        if root.others:
            pid, start = root.others[-1]
            self.put(replace(root, pid=pid, pid_start=start, others=root.others[:-1]))
            return
        self.put(ended_by(root, said, at, PROCESS_GONE, source="process"))
        self.close_below(root, said, at)

    # -- the second witness ----------------------------------------------------------------------------

    def _reconcile(self, root: Session, witness: ClientSessionFile | None, now: float) -> None:
        asks_below = self._asks_below(root)
        if not (asks_below and witness is not None and witness.status == "waiting"):
            after = reconcile(root, witness, now)
            if after is not root:
                self.advance(root, after, None, now)
        if asks_below and witness is not None:
            for child in list(self.below(root.id)):
                self.put(reconcile_child(child, witness, now))

    # -- bounds ----------------------------------------------------------------------------------------

    def _make_room(self) -> None:
        """Let the oldest go when there are too many, the ended ones first."""
        if len(self.by_id) < MOST_SESSIONS:
            return
        roots = self.roots()
        if len(roots) >= MOST_SESSIONS:
            self.drop(min(roots, key=lambda s: (s.ended is None, s.last_activity)).id)

    def _published(self) -> list[Change]:
        gone = self.log.add(self.take_gone(), gone=True) if self.gone else []
        return gone + self.log.add(self.take_touched())


def _without(root: Session, process: Process) -> Session | None:
    """Give the session as it goes on without a process that ended it; `None` if no other speaks for it."""
    if process in root.others:
        return replace(root, others=tuple(other for other in root.others if other != process))
    if root.others and process == (root.pid, root.pid_start):
        pid, start = root.others[-1]
        return replace(root, pid=pid, pid_start=start, others=root.others[:-1])
    return None
