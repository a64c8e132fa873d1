"""Asks the hooks that a policy lists about an event, after its guards. The same rules with a daemon and without one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from fairlead.decide._decision import GUARDED_EVENTS, NO_DECISION, Decision
from fairlead.events import NO_OPINION, HookOutput
from fairlead.journal import DOCTOR_SESSION
from fairlead.policy import find_hook_groups

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fairlead.decide._context import PolicyContext
    from fairlead.events import Event
    from fairlead.hooks.user_hooks import EventReply, EventRequest
    from fairlead.journal import Verdict
    from fairlead.policy import FileChange, Guards, HookFile, HookGroup

    AskHooks = Callable[[HookGroup, EventRequest], EventReply]
    """Asks a worker with the hooks of a group. Raises `HookWorkerError` if it gives no answer."""


class HookFailed(msgspec.Struct, frozen=True):
    """A failure of a hook that blocks nothing: at an event that cannot be blocked, or of a hook that observes."""

    hook: str
    """The hook, or the files whose process has failed."""
    why: str


class HookCause(msgspec.Struct, frozen=True, kw_only=True):
    """The hook that has decided an event, and the hook that has failed, for the journal."""

    decided_by: str = ""
    """The hook, or the file, whose answer counts; "" if no hook has decided."""
    failure: HookFailed | None = None
    """The first failure that blocks nothing."""

    def recorded(self, event: Event, verdict: Verdict, reason: str) -> tuple[Verdict, str, str]:
        """Return the verdict, the reason and the hook to record in the journal.

        At an event that cannot be blocked, a failure makes the verdict `failed`. Elsewhere a failure is only recorded
        if there is neither a reason nor a hook.
        """
        failure, hook = self.failure, self.decided_by
        if failure is None:
            return verdict, reason, hook
        if verdict in {"none", "said"} and not (event.can_block or event.keeps_going):
            return "failed", failure.why, failure.hook
        return (verdict, reason, hook) if reason or hook else (verdict, failure.why, failure.hook)


class HookCall(msgspec.Struct, frozen=True, kw_only=True):
    """An event to ask the hooks about, with its payload, and the caller's folder and environment."""

    event: Event
    payload: bytes
    client: str
    cwd: str
    env: Mapping[str, str]
    """The part of the caller's environment that hooks see."""
    is_blocked: bool = False
    """Whether the guards have blocked it. If so, only hooks that observe are called."""


def ask_user_hooks(
    call: HookCall,
    policy: PolicyContext,
    guards: Guards | None,
    ask: AskHooks,
    changes: list[FileChange] | None = None,
) -> tuple[Decision, HookCause]:
    """Ask the hooks of each policy file, the nearest file first.

    If they rewrite the input, `guards` check it, and `changes` is filled anew with the files that the call changes.

    A hook file that is not trusted, and hooks that give no answer, deny at an event that can be blocked. The events of
    `fairlead doctor`, which must have no side effects, reach no hook.
    """
    groups, refused = find_hook_groups(policy.layers)
    state = _State(call)
    if refused:
        state.refuse(refused)
    for group in groups if call.event.session_id != DOCTOR_SESSION else ():
        state.ask(group, ask)
    output = state.output
    if state.tool_input is not None and guards is not None and call.event.event_name in GUARDED_EVENTS:
        rewritten = msgspec.structs.replace(call.event, tool_input=state.tool_input)
        if changes is not None:
            changes.clear()
        checked = guards.answer(rewritten, changes=changes)
        if checked.blocked:
            state.decided_by = ""  # it was the guards
        output = output.merge(checked)
    cause = HookCause(decided_by=state.decided_by, failure=state.failure)
    if output == NO_OPINION and not state.log:
        return NO_DECISION, cause
    return Decision(output=output, log=tuple(state.log)), cause


class _State:
    """What the hooks have answered so far."""

    def __init__(self, call: HookCall) -> None:
        self._call = call
        self._can_block = call.event.can_block
        self.output = HookOutput()
        self.log: list[str] = []
        self.decided_by = ""
        self.failure: HookFailed | None = None
        self.tool_input: dict[str, object] | None = None

    def refuse(self, files: tuple[HookFile, ...]) -> None:
        """Deny, because hook files cannot be used; does nothing if the guards have blocked the event.

        An event that cannot be blocked shows the user a message instead, once in a session.
        """
        text = "\n".join(file.problem for file in files)
        if self._call.is_blocked:
            return
        if self._can_block:
            self._deny(text, _names([file.file for file in files]))
        elif _is_new_message(self._call.event.session_id, text):
            self.output = self.output.with_system_message(text)

    def ask(self, group: HookGroup, ask: AskHooks) -> None:
        """Ask a group of hooks, and merge its answer.

        If it gives no answer, an event that can still be blocked is denied; otherwise the failure is logged.
        """
        from fairlead.hooks.user_hooks import EventRequest, HookWorkerError

        call = self._call
        request = EventRequest(
            call.event.event_name,
            call.client,
            call.payload,
            call.cwd,
            dict(call.env),
            self.tool_input,
            call.is_blocked or (self.output.blocked and (self._can_block or call.event.keeps_going)),
        )
        try:
            answer = ask(group, request)
        except HookWorkerError as error:
            names = _names([error.file] if error.file else [file.file for file in group.files])
            text = f"the hooks of {names} failed: {error}"
            if self._can_block and not request.observe_only:
                self._deny(f"{text}; so this is denied", names)
            else:
                self.log.append(text)
                self.failure = self.failure or HookFailed(names, text)
            return
        self.log += answer.log
        if answer.failed:
            self.failure = self.failure or HookFailed(answer.failed, answer.failure)
        self.output = self.output.merge(answer.output)
        self.decided_by = answer.decided_by or self.decided_by
        if answer.output.updated_input is not None and hasattr(call.event, "tool_input"):
            self.tool_input = answer.output.updated_input

    def _deny(self, text: str, names: str) -> None:
        self.output = self.output.merge(HookOutput.deny(text))
        self.decided_by = names


def _names(files: Iterable[str]) -> str:
    return ", ".join(os.path.basename(file) for file in files)


def _is_new_message(session: str, text: str) -> bool:
    """Return whether the user has not seen a message in this session yet, and record it as shown."""
    from hashlib import sha256

    from fairlead.policy import mark_notified, was_notified

    digest = sha256(text.encode(errors="replace")).hexdigest()
    if was_notified(session, digest):
        return False
    mark_notified(session, [digest])
    return True
