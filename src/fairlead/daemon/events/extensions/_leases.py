"""Leases as a gate: blocks a tool call that changes a file which another session has leased, or warns about it.

Also notifies two sessions that change the same file within minutes. The files that a call changes are known from the
guards.
"""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, NamedTuple

from fairlead.daemon.events._extension import EventExtension
from fairlead.daemon.leases._text import attempt_notice, conflict_text, edited_after_you, edited_too
from fairlead.decide import Decision
from fairlead.errors import NeedsThread
from fairlead.events import HookOutput, SubagentStop
from fairlead.journal import DOCTOR_SESSION
from fairlead.policy import merge_layers

if TYPE_CHECKING:
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.leases._service import LeaseService
    from fairlead.events import Event
    from fairlead.journal import EventRecord
    from fairlead.leases import Lease
    from fairlead.policy import FileChange, LeaseMode

    _Agent = tuple[str, str]
    """The id of a session, and that of its subagent; "" for the main agent."""

_UNNAMED = "an agent"
_MAX_AGENTS = 1000
_MAX_NOTES = 10
_MAX_SHOWN = 100
_EDIT_WINDOW = 600.0
"""Seconds within which two changes of a file may conflict. Two sessions are notified once within that time."""
_MAX_FILES = 4096
_MAX_PAIRS = 4096
_MAX_EDITORS = 4


def create(daemon: Daemon) -> LeaseGate:
    """Return the extension."""
    return LeaseGate(daemon.leases)


class LeaseGate(EventExtension):
    """Checks the files that a tool call changes against the leases of others, and against their last edits."""

    kind = "gate"
    events = frozenset({"PreToolUse", "PostToolUse", "UserPromptSubmit"})
    recorded_events = frozenset({"SubagentStop"})

    def __init__(self, leases: LeaseService) -> None:
        self._leases = leases
        self._edits = RecentEdits()
        self._notes: dict[_Agent, list[str]] = {}
        """Notes that agents get at their next event."""
        self._shown: dict[str, tuple[_Agent, list[str]]] = {}
        """Event id → the agent and the notes in its reply, for the case that the reply is not delivered."""

    def before_reply(self, context: EventContext) -> Decision | None:
        """Check a call, and add the notes for the agent to the reply."""
        if context.is_blocked:
            return None
        output = self._check(context) if context.changes else None
        if not self._notes or (output is not None and output.blocked):
            return None if output is None else Decision(output=output)
        notes = self._take_notes(context)
        if notes:
            output = HookOutput(additional_context="\n".join(notes)).merge(output or HookOutput())
        return None if output is None else Decision(output=output, undoable=bool(notes))

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Move the notes for a subagent that has ended to its session."""
        if isinstance(event, SubagentStop) and self._notes:
            notes = self._notes.pop((event.session_id, event.agent_id or ""), [])
            for note in notes:
                self._add_note((event.session_id, ""), note)

    def undo(self, event_id: str) -> None:
        """Keep the notes of an undelivered reply for the next one."""
        shown = self._shown.pop(event_id, None)
        if shown is not None:
            agent, notes = shown
            self._notes[agent] = notes + self._notes.get(agent, [])

    # -- the call --------------------------------------------------------------------------------------

    def _check(self, context: EventContext) -> HookOutput | None:
        event = context.event
        if not event.session_id or event.session_id == DOCTOR_SESSION:
            return None
        mode = _mode(context)
        if mode == "off":
            return None
        if self._leases:
            conflicts = self._conflicts(context)
            if conflicts:
                return self._conflict_output(context, conflicts, mode)
        return self._note_edits(context)

    def _conflicts(self, context: EventContext) -> list[tuple[str, Lease, str]]:
        """Return the changed paths that others have leased, each with its lease and the holder's name."""
        conflicts: dict[tuple[str, int], tuple[str, Lease, str]] = {}
        now = time()
        for change in context.changes:
            for lease in self._leases_on(change, context, now):
                shown = change.target.given
                conflicts[shown, lease.id] = shown, lease, self._leases.name_of(lease.holder)
        return list(conflicts.values())

    def _leases_on(self, change: FileChange, context: EventContext, now: float) -> list[Lease]:
        leases, session = self._leases, context.event.session_id
        covering = leases.table.covering(change.target)
        remote = leases.remote
        others = remote.covering(change.target, may_wait=context.may_wait) if remote else []
        if change.whole and change.target.is_folder:
            if not context.may_wait:
                raise NeedsThread  # the files below it have to be looked up
            covering += leases.table.below(change.target)
            others += remote.below(change.target) if remote else []
        has_own = False
        for lease in covering:
            if leases.is_same_session(session, lease.holder.session):
                has_own = True
            elif lease.until > now and not leases.holder_has_ended(lease):
                others.append(lease)
        return [lease for lease in others if not (has_own and lease.shared)]

    def _conflict_output(
        self, context: EventContext, conflicts: list[tuple[str, Lease, str]], mode: LeaseMode
    ) -> HookOutput:
        event, now, is_blocked = context.event, time(), mode == "block"
        by = self._leases.agent_name(event.session_id, event.agent_id or "") or _UNNAMED
        for path, lease, _ in conflicts:
            name = f"{by}@{self._leases.host_name}" if lease.holder.host else by
            subject, text = attempt_notice(path, lease, name, now, is_blocked=is_blocked)
            self._leases.notify(lease, event.session_id, subject, text)
        text = conflict_text(conflicts, now, is_blocked=is_blocked)
        if is_blocked:
            return HookOutput.deny(text)
        self._note_edits(context)
        return HookOutput(additional_context=text)

    # -- edits of the same file ------------------------------------------------------------------------

    def _note_edits(self, context: EventContext) -> HookOutput | None:
        event = context.event
        editor = Editor(event.session_id, event.agent_id or "", time())
        texts = []
        for change in context.changes:
            target = change.target
            if target.exists and not target.is_file:
                continue
            for other in self._edits.record(target.real, editor):
                if not self._are_apart(editor, other) or not self._edits.must_notify(target.real, editor, other):
                    continue
                texts.append(edited_too(target.given, self._name(other), other.at, editor.at))
                note = edited_after_you(target.real, self._name(editor), other.at, editor.at)
                self._add_note((other.session, other.agent_id), note)
        return HookOutput(additional_context="\n".join(texts)) if texts else None

    def _are_apart(self, editor: Editor, other: Editor) -> bool:
        """Return whether two edits are of different sessions, and the other session has not ended."""
        leases = self._leases
        return not leases.is_same_session(editor.session, other.session) and not leases.session_has_ended(other.session)

    def _name(self, editor: Editor) -> str:
        return self._leases.agent_name(editor.session, editor.agent_id) or _UNNAMED

    # -- notes -----------------------------------------------------------------------------------------

    def _add_note(self, agent: _Agent, note: str) -> None:
        if len(self._notes) >= _MAX_AGENTS:
            self._notes.clear()
        self._notes.setdefault(agent, []).append(note)

    def _take_notes(self, context: EventContext) -> list[str]:
        event = context.event
        agent = event.session_id, event.agent_id or ""
        notes = self._notes.pop(agent, [])[-_MAX_NOTES:]
        if notes:
            if len(self._shown) >= _MAX_SHOWN:
                del self._shown[next(iter(self._shown))]
            self._shown[context.request.id] = agent, notes
        return notes


def _mode(context: EventContext) -> LeaseMode:
    """Return the setting `leases` of the policy. Layers are only merged if one of them sets it, which is rare."""
    layers = context.policy.layers
    for layer in layers:
        if layer.policy.leases != "warn":
            return merge_layers(layers).leases
    return "warn"


# -- the last editors of files ---------------------------------------------------------------------------


class Editor(NamedTuple):
    """Who changed a file, and when."""

    session: str
    agent_id: str
    at: float


class RecentEdits:
    """The last editors of the files that were changed last."""

    def __init__(self) -> None:
        self._editors: dict[str, tuple[Editor, ...]] = {}
        self._notified: dict[tuple[str, str, str], float] = {}
        """When two sessions were last notified of each other, by both sessions and the file."""

    def record(self, path: str, editor: Editor) -> tuple[Editor, ...]:
        """Record a change of a file. Returns the editors of other sessions that changed it in the last ten minutes."""
        before = self._editors.pop(path, ())
        if len(self._editors) >= _MAX_FILES:
            del self._editors[next(iter(self._editors))]  # the least recently changed file
        others = tuple([other for other in before if other.session != editor.session])
        self._editors[path] = (*others[-_MAX_EDITORS + 1 :], editor)
        return tuple([other for other in others if editor.at - other.at < _EDIT_WINDOW]) if others else ()

    def must_notify(self, path: str, editor: Editor, other: Editor) -> bool:
        """Return whether two sessions must be notified of each other because of a file; if so, record the time."""
        first, second = sorted((editor.session, other.session))
        key, now = (first, second, path), max(editor.at, other.at)
        last = self._notified.get(key)
        if last is not None and now - last < _EDIT_WINDOW:
            return False
        if len(self._notified) >= _MAX_PAIRS:
            self._notified.clear()
        self._notified[key] = now
        return True
