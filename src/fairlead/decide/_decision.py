"""Decides an event: its hooks first, then the commands that its policy asks for. Runs nothing and prints nothing."""

from __future__ import annotations

from fairlead.clients import client_named
from fairlead.decide._context import WARNS_THE_USER
from fairlead.events import DEFAULT_CLIENT, NO_OPINION, HookOutput, PreToolUse
from fairlead.structs import LIGHT, Struct, field

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:  # msgspec reads the annotations
    from fairlead.policy import Notifications, Plan
if TYPE_CHECKING:
    from fairlead.decide._context import PolicyContext
    from fairlead.events import Event
    from fairlead.hooks import HookContext, HookManager
    from fairlead.policy import FileChange, Guards, Layer

GUARDED_EVENTS = frozenset({"PreToolUse", "PermissionRequest"})
"""The events that guards are registered for."""

_CHANGES_FOLDER = r"[ \t]*(?:pwd|cd(?:[ \t]+[\w./~-]+)?)(?:[ \t]*(?:&&|;)[ \t]*pwd)?[ \t]*\n?"


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The output so far, and what the caller has to do before it can answer.

    Everything that decides an event makes one: the policy, the user's own hooks, every extension of the daemon. They
    merge into one. The daemon sends it to the launcher as JSON: the names on the wire are part of the protocol.
    """

    output: HookOutput = HookOutput()
    log: tuple[str, ...] = ()
    """Lines for stderr."""
    plan: Plan | None = None
    """Commands to run, and what their results mean. A block drops them."""
    notifications: Notifications | None = field(default=None, name="notices")
    """How the user wants to be notified; `None` means not at all."""
    waits: bool = field(default=False, name="stays")
    """Whether the hook waits if nothing blocks: at `Stop` for mail, at a permission request for a person's answer."""
    undoable: bool = field(default=False, name="mailed")
    """Whether the output marks something as shown, such as mail: the daemon must know whether it was printed."""

    def merge(self, later: Decision) -> Decision:
        """Return this decision merged with a later one."""
        output = self.output.merge(later.output)
        return Decision(
            output=output,
            log=self.log + later.log,
            plan=None if output.blocked else self.plan or later.plan,
            notifications=self.notifications or later.notifications,
            waits=self.waits or later.waits,
            undoable=self.undoable or later.undoable,
        )


NO_DECISION = Decision()
"""The decision on most events. `decide` returns this object itself, so callers can test for it with `is`."""


def read_event(payload: bytes, kind: str, client: str = DEFAULT_CLIENT) -> Event:
    """Parse the payload of a client's event. `kind` is the event's name.

    Raise `PayloadError`, `UnknownEventError` for an unknown name, or `UnknownClientError` for an unknown client.
    """
    return client_named(client).parse(payload, kind)


def decide(
    event: Event,
    policy: PolicyContext,
    guards: Guards | None,
    changes: list[FileChange] | None = None,
    *,
    may_wait: bool = True,
) -> Decision:
    """Ask the guards of the policy about an event, then plan the policy's commands.

    `guards` may be `None` only for events outside of `GUARDED_EVENTS`. The files that a tool call changes are added to
    `changes`. Without `may_wait`, raise `NeedsThread` instead of waiting, for example to read a policy above the files
    of a call.
    """
    is_broken = policy.broken is not None and event.event_name == "PreToolUse"
    if event.event_name not in GUARDED_EVENTS or is_broken:
        return _decision(event, policy, NO_OPINION)
    if guards is None:
        raise TypeError(f"{event.event_name} cannot be decided without guards")
    return _decision(event, policy, guards.answer(event, may_wait=may_wait, changes=changes))


def decide_with_hooks(event: Event, policy: PolicyContext, hooks: HookManager, context: HookContext) -> Decision:
    """Fire an event at hooks, then plan the policy's commands.

    `hooks` contains the guards of the policy too: hooks may rewrite the input, and the guards check the rewritten one.
    """
    if _denies_everything(event, policy):
        return _decision(event, policy, NO_OPINION)
    result = hooks.fire_sync(event, context)
    return _decision(result.event, policy, result.output)


def _decision(event: Event, policy: PolicyContext, answer: HookOutput) -> Decision:
    output, log = answer, policy.warnings
    if log or policy.broken is not None:
        output, log = _policy_problems(event, policy)
        output = output.merge(answer)
    plan, is_silent = None, output == NO_OPINION
    if event.event_name not in GUARDED_EVENTS and policy.plans(event.event_name) and (is_silent or not output.blocked):
        plan = _plan(event, policy.acting)
    notifications = policy.notifications
    if plan is None and notifications is None and not log and is_silent:
        return NO_DECISION
    return Decision(output=output, log=log, plan=plan, notifications=notifications)


def _denies_everything(event: Event, policy: PolicyContext) -> bool:
    return policy.broken is not None and isinstance(event, PreToolUse) and not _only_changes_folder(event)


def _may_have_check(event: Event) -> bool:
    """Return whether an unreadable policy may contain a check for an event.

    Of several stops in one turn, only the first is blocked, so that no agent is kept from stopping for ever.
    """
    if event.event_name == "UserPromptSubmit":
        return getattr(event, "prompt", "").lstrip().startswith("/")
    return event.event_name == "Stop" and getattr(event, "stop_hook_active", None) is False


def _only_changes_folder(event: PreToolUse) -> bool:
    """Return whether a command is `cd` or `pwd` alone: an agent may leave a folder whose policy is broken."""
    call = client_named(event.client).tool_call(event.tool_name, event.tool_input)
    import re

    return call.kind == "shell" and call.command is not None and bool(re.fullmatch(_CHANGES_FOLDER, call.command))


def _policy_problems(event: Event, policy: PolicyContext) -> tuple[HookOutput, tuple[str, ...]]:
    """Return the output and the log about problems of the policy. An unreadable policy denies every tool call."""
    log: tuple[str, ...] = policy.warnings
    if policy.broken is not None:
        if _denies_everything(event, policy):
            return HookOutput.deny(f"The policy cannot be read, so nothing is allowed: {policy.broken}"), ()
        if _may_have_check(event):
            return HookOutput.block(f"The policy cannot be read, so its checks cannot be made: {policy.broken}"), ()
        message = policy.broken if event.event_name in WARNS_THE_USER else None
        return HookOutput(system_message=message), (policy.broken, *log)
    if policy.warnings and event.event_name in WARNS_THE_USER:
        return HookOutput(system_message="\n".join(policy.warnings)), log
    return NO_OPINION, log


def _plan(event: Event, layers: tuple[Layer, ...]) -> Plan | None:
    from fairlead.policy import plan_commands

    planned = plan_commands(event, layers)
    asks_for_something = planned.steps or planned.context or planned.infinite or planned.log
    return planned if asks_for_something else None
