"""Creates and ends the sessions of subagents, and links them to the tool calls that started them.

No event reports which tool call started a subagent, in the main session or in another subagent, until that call has a
result. Until then it is guessed to be the oldest open call, in the main session or its subagents, that asks for this
type and has no subagent yet. The result names the subagent. If the guess was wrong, the two subagents swap their calls.

A subagent may end while subagents that it started in the background continue. They stay its children, but also count as
agents of the nearest ancestor that has not ended, so that a main session is not idle while any descendant works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from fairlead.clients import client_or_default
from fairlead.sessions._index import SessionIndex
from fairlead.sessions._limits import MAX_ID_LENGTH, clean_text
from fairlead.sessions._session import IDLE, Evidence, Session, Working
from fairlead.sessions.transitions._apply import apply
from fairlead.sessions.transitions._subagents import add_subagent, find_spawning_call, remove_subagent
from fairlead.sessions.transitions._tools import is_finished, requested_subagent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.events import Event, PostToolUse, SubagentStart, SubagentStop
    from fairlead.journal import Verdict
    from fairlead.sessions._session import Source

MAX_CHILDREN = 100
"""The number of direct subagents of one session that are kept. Ended ones are dropped first."""


def end_session(session: Session, evidence: str, at: float, reason: str, *, source: Source = "hook") -> Session:
    """Return the session as ended, for an end that none of its events has reported.

    `evidence` describes what has shown the end, and `reason` is the `end_reason`.
    """
    return replace(
        session,
        state=IDLE,
        evidence=Evidence(evidence, at, source=source),
        since=at,
        in_turn=False,
        calls={},
        agents={},
        tasks={},
        ended=max(at, session.started),
        end_reason=reason,
    )


class SubagentLinker(SessionIndex):
    """The sessions, with the operations that change a session and its subagents together."""

    # -- start and stop --------------------------------------------------------------------------------

    def start_subagent(self, root: Session, event: SubagentStart, at: float, verdict: Verdict) -> None:
        """Apply the start of a subagent to its parent and to its session, which is created if it is unknown."""
        agent_id = clean_text(event.agent_id, MAX_ID_LENGTH)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is None:
            parent = self._guess_parent(root, agent_id, clean_text(event.agent_type))
        else:
            parent = self._parent(child, root)
        self.update(parent, apply(parent, event, at, verdict), event, at)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is not None:
            self.put(self._with_call(apply(child, event, at, verdict), self.by_id[parent.id]))

    def stop_subagent(self, root: Session, event: SubagentStop, at: float, verdict: Verdict) -> None:
        """Apply the stop of a subagent to its session, and to the ancestors that list it.

        An unknown session is created if the stop has a type; otherwise the stop is applied to the main session only.
        """
        agent_id = clean_text(event.agent_id, MAX_ID_LENGTH)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is None and event.agent_type:
            child = self._create_child(root, agent_id, clean_text(event.agent_type), at)
        if child is None:
            self.update(root, apply(root, event, at, verdict), event, at)
            return
        after = self.update(child, apply(child, event, at, verdict), event, at)
        if after.ended is not None:
            self._reassign_descendants(after, at)
        for ancestor in list(self._ancestors(after)):
            if ancestor.id == after.parent or agent_id in ancestor.agents or agent_id in ancestor.tasks:
                self.update(ancestor, apply(ancestor, event, at, verdict), event, at)

    def get_or_create_child(self, root: Session, event: Event, at: float) -> Session:
        """Return the subagent that an event comes from.

        If its start was not seen, create it and add it to its parent. If the parent has ended, create it as ended.
        """
        agent_id = clean_text(event.agent_id or "", MAX_ID_LENGTH)
        child = self.by_id.get(f"{root.id}/{agent_id}")
        if child is not None:
            return child
        kind = clean_text(event.agent_type or "")
        parent = self._guess_parent(root, agent_id, kind)
        child = self._create_child(parent, agent_id, kind, at)
        if parent.ended is not None:
            return self.put(end_session(child, "SessionEnd", max(at, parent.ended), "parent ended"))
        self.put(add_subagent(parent, agent_id, kind, at))
        return child

    def mark_working(self, child: Session, at: float) -> None:
        """Add a working subagent to its nearest ancestor that has not ended, if that does not list it as working."""
        parent = next((ancestor for ancestor in self._ancestors(child) if ancestor.ended is None), None)
        if parent is None or child.agent_id in parent.agents or not child.in_turn:
            return
        self.put(add_subagent(parent, child.agent_id, child.agent_type, at))

    # -- consequences ----------------------------------------------------------------------------------

    def update(self, before: Session, after: Session, event: Event | None, at: float) -> Session:
        """Replace a session, and return it.

        Create the subagents that only `after` lists, and end those that only `before` lists. If a main session has
        ended, all its subagents end. `event` is the cause; `None` if it was no event.
        """
        self.put(after)
        if after.ended is not None and before.ended is None and not after.parent:
            self.end_descendants(after, after.evidence.event if after.evidence else "", at)
        elif before.agents is not after.agents:
            for agent_id in before.agents.keys() - after.agents.keys():
                self._end_child(self.by_id.get(self._child_id(after, agent_id)), event, at)
            for agent_id, agent in after.agents.items():
                if agent_id not in before.agents and self._child_id(after, agent_id) not in self.by_id:
                    self._create_child(after, agent_id, agent.type, agent.at)
        return after

    def end_descendants(self, session: Session, evidence: str, at: float) -> None:
        """End all descendants of a session that has ended, because they ran in its process."""
        for child in list(self.descendants(session.id)):
            if child.ended is None:
                self.put(end_session(child, evidence, at, "parent ended"))

    def link_subagent(self, parent: Session, agent_id: str, event: PostToolUse, at: float) -> None:
        """Link a subagent to the call whose result names it, and correct a wrong guess. Create it if it is unknown."""
        name = self._child_id(parent, agent_id)
        child = self.by_id.get(name)
        if child is None:
            child = self._create_child(parent, agent_id, requested_subagent(event), at)
            if is_finished(event):
                child = self.put(end_session(child, "PostToolUse", at, "completed"))
        if child.parent != parent.id and not self._is_descendant(parent, child):
            child = self._move(child, parent)
        call_id = clean_text(event.tool_use_id or "", MAX_ID_LENGTH)
        self._swap_calls(parent, child, call_id)
        client = client_or_default(event.client)
        description, result = client.subagent_request(event.tool_input).description, client.subagent_result(event)
        after = replace(
            child,
            call=call_id,
            description=clean_text(description) if description else child.description,
            model=clean_text(result.model) if result and result.model else child.model,
        )
        if after != child:
            self.put(after)

    def assign_subagent(self, parent: Session, call_id: str, at: float) -> None:
        """Assign a subagent to a call whose event was delayed: one of the call's type that started after it, if any."""
        call = parent.calls.get(call_id)
        if call is None or call.agent:
            return
        for name in self.children.get(parent.id, ()):
            child = self.by_id[name]
            if not child.call and child.ended is None and child.agent_type == call.kind and child.started > at:
                self.put(replace(child, call=call_id, description=call.about))
                self.put(replace(parent, calls={**parent.calls, call_id: replace(call, agent=child.agent_id)}))
                return

    # -- parts -----------------------------------------------------------------------------------------

    def _create_child(self, parent: Session, agent_id: str, kind: str, at: float) -> Session:
        root = self.root_of(parent)
        call_id, call = next(((i, c) for i, c in parent.calls.items() if c.agent == agent_id), ("", None))
        self._make_room_for_child(parent)
        return self.put(
            Session(
                id=f"{root.id}/{agent_id}",
                client=root.client,
                parent=parent.id,
                agent_id=agent_id,
                agent_type=kind,
                description=call.about if call else "",
                call=call_id,
                cwd=parent.cwd,
                state=Working(),
                evidence=Evidence("a subagent began", at),
                in_turn=True,
                since=at,
                started=at,
                last_activity=at,
            )
        )

    def _with_call(self, child: Session, parent: Session) -> Session:
        """Return the subagent with the call that the parent has assigned to it, if it has no call yet."""
        match = next(((i, c) for i, c in parent.calls.items() if c.agent == child.agent_id), None)
        if child.call or match is None:
            return child
        return replace(child, call=match[0], description=match[1].about)

    def _guess_parent(self, root: Session, agent_id: str, kind: str) -> Session:
        members = [root, *(child for child in self.descendants(root.id) if child.ended is None)]
        for member in members:
            if agent_id in member.agents:
                return member
        guesses = [
            (match[1].kind != kind, match[1].at, member.id)
            for member in members
            if (match := find_spawning_call(member, kind, agent_id))
        ]
        return self.by_id[min(guesses)[2]] if guesses else root

    def _parent(self, child: Session, root: Session) -> Session:
        return self.by_id.get(child.parent, root)

    def _child_id(self, session: Session, agent_id: str) -> str:
        return f"{self.root_of(session).id}/{agent_id}"

    def _is_descendant(self, session: Session, top: Session) -> bool:
        return session.id == top.id or any(child.id == session.id for child in self.descendants(top.id))

    def _move(self, child: Session, parent: Session) -> Session:
        """Make `parent` the parent of a subagent, instead of the session that was guessed. Return the subagent."""
        guessed = self.by_id.get(child.parent)
        if guessed is not None:
            self.put(remove_subagent(guessed, child.agent_id))
        return self.put(replace(child, parent=parent.id))

    def _swap_calls(self, parent: Session, child: Session, call_id: str) -> None:
        """If the call `call_id` was guessed for another subagent, give that one the call guessed for `child`."""
        parent = self.by_id[parent.id]
        for name in self.children.get(parent.id, ()):
            other = self.by_id[name]
            if call_id and other.call == call_id and name != child.id:
                self.put(replace(other, call=child.call, description=child.description))
                if child.call in parent.calls:
                    call = replace(parent.calls[child.call], agent=other.agent_id)
                    self.put(replace(parent, calls={**parent.calls, child.call: call}))
                return

    def _end_child(self, child: Session | None, event: Event | None, at: float) -> None:
        if child is not None and child.ended is None:
            evidence = event.event_name if event else "the client is idle"
            reason = "completed" if event and event.event_name == "PostToolUse" else "stop not seen"
            self._reassign_descendants(self.put(end_session(child, evidence, at, reason)), at)

    def _reassign_descendants(self, ended: Session, at: float) -> None:
        """Add the working descendants of an ended subagent to its nearest ancestor that has not ended."""
        parent = next((ancestor for ancestor in self._ancestors(ended) if ancestor.ended is None), None)
        for child in list(self.descendants(ended.id)) if parent is not None else ():
            if parent is not None and child.ended is None and child.in_turn and child.agent_id not in parent.agents:
                parent = self.put(add_subagent(parent, child.agent_id, child.agent_type, at, is_background=True))

    def _ancestors(self, session: Session) -> Iterator[Session]:
        """Yield the ancestors of a subagent, from its parent to the main session."""
        while session.parent in self.by_id:
            session = self.by_id[session.parent]
            yield session

    def _make_room_for_child(self, parent: Session) -> None:
        names = self.children.get(parent.id, {})
        if len(names) >= MAX_CHILDREN:
            ended = (name for name in names if self.by_id[name].ended is not None and not self._has_live(name))
            self.drop(next(ended, next(iter(names))))

    def _has_live(self, name: str) -> bool:
        return any(child.ended is None for child in self.descendants(name))
