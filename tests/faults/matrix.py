"""The matrix of faults as data: what each event comes to under each fault.

A cell has three parts: is the event *shut* (by exit code, or by the client's JSON), what is the user or the model
*told*, and how often is it *counted*, in the journal and the spool together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

POLICY = """\
preToolUse: {uneditableFiles: [kept.txt]}
stop: {commands: [{run: 'exit 3'}]}
taskCompleted: {commands: {'*': [{run: 'exit 2', message: not yet}]}}
userPromptSubmit: {slashCommands: {commands: {deploy: [{run: 'exit 2', message: frozen}]}}}
postToolUse: {commands: {'*': [{run: 'true'}]}}
"""
"""Each check fails, so an event that passes was let through by the fault."""

EVENTS: dict[str, dict[str, Any]] = {
    "PreToolUse": {"tool_name": "Edit", "tool_input": {"file_path": "{project}/kept.txt"}},
    "Stop": {"stop_hook_active": False},
    "UserPromptSubmit": {"prompt": "/deploy"},
    "TaskCompleted": {"task_id": "1", "task_subject": "x"},
    "PostToolUse": {"tool_name": "Edit", "tool_input": {}, "tool_response": {}},
}
GATES = ("PreToolUse", "Stop", "UserPromptSubmit", "TaskCompleted")

_CHECKED = {
    "PreToolUse": "kept.txt",
    "Stop": "Command failed with exit code 3: exit 3",
    "UserPromptSubmit": "frozen",
    "TaskCompleted": "not yet",
    "PostToolUse": "",
}


@dataclass(frozen=True)
class Cell:
    """What one event comes to under one fault."""

    shut: bool
    told: str
    """A regular expression, searched in stdout and stderr."""
    counted: int | None = 1
    """Records of it; `None` if that depends on how far it came."""


@dataclass(frozen=True)
class Row:
    """A fault, and the cells that differ from those of a sound system."""

    fault: str
    quick: bool = False
    """Part of `make test`; the others are played by `make faults`."""
    events: tuple[str, ...] = tuple(EVENTS)
    differs: dict[str, Cell] = field(default_factory=dict)
    counted: int | None = 1

    def cell(self, event: str) -> Cell:
        """Return the cell of an event."""
        usual = Cell(event in GATES, re.escape(_CHECKED[event]), self.counted)
        return self.differs.get(event, usual)


def _open_but_told(told: str, *, gate: str | None = None, counted: int | None = 0) -> dict[str, Cell]:
    """Without daemon and Python nobody knows of a check: only the gate is shut, and each event says what is broken."""
    cells = {event: Cell(shut=False, told=f"cannot handle this event: {told}", counted=counted) for event in EVENTS}
    return {**cells, "PreToolUse": Cell(shut=True, told=gate or f"so it is blocked: {told}", counted=counted)}


def _untouched(told: str = "") -> dict[str, Cell]:
    """Python has said itself what is wrong."""
    cells = {event: Cell(shut=False, told=told, counted=None) for event in EVENTS}
    return {**cells, "PreToolUse": Cell(shut=True, told=told, counted=None)}


_NOT_RECORDED = {
    event: Cell(event in GATES, f"{re.escape(_CHECKED[event])}.*answered, but not recorded", 0) for event in EVENTS
}


def _gate(told: str, counted: int | None = None) -> dict[str, Cell]:
    return {"PreToolUse": Cell(shut=True, told=told, counted=counted)}


MATRIX = (
    Row("nothing", quick=True),
    Row("no daemon", quick=True),
    Row("daemon killed"),
    Row("daemon stopped", events=("PreToolUse", "Stop")),
    Row("sigchld ignored", quick=True, events=("Stop", "UserPromptSubmit")),
    Row("sigchld ignored, no daemon", events=("Stop", "UserPromptSubmit")),
    # Python
    Row("python gone, daemon", quick=True),
    Row("python gone", quick=True, differs=_open_but_told("cannot run /no/python: no such file")),
    Row("python garbage", differs=_open_but_told("cannot run .*garbage: not a program")),
    Row(
        "python crashes",
        quick=True,
        differs={
            **{event: Cell(shut=False, told="", counted=0) for event in EVENTS},
            "PreToolUse": Cell(shut=True, told="Python was killed by signal 11", counted=0),
        },
    ),
    Row("modules removed", quick=True, differs=_untouched("fairlead")),
    # disk
    Row("disk full, no daemon", differs=_NOT_RECORDED),
    Row("disk full", events=("PreToolUse", "Stop")),
    Row("disk read-only, no daemon", differs=_NOT_RECORDED),
    # limits
    Row("no file may grow, no daemon", quick=True, events=("PreToolUse", "Stop"), differs=_NOT_RECORDED),
    Row(
        "few files",
        events=("PreToolUse",),
        counted=None,
        differs=_gate("."),
    ),
    Row("little memory", events=("PreToolUse",), differs=_gate(".")),
    Row("little time", events=("PreToolUse",), differs=_gate("Python was killed by signal (24|9)", 0)),
    Row("few files, daemon", events=("PreToolUse", "Stop")),
    # stdin and stdout
    Row(
        "stdin closed",
        quick=True,
        events=("PreToolUse",),
        differs=_gate("stdin", 0),
    ),
    Row("stdin huge", events=("PreToolUse",), differs=_gate("payload")),
    Row("stdin late", events=("PreToolUse", "Stop")),
    Row(
        "stdout closed",
        quick=True,
        events=("PreToolUse",),
        differs=_gate("stdout is closed|cannot write the answer|kept.txt"),
    ),
    Row(
        "stdout full",
        events=("PreToolUse",),
        differs=_gate("cannot write the answer"),
    ),
    # clocks
    Row("files from the future", events=GATES),
    Row("another monotonic clock", events=GATES),
    # what is kept
    Row("journal torn", events=("PreToolUse", "Stop")),
    Row("journal flipped", events=("PreToolUse", "Stop")),
    Row("journal from the future", events=("PreToolUse", "Stop")),
    Row("spool garbage", events=("PreToolUse", "Stop")),
    Row("database garbage", events=("PreToolUse", "Stop")),
    # the socket
    Row("many daemons", events=("PreToolUse", "Stop")),
    Row("socket is a file", events=("PreToolUse", "Stop")),
    Row("socket is a folder", events=("PreToolUse",)),
    Row("socket of an impostor", quick=True, events=GATES),
)
