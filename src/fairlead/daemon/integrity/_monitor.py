"""Follows tool calls and looks at the protected files before and after them."""

from __future__ import annotations

import os
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.daemon.integrity._calls import RunningCall, RunningCalls, describe_call
from fairlead.daemon.integrity._project import Project
from fairlead.daemon.integrity._report import Finding
from fairlead.daemon.integrity._restore import RestoreError, restore
from fairlead.policy import ProtectedFiles, merge_layers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.daemon.events._extension import EventContext
    from fairlead.daemon.integrity._file_state import Change
    from fairlead.daemon.integrity._report import Cause
    from fairlead.events import PostToolUse, PostToolUseFailure, PreToolUse, ToolEvent
    from fairlead.policy import Layer

_MAX_PROJECTS = 256
_MAIN_AGENT = "main"


class IntegrityMonitor:
    """Knows the protected files of the projects in use, and the calls that can change them."""

    def __init__(self) -> None:
        self.calls = RunningCalls()
        self._projects: dict[bytes, Project | None] = {}
        self._by_layers: dict[tuple[int, ...], tuple[Sequence[Layer], Project | None]] = {}
        """The same by the layers themselves, which are read again for a while after a policy file was changed."""
        self._lock = Lock()

    def must_look(self, context: EventContext) -> bool:
        """Return whether a call needs more than a glance at few files. Reads no file."""
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

    def project(self, context: EventContext) -> Project | None:
        """Return the protected files of the policy of an event; the first call starts to look for them."""
        layers = context.policy.layers
        ids = tuple(map(id, layers))
        known = self._by_layers.get(ids)
        if known is not None:
            return known[1]
        with self._lock:
            key = _rules_key(layers)
            if key not in self._projects:
                _make_room(self._projects)
                self._projects[key] = _new_project(layers)
            _make_room(self._by_layers)
            self._by_layers[ids] = layers, self._projects[key]  # holds the layers, so that their ids are not reused
            return self._projects[key]

    def call_begins(self, context: EventContext, event: PreToolUse, *, is_checked: bool) -> None:
        """Note that a call begins, and look at the files before it, so that it is not blamed for older changes."""
        project = self.project(context) if is_checked else None
        call = RunningCall(event, context.request, context.client, project)
        folders = project.folders if project else (call.cwd.rstrip("/") or "/",)
        others = self.calls.begin(call, folders)
        if project is None:
            return
        changes = self._look(project, context)
        call.is_checked = changes is not None
        by = tuple(one.summary for one in (*others, *self.calls.take_left(folders)))
        cause: Cause = "shared" if by else "outside"
        project.pending += [
            Finding(project.shown_path(change.path), change.what, rule, cause, by)
            for change in changes or ()
            if (rule := project.protected.rule_for(change.path))
        ]

    def file_was_written(self, event: ToolEvent, paths: Sequence[str], cwd: str) -> None:
        """Note that a file tool has ended: what it wrote, it was allowed to."""
        self.calls.end(event)
        for path in paths:
            written, real = os.path.join(cwd, path), ""
            for project in list(self._projects.values()):
                if project is not None and not project.expect_written(written):
                    real = real or os.path.realpath(written)
                    project.expect(real)

    def call_ended(
        self, context: EventContext, event: PostToolUse | PostToolUseFailure, task: str
    ) -> tuple[Project, list[Finding]] | None:
        """Look at the files after a call; return what was found, if there is something to tell."""
        call = self.calls.end(event, task)
        project = call.project if call is not None else self.project(context)
        if project is None:
            return None
        findings = project.take_pending()
        changes = self._look(project, context)
        if changes:
            agent = event.agent_type or _MAIN_AGENT
            cause, by = self._cause(project, call, describe_call(event, context.client))
            is_restored = cause == "call" and not task and project.protected.mode == "restore"
            findings += [
                _undo(project, change, rule, by) if is_restored else _left(project, change, rule, cause, by)
                for change in changes
                if (rule := project.protected.rule_for(change.path, agent))
            ]
        return (project, findings) if findings else None

    def status(self) -> list[dict[str, Any]]:
        """Return the state for people and programs."""
        return [project.status() for project in list(self._projects.values()) if project is not None]

    def _look(self, project: Project, context: EventContext) -> list[Change] | None:
        """Look at a project's files. Other policies may protect the same ones: what is found here is found once."""
        if context.unchanged is project:
            return project.looked()
        changes = project.look()
        for change in changes or ():
            self._expect(change.path, but_not=project)
        return changes

    def _expect(self, path: str, *, but_not: Project | None = None) -> None:
        for project in list(self._projects.values()):
            if project is not None and project is not but_not:
                project.expect(path)

    def _cause(self, project: Project, call: RunningCall | None, summary: str) -> tuple[Cause, tuple[str, ...]]:
        left = [one.summary for one in self.calls.take_left(project.folders) if one is not call]
        beside = call.beside if call is not None else []
        if beside or left:
            return "shared", tuple(dict.fromkeys((summary, *beside, *left)))
        if call is None or not call.is_checked:
            return "unseen", (summary,)
        return "approved" if call.is_approved else "call", (summary,)


def _new_project(layers: Sequence[Layer]) -> Project | None:
    protected = ProtectedFiles(layers) if layers else None
    if protected is None or protected.mode == "off" or not (protected.roots or protected.files):
        return None
    return Project(protected)


def _rules_key(layers: Sequence[Layer]) -> bytes:
    """Return what the protected files depend on: a change of another rule does not make them be read again."""
    rules = [(layer.file, layer.folder, layer.policy.pre_tool_use) for layer in layers]
    settings = [(*place, section.uneditable_files, section.protect_own_files) for *place, section in rules]
    return msgspec.json.encode([settings, merge_layers(layers).pre_tool_use.integrity])


def _make_room(cache: dict[Any, Any]) -> None:
    if len(cache) >= _MAX_PROJECTS:
        del cache[next(iter(cache))]


def _left(project: Project, change: Change, rule: str, cause: Cause, by: tuple[str, ...]) -> Finding:
    return Finding(project.shown_path(change.path), change.what, rule, cause, by)


def _undo(project: Project, change: Change, rule: str, by: tuple[str, ...]) -> Finding:
    finding = _left(project, change, rule, "call", by)
    if change.before is None:  # a new file may be what the user asked for; it harms nobody where it is
        return finding
    try:
        kept = restore(change)
    except RestoreError as error:
        return finding._replace(problem=str(error))
    finally:
        project.refresh(change.path)
    return finding._replace(is_restored=True, kept=kept)
