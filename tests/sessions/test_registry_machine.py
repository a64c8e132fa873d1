"""Random events of many sessions and subagents: the registry never contradicts a simple model."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sessions.fake_client import START, make

from fairlead.events import Event, to_payload
from fairlead.journal import Caller, EventRecord
from fairlead.sessions import (
    AttentionNeeded,
    Idle,
    Registry,
    Session,
    Working,
    apply_record,
    encode_registry,
    restore_registry,
)

SESSIONS = st.sampled_from(["s1", "s2", "s3"])
AGENTS = st.sampled_from(["a1", "a2", "a3"])
WHO = st.one_of(st.none(), AGENTS)
CALLS = st.sampled_from(["t1", "t2", "t3", "t4"])
TOOLS = st.sampled_from(["Bash", "Read", "AskUserQuestion"])
STEPS = st.sampled_from([0.001, 0.5, 3.0, 60.0])
Sent = tuple[Event, float, Caller]


class RegistryMachine(RuleBasedStateMachine):
    """Sends events and keeps the expected state in a few sets."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = Registry()
        self.now = START
        self.sent: list[Sent] = []
        self.running: dict[str, set[str]] = {}
        """Session → its subagents that have started and not stopped."""
        self.known: set[str] = set()
        self.alive: set[str] = set()
        self.reader_revision = 0
        self.reader_sessions: dict[str, Session] = {}
        """What a reader of the change log knows."""

    def send(self, name: str, session: str, *, after: float = 1.0, **fields: Any) -> None:
        self.now += after
        fields = {key: value for key, value in fields.items() if value is not None}
        sent = (make(name, session, **fields), self.now, Caller(pid=int(session[1]), start=5))
        self.sent.append(sent)
        self.registry.apply_event(*sent)
        if name not in {"SubagentStop", "Stop", "Notification", "SessionEnd"}:
            self.alive.add(session)
        self.known.add(session)

    @rule(session=SESSIONS, source=st.sampled_from(["startup", "resume", "compact"]), after=STEPS)
    def start(self, session: str, source: str, after: float) -> None:
        self.send("SessionStart", session, source=source, after=after)
        if source != "compact":
            self.running[session] = set()

    @rule(session=SESSIONS, after=STEPS)
    def prompt(self, session: str, after: float) -> None:
        self.send("UserPromptSubmit", session, after=after)

    @rule(session=SESSIONS, agent=WHO, call=CALLS, tool=TOOLS, after=STEPS)
    def pre(self, session: str, agent: str | None, call: str, tool: str, after: float) -> None:
        self.send("PreToolUse", session, agent_id=agent, tool_name=tool, tool_use_id=call, after=after)
        self._works(session, agent)

    @rule(session=SESSIONS, agent=WHO, tool=TOOLS, after=STEPS)
    def ask(self, session: str, agent: str | None, tool: str, after: float) -> None:
        self.send("PermissionRequest", session, agent_id=agent, tool_name=tool, after=after)
        self._works(session, agent)

    @rule(session=SESSIONS, agent=WHO, call=CALLS, after=STEPS)
    def post(self, session: str, agent: str | None, call: str, after: float) -> None:
        self.send("PostToolUse", session, agent_id=agent, tool_use_id=call, after=after)
        self._works(session, agent)

    @rule(session=SESSIONS, agent=AGENTS, after=STEPS)
    def agent_start(self, session: str, agent: str, after: float) -> None:
        self.send("SubagentStart", session, agent_id=agent, agent_type="Explore", after=after)
        self._works(session, agent)

    @rule(session=SESSIONS, agent=AGENTS, after=STEPS)
    def agent_stop(self, session: str, agent: str, after: float) -> None:
        self.send("SubagentStop", session, agent_id=agent, agent_type="Explore", after=after)
        self.running.setdefault(session, set()).discard(agent)
        self.known.add(f"{session}/{agent}")

    @rule(session=SESSIONS, listed=st.one_of(st.none(), st.just([])), after=STEPS)
    def stop(self, session: str, listed: list[Any] | None, after: float) -> None:
        self.send("Stop", session, background_tasks=listed, after=after)
        if listed is not None:
            self.running[session] = set()

    @rule(session=SESSIONS, kind=st.sampled_from(["permission_prompt", "idle_prompt", "auth_success", "new"]))
    def note(self, session: str, kind: str) -> None:
        self.send("Notification", session, notification_type=kind)

    @rule(session=SESSIONS, after=STEPS)
    def end(self, session: str, after: float) -> None:
        self.send("SessionEnd", session, reason="other", after=after)
        self.running[session] = set()
        self.alive.discard(session)

    def _works(self, session: str, agent: str | None) -> None:
        if agent:
            self.running.setdefault(session, set()).add(agent)
            self.known.add(f"{session}/{agent}")

    # -- what may happen in between ------------------------------------------------------------------------

    @precondition(lambda self: self.sent)
    @rule(back=st.integers(0, 3))
    def an_event_is_repeated(self, back: int) -> None:
        sent = self.sent[-1 - min(back, len(self.sent) - 1)]
        before = dict(self.registry.by_id)

        assert self.registry.apply_event(*sent) == []
        assert self.registry.by_id == before

    @rule()
    def the_daemon_restarts(self) -> None:
        restored = restore_registry(encode_registry(self.registry))

        assert restored.by_id == self.registry.by_id
        assert restored.children == {name: children for name, children in self.registry.children.items() if children}
        self.registry = restored
        self.reader_revision = restored.revision
        self.reader_sessions = dict(restored.by_id)

    @rule()
    def a_reader_catches_up(self) -> None:
        changes = self.registry.changes_since(self.reader_revision)
        assert changes is not None
        self.reader_sessions |= {change.session.id: change.session for change in changes}
        self.reader_revision = self.registry.revision

        assert self.reader_sessions == self.registry.by_id
        assert [change.revision for change in changes] == sorted({change.revision for change in changes})

    # -- what is always true -----------------------------------------------------------------------------

    @invariant()
    def every_session_is_in_one_state_with_its_evidence(self) -> None:
        for session in self.registry.by_id.values():
            assert type(session.state) in (Idle, Working, AttentionNeeded)
            assert session.evidence is not None or type(session.state) is Idle
            if type(session.state) is AttentionNeeded:
                assert session.state.reason
                assert session.in_turn or session.evidence is not None
            if session.ended is not None:
                assert type(session.state) is Idle

    @invariant()
    def a_question_that_is_open_is_attention(self) -> None:
        for session in self.registry.by_id.values():
            if any(call.asked for call in session.calls.values()):
                assert type(session.state) is AttentionNeeded, session

    @invariant()
    def no_session_is_lost(self) -> None:
        assert self.known == set(self.registry.by_id)
        assert {session.id for session in self.registry.sessions()} >= self.alive

    @invariant()
    def the_subagents_that_run_are_those_of_the_model(self) -> None:
        for session, agents in self.running.items():
            descendants = list(self.registry.descendants(session))
            assert {child.agent_id for child in descendants if child.ended is None} == agents
            assert set(self.registry.by_id[session].agents) == agents

    def teardown(self) -> None:
        """The journal gives the same registry."""
        registry = Registry()
        for number, (event, at, caller) in enumerate(self.sent):
            record = EventRecord(
                id=str(number),
                at=at,
                event=event.event_name,
                caller=caller,
                payload=msgspec.Raw(msgspec.json.encode(to_payload(event))),
            )
            apply_record(registry, record)
        assert registry.by_id == self.registry.by_id


RegistryMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestRegistryMachine = RegistryMachine.TestCase
