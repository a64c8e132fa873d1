"""Explains what a policy would do with an event: the rules evaluated, the commands to run. Runs nothing.

The hooks that a policy lists are not asked, so their answers are not known, with one exception: a hook file that is not
trusted denies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import client_named
from fairlead.events import HookEvent, HookOutput, PermissionRequest, PreToolUse, UserPromptSubmit, parse
from fairlead.policy import (
    CallEffects,
    Guards,
    HookFileState,
    PatternSearch,
    RuleCheck,
    call_effects,
    check_patterns,
    context_rule_applies,
    merge_layers,
    plan_commands,
    shorten,
)
from fairlead.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.events import Event
    from fairlead.policy import GuardResult, Layer, Plan, Step

_MAX_EVENT_LENGTH = 200
_UNLESS_A_HOOK = "unless a hook decides otherwise"


class Explanation(msgspec.Struct, frozen=True):
    """How the policy treats an event."""

    event: str
    """The event's name, subject and input, on one line."""
    files: tuple[str, ...]
    """The policy files."""
    verdict: str
    """`block`, `no objection`, or a permission such as `ask`."""
    warnings: tuple[str, ...] = ()
    """Which of the files were deleted and still apply, and what ends that."""
    condition: str | None = None
    """The condition of the verdict, such as "if the command passes"; `None` if it has none."""
    otherwise: str | None = None
    """What happens if the condition does not hold; `None` if there is nothing to say."""
    told: str | None = None
    """The reason that the agent reads, or the user if the verdict is `ask`; `None` if there is none."""
    exit_code: int = 0
    """The exit code of the hook that the client runs."""
    message: str | None = None
    """A message to the user; `None` if there is none."""
    context: str | None = None
    """Text that is added to the model's context; `None` if there is none."""
    afterwards: str | None = None
    """What the integrity check does after the tool has run; `None` if it does nothing."""
    looked: tuple[RuleCheck, ...] = ()
    """The rules that were evaluated, in order."""
    commands: tuple[str, ...] = ()
    """The commands that would run, each with when it runs and what its failure does."""
    effects: CallEffects | None = None
    """What a tool call does as the guards understand it; `None` for other events."""
    hooks: tuple[HookFileState, ...] = ()
    """The hook files that the policy lists. None was asked."""
    denied_by: str | None = None
    """The hook file that denies the event, because its current content is not trusted; `None` if none does."""


def event_of(payload: Mapping[str, Any], session_id: str, folder: str) -> Event:
    """Parse a payload, and return its event. Raise `FairleadError` if it is not valid.

    A missing event name becomes PreToolUse, a missing session `session_id`, and a missing working folder `folder`.
    """
    whole = {"hook_event_name": "PreToolUse", "session_id": session_id, "cwd": folder, **payload}
    name = whole["hook_event_name"]
    if isinstance(name, str) and name.strip():
        whole["hook_event_name"] = HookEvent.parse(name).value
    return parse(whole)


def explain(
    event: Event, layers: tuple[Layer, ...], hooks: tuple[HookFileState, ...] = (), warnings: tuple[str, ...] = ()
) -> Explanation:
    """Evaluate an event under a policy, whose hook files are `hooks`. Run no command and ask no hook.

    `warnings`, about deleted policy files, become part of the result.
    """
    planned = plan_commands(event, layers)
    output, checks = _evaluate(event, layers, planned)
    refused = [hook for hook in hooks if hook.problem] if event.can_block and not output.blocked else []
    if refused:  # as `decide.ask_user_hooks` does
        output = output.merge(HookOutput.deny("\n".join(hook.problem for hook in refused)))
        planned = msgspec.structs.replace(planned, steps=(), context=None)
    condition, otherwise = _conditions(planned) if not output.permission else (None, None)
    if not output.blocked and any(hook.state == "trusted" for hook in hooks):
        condition = f"{condition}, and {_UNLESS_A_HOOK}" if condition else _UNLESS_A_HOOK
    return Explanation(
        event=_describe(event),
        files=tuple(layer.file for layer in layers),
        verdict="block" if output.blocked else output.permission or "no objection",
        warnings=warnings,
        condition=condition,
        otherwise=otherwise,
        told=output.reason,
        exit_code=client_named(event.client).render(event, output).exit_code,
        message=output.system_message,
        context=planned.context,
        afterwards=None if output.blocked else _afterwards(event, layers),
        looked=checks,
        commands=tuple(_command(step, planned) for step in planned.steps),
        effects=call_effects(event) if isinstance(event, PreToolUse) else None,
        hooks=hooks,
        denied_by=refused[0].file if refused else None,
    )


def _describe(event: Event) -> str:
    """Return one line with the event's name, its subject, and its input or prompt."""
    fields = getattr(event, "tool_input", {})
    detail = client_named(event.client).summary_of(fields) or getattr(event, "prompt", None) or ""
    return one_line(f"{event.event_name} {event.subject} {detail}", _MAX_EVENT_LENGTH)


def _afterwards(event: Event, layers: tuple[Layer, ...]) -> str | None:
    """Return what the integrity check does after a call that may change files; `None` if it does nothing."""
    settings = merge_layers(layers).pre_tool_use
    is_checked = isinstance(event, PreToolUse) and client_named(event.client).may_change_files(event.tool_name)
    if not is_checked or not settings.uneditable_files or settings.integrity == "off":
        return None
    does = "reports them, and puts them back" if settings.integrity == "restore" else "reports them"
    return f"if uneditableFiles have changed, the daemon {does} (preToolUse.integrity: {settings.integrity})"


# -- rules ---------------------------------------------------------------------------------------------


def _evaluate(event: Event, layers: tuple[Layer, ...], planned: Plan) -> tuple[HookOutput, tuple[RuleCheck, ...]]:
    if isinstance(event, PreToolUse):
        result = Guards(layers).check(event)
        return result.output, (*_with_subjects(result), *_check_unparsable(result, layers))
    if isinstance(event, PermissionRequest):
        result = Guards(layers).check_permission(event)
        return result.output, result.checks
    output = HookOutput.allow() if planned.infinite is None else HookOutput.block(planned.infinite)
    if isinstance(event, UserPromptSubmit):
        return output, tuple(_check_prompt(event, layers))
    return output, tuple(_check_patterns(event, layers))


def _with_subjects(result: GuardResult) -> Iterator[RuleCheck]:
    """Yield the checks of a result. If a check did not match, the text that was compared is added to its reason."""
    for index, check in enumerate(result.checks):
        subject = next((text for begin, text in reversed(result.subjects) if begin <= index), "")
        is_named = subject and not check.matched
        yield msgspec.structs.replace(check, why=f"{check.why}: {shorten(subject)}") if is_named else check


def _check_unparsable(result: GuardResult, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    """Yield a check for the setting `bash.unparsable`, if the command could not be parsed."""
    setting = merge_layers(layers).pre_tool_use.bash.unparsable
    if result.unknowns:
        file = next((layer.file for layer in layers if _sets_unparsable(layer)), "")
        yield RuleCheck("preToolUse.bash.unparsable", setting, file, matched=True, why="; ".join(result.unknowns))


def _sets_unparsable(layer: Layer) -> bool:
    bash = ((layer.given or {}).get("preToolUse") or {}).get("bash") or {}
    return "unparsable" in bash


def _check_prompt(event: UserPromptSubmit, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    for layer in layers:
        for index, rule in enumerate(layer.policy.user_prompt_submit.context_rules):
            matched = context_rule_applies(rule, PatternSearch(event.prompt))
            why = "found in the prompt" if matched else "not found in the prompt" if rule.enabled else "not enabled"
            yield RuleCheck(
                f"userPromptSubmit.contextRules[{index}]", rule.pattern, layer.file, matched=matched, why=why
            )


def _check_patterns(event: Event, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    for check in check_patterns(event, layers):
        names = " and ".join(map(repr, check.subjects)) or "no name"
        why = "matches everything" if check.pattern == "*" else f"compared with {names}"
        yield RuleCheck(f"{check.section}.commands", check.pattern, check.file, matched=check.matched, why=why)


# -- commands ------------------------------------------------------------------------------------------


def _command(step: Step, planned: Plan) -> str:
    """Return one line with a command, when it runs, and what its failure does."""
    first, *more = step.run.strip().splitlines() or [""]
    when = f"only if a changed file matches {' or '.join(step.when)}" if step.when else ""
    limit = f"timeout {step.timeout:g} s" if step.timeout else ""
    details = "; ".join(filter(None, (when, limit, _on_failure(step, planned))))
    pattern = f"{step.pattern}: " if step.pattern else ""
    return f"{pattern}{first}{' …' if more else ''}{f'  ({details})' if details else ''}"


def _on_failure(step: Step, planned: Plan) -> str:
    if planned.on_failure == "never" or step.observes:
        return "a failure does not block"
    if not step.message:
        return ""
    return f"message on {'exit code 2' if planned.on_failure == 'block-on-2' else 'failure'}: {step.message}"


def _conditions(planned: Plan) -> tuple[str | None, str | None]:
    """Return what the verdict depends on, and what happens otherwise. Either is `None` if there is nothing to say."""
    deciding = [step for step in planned.steps if not step.observes]
    if not deciding or planned.on_failure == "never":
        return None, None
    several = len(deciding) > 1
    if planned.on_failure == "block-on-2":
        return f"unless {'a' if several else 'the'} command exits with code 2, which blocks", None
    condition = "if all commands pass" if several else "if the command passes"
    if planned.event_name != "Stop":
        return condition, "it is blocked"
    limit = f", at most {planned.max_blocks} times in a row (stop.maxBlocks)" if planned.max_blocks else ""
    return condition, f"the agent keeps going{limit}, and is told which command failed"
