"""The matrix of faults as data: what each event comes to under each fault.

A cell says with which exit code the hook ends, whether the event is *shut* (by that, or by the client's JSON), what the
user or the model is *told*, and how often it is *counted*, in the journal and the spool together.
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
_CHECKED = {
    "PreToolUse": (2, "kept.txt"),
    "Stop": (0, "Command failed with exit code 3: exit 3"),  # by JSON
    "UserPromptSubmit": (2, "frozen"),
    "TaskCompleted": (2, "not yet"),
    "PostToolUse": (0, "Processing PostToolUse hook"),
}
"""Exit code and text where nothing is broken."""


@dataclass(frozen=True)
class Cell:
    """What one event comes to under one fault."""

    exit_code: int
    told: str
    """A regular expression, searched in stdout and stderr."""
    counted: int = 1
    """Records of it."""
    shut: bool = True
    """By exit code 2, or by the client's JSON."""


@dataclass(frozen=True)
class Row:
    """A fault, and the cells that differ from those of a sound system."""

    fault: str
    quick: bool = False
    """Part of `make test`; the others are played by `make faults`."""
    differs: dict[str, Cell] = field(default_factory=dict)

    def cell(self, event: str) -> Cell:
        """Return the cell of an event."""
        exit_code, told = _CHECKED[event]
        usual = Cell(exit_code, re.escape(told), shut=event != "PostToolUse")
        return self.differs.get(event, usual)


def _unchecked(told: str, counted: int = 0) -> dict[str, Cell]:
    """Nobody can say whether there is a check: the gate is shut, and each event says what is broken."""
    cells = {event: Cell(1, told, counted, shut=False) for event in EVENTS}
    return {**cells, "PreToolUse": Cell(2, told, counted)}


def _broken_installation(told: str) -> dict[str, Cell]:
    """Fairlead fails in a sound Python: what has a section in the policy is blocked, and each event says why."""
    sections = {"Stop": "stop", "UserPromptSubmit": "slashCommands", "TaskCompleted": "taskCompleted"}
    checked = {
        event: Cell(2, f"{told}.*the check `{section}` of .*yaml could not be made, so the event is blocked", 0)
        for event, section in sections.items()
    }
    return _unchecked(told) | checked


def _by_launcher(told: str) -> dict[str, Cell]:
    """Return the cells of `_unchecked`, in the words of the launcher."""
    gate = {"PreToolUse": Cell(2, f"fairlead cannot check this call, so it is blocked: {told}", 0)}
    return _unchecked(f"fairlead cannot handle this event: {told}") | gate


def _not_recorded() -> dict[str, Cell]:
    return {
        event: Cell(code, f"{re.escape(told)}.*answered, but not recorded", 0, shut=event != "PostToolUse")
        for event, (code, told) in _CHECKED.items()
    }


def _not_started(why: str) -> dict[str, Cell]:
    """A check that cannot be started blocks, and says which one and why."""
    told = f"This could not be checked, so it is blocked: Command could not be started \\({why}.*\\): exit "
    return {event: Cell(_CHECKED[event][0], told) for event in ("Stop", "UserPromptSubmit", "TaskCompleted")}


def _not_printed(why: str) -> dict[str, Cell]:
    """An answer that cannot be printed is no consent. The other two have none on stdout."""
    told = f"fairlead: cannot write the answer: {why}"
    return {event: Cell(2, told) for event in ("PreToolUse", "Stop", "UserPromptSubmit")}


def _ended(*, counted: int) -> dict[str, Cell]:
    """The hook has no end, so that the client ends it, and takes that for a failure."""
    return {event: Cell(-15, "^$", counted, shut=False) for event in EVENTS}


MATRIX = (
    Row("nothing", quick=True),
    Row("no daemon", quick=True),
    Row("daemon killed"),
    Row("daemon stopped"),
    Row("sigchld ignored", quick=True),
    Row("sigchld ignored, no daemon"),
    # Python
    Row("python gone, daemon", quick=True),
    Row("python crashes, daemon"),
    Row("modules removed, daemon"),
    Row("python gone", quick=True, differs=_by_launcher("cannot run /no/python: no such file")),
    Row("python garbage", differs=_by_launcher("cannot run .*garbage: not a program")),
    Row("python crashes", quick=True, differs=_by_launcher("Python was killed by signal 11")),
    Row("modules removed", quick=True, differs=_broken_installation("import of fairlead.clients halted")),
    # disk
    Row("disk full, no daemon", differs=_not_recorded()),
    Row("disk full"),
    Row("disk read-only, no daemon", differs=_not_recorded()),
    # limits
    Row("no file may grow, no daemon", quick=True, differs=_not_recorded()),
    Row("no file may grow", differs=_not_started(r"cannot start 'bash': \[Errno 27\] File too large")),
    Row("few files", differs=_by_launcher("cannot start Python: too many open files")),
    Row("few files, daemon"),
    Row("few processes", differs=_by_launcher("cannot start Python: too many processes")),
    Row("little memory", differs=_broken_installation("MemoryError")),
    Row("little memory, daemon"),
    Row("little time", differs=_by_launcher("Python was killed by signal (24|9)")),
    # stdin and stdout
    Row("stdin closed", quick=True, differs=_unchecked("reads its payload from stdin")),
    Row("stdin huge", differs=_unchecked("payload: 67108865 bytes, more than the 67108864 that are read", 1)),
    Row("stdin late"),
    Row("stdin never closed", differs=_ended(counted=0)),
    Row("stdout closed", quick=True, differs=_not_printed("stdout is closed")),
    Row("stdout full", differs=_not_printed("no space left")),
    Row("stdout gone", differs=_not_printed("broken pipe")),
    # clocks
    Row("files from the future"),
    Row("another monotonic clock"),
    # what is kept
    Row("journal torn"),
    Row("journal flipped"),
    Row("journal from the future"),
    Row("spool garbage"),
    Row("database garbage"),
    # the socket
    Row("many daemons"),
    Row("socket is a file"),
    Row("socket is a folder"),
    Row("socket of an impostor", quick=True),
    Row("an answer of garbage"),
    Row("a plan of garbage", quick=True),
)
