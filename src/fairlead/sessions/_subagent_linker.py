"""Subagents as sessions of their own: made, linked to the call that made them, and closed.

No event says which tool call made a subagent, or whether another subagent did, until the call is answered. The first
guess is the oldest open call that asks for this type and has no subagent yet, in the main session or in one of its
subagents. The answer names the subagent: a guess that was wrong is then exchanged for the other's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._index import SessionIndex
from fairlead.sessions._limits import LONGEST_ID, clean
from fairlead.sessions._session import Session
from fairlead.sessions._states import IDLE, Evidence, Working
from fairlead.sessions.transitions._apply import apply
from fairlead.sessions.transitions._subagents import adopt, disown, maker_call
from fairlead.sessions.transitions._tools import asked_agent, is_finished

if TYPE_CHECKING:
    from fairlead.events import Event, PostToolUse, SubagentStart, SubagentStop
    from fairlead.journal import Verdict
    from fairlead.sessions._states import Source

MOST_CHILDREN = 100
"""Subagents of one session that are kept; those that are done go first."""


def ended_by(session: Session, said: str, at: float, reason: str, *, source: Source = "hook") -> Session:
    """End a session for another cause than its own word."""
    evidence = Evidence(said, at, source=source)
    return replace(
        session,
        state=IDLE,
        evidence=evidence,
        since=at,
        in_turn=False,
        calls={},
        agents={},
        tasks={},
        ended=max(at, session.started),
        end_reason=reason,
    )


class SubagentLinker(SessionIndex):
    """Sessions and their subagents."""

    # -- the start and the stop ------------------------------------------------------------------------

    def started(self, root: Session, event: SubagentStart, at: float, verdict: Verdict) -> None:
        """Make the subagent's session, and tell the one that made it."""
        agent_id = clean(event.agent_id, LONGEST_ID)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        maker = self._maker(root, agent_id, clean(event.agent_type)) if child is None else self._parent(child, root)
        self.advance(maker, apply(maker, event, at, verdict), event, at)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is not None:
            self.put(self._introduced(apply(child, event, at, verdict), self.by_id[maker.id]))

    def stopped(self, root: Session, event: SubagentStop, at: float, verdict: Verdict) -> None:
        """Mark the subagent as done, and tell the one that made it."""
        agent_id = clean(event.agent_id, LONGEST_ID)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is None and event.agent_type:
            child = self._born(root, agent_id, clean(event.agent_type), at)
        maker = self._parent(child, root) if child is not None else root
        if child is not None:
            self.advance(child, apply(child, event, at, verdict), event, at)
        self.advance(maker, apply(maker, event, at, verdict), event, at)

    def child(self, root: Session, event: Event, at: float) -> Session:
        """Give the subagent that an event comes from; make it, if its start was not heard."""
        agent_id = clean(event.agent_id or "", LONGEST_ID)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is not None:
            return child
        kind = clean(event.agent_type or "")
        maker = self._maker(root, agent_id, kind)
        child = self._born(maker, agent_id, kind, at)
        if maker.ended is not None:
            return self.put(ended_by(child, "SessionEnd", max(at, maker.ended), "parent ended"))
        self.put(adopt(maker, agent_id, kind, at))
        return child

    def readopt(self, child: Session, at: float) -> None:
        """Let the maker know that a subagent works (again) which it took for done. A teammate that idles does not."""
        parent = self.by_id.get(child.parent)
        if parent is None or child.agent_id in parent.agents or not child.in_turn or parent.ended is not None:
            return
        self.put(adopt(parent, child.agent_id, child.agent_type, at))

    # -- what follows ----------------------------------------------------------------------------------

    def advance(self, before: Session, after: Session, event: Event | None, at: float) -> Session:
        """Keep a session as it is now, and let its subagents follow: those it gained are made, those it lost closed."""
        self.put(after)
        if after.ended is not None and before.ended is None and not after.parent:
            self.close_below(after, after.evidence.event if after.evidence else "", at)
        elif before.agents is not after.agents:
            for agent_id in before.agents.keys() - after.agents.keys():
                self._close(self.by_id.get(self._name(after, agent_id)), event, at)
            for agent_id, agent in after.agents.items():
                if agent_id not in before.agents and self._name(after, agent_id) not in self.by_id:
                    self._born(after, agent_id, agent.type, agent.at)
        return after

    def close_below(self, session: Session, said: str, at: float) -> None:
        """Close the subagents of a session that has ended: they lived in its process."""
        for child in list(self.below(session.id)):
            if child.ended is None:
                self.put(ended_by(child, said, at, "parent ended"))

    def link(self, maker: Session, made: str, event: PostToolUse, at: float) -> None:
        """Learn from a call's answer which subagent it made, and put right what was guessed."""
        name = self._name(maker, made)
        child = self.by_id.get(name)
        if child is None:
            child = self._born(maker, made, asked_agent(event), at)
            if is_finished(event):
                child = self.put(ended_by(child, "PostToolUse", at, "completed"))
        if child.parent != maker.id and not self._is_below(maker, child):
            child = self._moved(child, maker)
        call_id = clean(event.tool_use_id or "", LONGEST_ID)
        self._exchange(maker, child, call_id)
        client = client_or_default(event.client)
        description, result = client.subagent_request(event.tool_input).description, client.subagent_result(event)
        after = replace(
            child,
            call=call_id,
            description=clean(description) if description else child.description,
            model=clean(result.model) if result and result.model else child.model,
        )
        if after != child:
            self.put(after)

    def claim(self, maker: Session, call_id: str, at: float) -> None:
        """Give a call that is heard of late the subagent of its type that began meanwhile, if there is one."""
        call = maker.calls.get(call_id)
        if call is None or call.agent:
            return
        for name in self.children.get(maker.id, ()):
            child = self.by_id[name]
            if not child.call and child.ended is None and child.agent_type == call.kind and child.started > at:
                self.put(replace(child, call=call_id, description=call.about))
                self.put(replace(maker, calls={**maker.calls, call_id: replace(call, agent=child.agent_id)}))
                return

    # -- parts -----------------------------------------------------------------------------------------

    def _born(self, maker: Session, agent_id: str, kind: str, at: float) -> Session:
        root = self.root_of(maker)
        call_id, call = next(((i, c) for i, c in maker.calls.items() if c.agent == agent_id), ("", None))
        self._make_room_below(maker)
        return self.put(
            Session(
                id=f"{root.id}/{agent_id}",
                client=root.client,
                parent=maker.id,
                agent_id=agent_id,
                agent_type=kind,
                description=call.about if call else "",
                call=call_id,
                cwd=maker.cwd,
                state=Working(),
                evidence=Evidence("a subagent began", at),
                in_turn=True,
                since=at,
                started=at,
                last_activity=at,
            )
        )

    def _introduced(self, child: Session, maker: Session) -> Session:
        """Tell a subagent from which call it comes, if an event of its own was heard before its start."""
        found = next((one for one in maker.calls.items() if one[1].agent == child.agent_id), None)
        if child.call or found is None:
            return child
        return replace(child, call=found[0], description=found[1].about)

    def _maker(self, root: Session, agent_id: str, kind: str) -> Session:
        """Guess who made a subagent."""
        family = [root, *(child for child in self.below(root.id) if child.ended is None)]
        for member in family:
            if agent_id in member.agents:
                return member
        guesses = [
            (found[1].kind != kind, found[1].at, member.id)
            for member in family
            if (found := maker_call(member, kind, agent_id))
        ]
        return self.by_id[min(guesses)[2]] if guesses else root

    def _parent(self, child: Session, root: Session) -> Session:
        return self.by_id.get(child.parent, root)

    def _name(self, member: Session, agent_id: str) -> str:
        return f"{self.root_of(member).id}/{agent_id}"

    def _is_below(self, session: Session, top: Session) -> bool:
        return session.id == top.id or any(child.id == session.id for child in self.below(top.id))

    def _moved(self, child: Session, maker: Session) -> Session:
        """Give a subagent to the session that made it."""
        wrong = self.by_id.get(child.parent)
        if wrong is not None:
            self.put(disown(wrong, child.agent_id))
        return self.put(replace(child, parent=maker.id))

    def _exchange(self, maker: Session, child: Session, call_id: str) -> None:
        """Give the one that was guessed to come from this call what the right one was guessed to come from."""
        maker = self.by_id[maker.id]
        for name in self.children.get(maker.id, ()):
            other = self.by_id[name]
            if call_id and other.call == call_id and name != child.id:
                self.put(replace(other, call=child.call, description=child.description))
                if child.call in maker.calls:
                    call = replace(maker.calls[child.call], agent=other.agent_id)
                    self.put(replace(maker, calls={**maker.calls, child.call: call}))
                return

    def _close(self, child: Session | None, event: Event | None, at: float) -> None:
        if child is not None and child.ended is None:
            said = event.event_name if event else "the client is idle"
            reason = "completed" if event and event.event_name == "PostToolUse" else "stop not seen"
            self.put(ended_by(child, said, at, reason))

    def _make_room_below(self, maker: Session) -> None:
        names = self.children.get(maker.id, {})
        if len(names) >= MOST_CHILDREN:
            done = (name for name in names if self.by_id[name].ended is not None)
            self.drop(next(done, next(iter(names))))
