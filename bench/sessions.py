"""The session registry: one event applied to a session, and to the registry, with few and with many sessions."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from bench._table import Row, Target
from fairlead.events import PostToolUse, PreToolUse, SubagentStart, UserPromptSubmit
from fairlead.journal import Caller
from fairlead.sessions import Registry, Session, apply

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench._harness import Effort

_SESSIONS = 1000
_CHILDREN = 10
_TOOL = {"command": "make test", "description": "run the tests"}


def rows(effort: Effort) -> list[Row]:
    calls = {
        "apply": _applying(),
        "replace": _replacing(),
        "one": _registering(_registry(1, 0)),
        "many": _registering(_registry(_SESSIONS, _CHILDREN)),
    }
    times = effort.compare({name: effort.looped(call) for name, call in calls.items()})
    both = {name: times[name].per(2) for name in ("apply", "one", "many")}  # a tool's start and its end
    floor, few = "copy and change a dict", "the same with 1 session"
    many = f"one event, {_SESSIONS} sessions of {_CHILDREN} subagents"
    return [
        Row("apply", "one event, one session", "µs", both["apply"], floor, times["replace"], target=Target("time", 3)),
        Row("registry", "one event, 1 session", "µs", both["one"], floor, times["replace"], target=Target("time", 50)),
        Row("registry", many, "µs", both["many"], few, both["one"], target=Target("time", 50)),
    ]


def _applying() -> Callable[[], object]:
    prompt = UserPromptSubmit(session_id="s", prompt="do it", cwd="/home/x", permission_mode="default")
    session = apply(Session(id="s"), prompt, 1.0)
    before, after = _events("s")
    clock = count(2)

    def both() -> object:
        nonlocal session
        session = apply(session, before, next(clock))
        session = apply(session, after, next(clock))
        return session

    return both


def _replacing() -> Callable[[], object]:
    fields = dict.fromkeys(Session.__struct_fields__)
    return lambda: {**fields, "state": 1, "evidence": 2, "calls": 3, "memory": 4}


def _registry(sessions: int, children: int) -> Registry:
    registry = Registry()
    for number in range(sessions):
        caller = Caller(pid=number + 1, start=1)
        registry.apply_event(UserPromptSubmit(session_id=f"s{number}", prompt="do it"), 1.0, caller)
        for child in range(children):
            started = SubagentStart(session_id=f"s{number}", agent_id=f"a{child}", agent_type="Explore")
            registry.apply_event(started, 2.0 + child, caller)
    return registry


def _registering(registry: Registry) -> Callable[[], object]:
    """Return a call that applies events of all sessions in turn."""
    sessions = [(Caller(pid=root.pid, start=1), *_events(root.id)) for root in registry.sessions()]
    clock = count(100)

    def both() -> object:
        caller, before, after = sessions[next(turns) % len(sessions)]
        registry.apply_event(before, next(clock), caller)
        return registry.apply_event(after, next(clock), caller)

    turns = count()
    return both


def _events(session: str) -> tuple[PreToolUse, PostToolUse]:
    common: dict[str, Any] = {"session_id": session, "cwd": "/home/x", "permission_mode": "default"}
    return (
        PreToolUse(tool_name="Bash", tool_input=_TOOL, tool_use_id="t1", **common),
        PostToolUse(tool_name="Bash", tool_input=_TOOL, tool_use_id="t1", tool_response={"stdout": ""}, **common),
    )
