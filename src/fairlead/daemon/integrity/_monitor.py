"""Follows tool calls, and checks the protected files before and after them."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon.integrity._calls import RunningCall, RunningCalls, describe_call
from fairlead.daemon.integrity._project import CheckedProject
from fairlead.daemon.integrity._report import ReportedChange
from fairlead.daemon.integrity._restore import RestoreError, restore
from fairlead.daemon.integrity._written_paths import WrittenPaths
from fairlead.policy import ProtectedFiles, merge_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.integrity._file_state import DetectedChange
    from fairlead.daemon.integrity._report import Cause
    from fairlead.events import PostToolUse, PostToolUseFailure, PreToolUse, ToolEvent
    from fairlead.policy import Layer

_MAX_PROJECTS = 256
_MAIN_AGENT = "main"


class IntegrityMonitor:
    """Knows the protected files of the projects in use, and the calls that can change them."""

    def __init__(self) -> None:
        self.calls = RunningCalls()
        self._written = WrittenPaths()
        self._projects: dict[bytes, CheckedProject | None] = {}
        self._by_layers: dict[tuple[int, ...], tuple[Sequence[Layer], CheckedProject | None]] = {}
        """Identities of layers → the layers and their project. After a policy has changed, the same rules may be loaded
        as new objects for a while."""
        self._lock = Lock()

    def needs_full_check(self, context: EventContext) -> bool:
        """Return whether a call needs more than a quick check of few files. Reads no file.

        If it does not, `context.unchanged` is the project whose files are unchanged; `None` if nothing is checked.
        """
        layers = context.policy.layers
        known = self._by_layers.get(tuple(map(id, layers)))
        if known is None:
            return bool(layers) and merge_layers(layers).pre_tool_use.integrity != "off"
        project = known[1]
        if project is None:
            return False
        if not project.is_unchanged():
            return True
        context.unchanged = project
        return False

    def project(self, context: EventContext) -> CheckedProject | None:
        """Return the protected files of the policy of an event; `None` if there are none, or none are to be checked.

        The first call starts the search for them.
        """
        layers = context.policy.layers
        ids = tuple(map(id, layers))
        known = self._by_layers.get(ids)
        if known is not None:
            return known[1]
        with self._lock:
            key = _rules_key(layers)
            if key not in self._projects:
                _make_room(self._projects)
                self._projects[key] = _new_project(layers, self._written)
            _make_room(self._by_layers)
            self._by_layers[ids] = layers, self._projects[key]  # holds the layers, so that their ids are not reused
            return self._projects[key]

    def begin_call(self, context: EventContext, event: PreToolUse) -> None:
        """Check the files before a call, so that the call is not blamed for older changes, and note that it begins."""
        request, project = context.request, self.project(context)
        call = RunningCall(event, request.id, context.cwd, request.caller, context.client)
        others = self.calls.begin(call, project)
        if project is None:
            return
        changes = self._find_changes(project, context)
        call.is_checked = changes is not None
        by = tuple(other.summary for other in (*others, *self.calls.take_unfinished(project.folders)))
        cause: Cause = "shared" if by else "outside"
        project.pending += [
            ReportedChange(project.shown_path(change.path), change.what, rule, cause, by)
            for change in changes or ()
            if (rule := project.protected.rule_for(change.path))
        ]

    def note_written_files(self, event: ToolEvent, paths: Sequence[str], cwd: str) -> None:
        """Note that a file tool has ended, and what it wrote: these changes were allowed.

        `paths` may be relative to `cwd`.
        """
        self.calls.end(event)
        for path in paths:
            dropped = self._written.add(os.path.join(cwd, path))
            if dropped is not None:
                self._expect_dropped(*dropped)

    def end_call(
        self, context: EventContext, event: PostToolUse | PostToolUseFailure, task: str
    ) -> tuple[CheckedProject, list[ReportedChange]] | None:
        """Check the files after a call. Return the project and the findings; `None` without findings.

        The findings include those that are pending from earlier calls. `task` is the id of the background task that the
        call became, or "". Changes are undone if the policy says so and this call is certain to be the cause.
        """
        call = self.calls.end(event, task)
        project = call.project if call is not None else self.project(context)
        if project is None:
            return None
        findings = project.take_pending()
        changes = self._find_changes(project, context)
        if changes:
            agent = event.agent_type or _MAIN_AGENT
            cause, by = self._cause(project, call, describe_call(event, context.client))
            is_restored = cause == "call" and not task and project.protected.mode == "restore"
            findings += [
                _restored(project, change, rule, by) if is_restored else _reported(project, change, rule, cause, by)
                for change in changes
                if (rule := project.protected.rule_for(change.path, agent))
            ]
        return (project, findings) if findings else None

    def status(self) -> list[dict[str, Any]]:
        """Return the state of each project, for people and programs."""
        return [project.status() for project in list(self._projects.values()) if project is not None]

    def _find_changes(self, project: CheckedProject, context: EventContext) -> list[DetectedChange] | None:
        """Return the changes of a project's files; `None` if its first scan has not ended in time.

        Other projects with the same files do not report these changes again.
        """
        if context.unchanged is project:
            return project.note_unchanged()
        changes = project.find_changes()
        for change in changes or ():
            self._expect(change.path, except_project=project)
        return changes

    def _expect(self, path: str, *, except_project: CheckedProject) -> None:
        """Make other projects treat a change as known."""
        for project in list(self._projects.values()):
            if project is not None and project is not except_project:
                project.expect(path)

    def _expect_dropped(self, path: str, number: int) -> None:
        """Make the projects that have not seen the written path of this number treat its change as known."""
        unseen = [other for other in list(self._projects.values()) if other is not None and other.seen < number]
        real = os.path.realpath(path) if unseen else path
        for project in unseen:
            project.expect(real)

    def _cause(self, project: CheckedProject, call: RunningCall | None, summary: str) -> tuple[Cause, tuple[str, ...]]:
        unfinished = [other.summary for other in self.calls.take_unfinished(project.folders) if other is not call]
        concurrent = [str(other) for other in call.concurrent] if call is not None else []
        if concurrent or unfinished:
            return "shared", tuple(dict.fromkeys((summary, *concurrent, *unfinished)))
        if call is None or not call.is_checked:
            return "unseen", (summary,)
        return "approved" if call.is_approved else "call", (summary,)


def _new_project(layers: Sequence[Layer], written: WrittenPaths) -> CheckedProject | None:
    protected = ProtectedFiles(layers) if layers else None
    if protected is None or protected.mode == "off" or not (protected.roots or protected.files):
        return None
    return CheckedProject(protected, written)


def _rules_key(layers: Sequence[Layer]) -> bytes:
    """Return a key of the rules about protected files. If only other rules change, the files are not read again."""
    rules = [(layer.file, layer.folder, layer.policy.pre_tool_use) for layer in layers]
    settings = [(*place, section.uneditable_files, section.protect_own_files) for *place, section in rules]
    return msgspec.json.encode([settings, merge_layers(layers).pre_tool_use.integrity])


def _make_room(cache: dict[Any, Any]) -> None:
    if len(cache) >= _MAX_PROJECTS:
        del cache[next(iter(cache))]


def _reported(
    project: CheckedProject, change: DetectedChange, rule: str, cause: Cause, by: tuple[str, ...]
) -> ReportedChange:
    return ReportedChange(project.shown_path(change.path), change.what, rule, cause, by)


def _restored(project: CheckedProject, change: DetectedChange, rule: str, by: tuple[str, ...]) -> ReportedChange:
    finding = _reported(project, change, rule, "call", by)
    if change.before is None:  # a new file may be what the user asked for, and does no harm
        return finding
    try:
        kept = restore(change)
    except RestoreError as error:
        return finding._replace(problem=str(error))
    finally:
        project.refresh(change.path)
    return finding._replace(is_restored=True, kept=kept)
