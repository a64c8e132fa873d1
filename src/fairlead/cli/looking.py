"""What would happen to an event under a policy: rules that were looked at, commands that would run. Runs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import client_named
from fairlead.events import HookEvent, HookOutput, PermissionRequest, PreToolUse, UserPromptSubmit, parse
from fairlead.policy import (
    Guards,
    RuleCheck,
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
    from fairlead.policy import Layer, Plan, Step, Verdict

_SHOWN = 200
_SHOWN_SUBJECT = 40
_UNPARSABLE = "(preToolUse.bash.unparsable): "
"""Stands in the reason, before what could not be understood."""


class Explanation(msgspec.Struct, frozen=True):
    """All there is to say about an event under the policy."""

    event: str
    files: tuple[str, ...]
    verdict: str
    condition: str | None = None
    """On what the verdict hangs."""
    otherwise: str | None = None
    """What happens if that does not come true."""
    told: str | None = None
    """To the agent; where the verdict is `ask`, to the person who is asked."""
    exit_code: int = 0
    message: str | None = None
    """For the person."""
    context: str | None = None
    """For the model."""
    looked: tuple[RuleCheck, ...] = ()
    commands: tuple[str, ...] = ()


def event_of(payload: Mapping[str, Any], session_id: str, folder: str) -> Event:
    """Make an event of a payload; of what it leaves out, fill in the event's name, the session and the folder."""
    whole = {"hook_event_name": "PreToolUse", "session_id": session_id, "cwd": folder, **payload}
    name = whole["hook_event_name"]
    if isinstance(name, str) and name.strip():
        whole["hook_event_name"] = HookEvent.parse(name).value
    return parse(whole)


def explain(event: Event, layers: tuple[Layer, ...]) -> Explanation:
    """RuleCheck at an event under a policy, but run no command."""
    planned = plan_commands(event, layers)
    output, looked = _judged(event, layers, planned)
    condition, otherwise = _conditions(planned) if not output.permission else (None, None)
    return Explanation(
        event=_named(event),
        files=tuple(layer.file for layer in layers),
        verdict="block" if output.blocked else output.permission or "no objection",
        condition=condition,
        otherwise=otherwise,
        told=output.reason,
        exit_code=client_named(event.client).render(event, output).exit_code,
        message=output.system_message,
        context=planned.context,
        looked=looked,
        commands=tuple(_command(step, planned) for step in planned.steps),
    )


def _named(event: Event) -> str:
    """Name the event and what it is about, on one line."""
    about = getattr(event, "tool_input", {})
    detail = client_named(event.client).summary_of(about) or getattr(event, "prompt", None) or ""
    return one_line(f"{event.event_name} {event.subject} {detail}", _SHOWN)


# -- rules ---------------------------------------------------------------------------------------------


def _judged(event: Event, layers: tuple[Layer, ...], planned: Plan) -> tuple[HookOutput, tuple[RuleCheck, ...]]:
    if isinstance(event, PreToolUse):
        verdict = Guards(layers).check(event)
        return verdict.output, (*_with_subjects(verdict), *_doubts(verdict.output, layers))
    if isinstance(event, PermissionRequest):
        verdict = Guards(layers).check_permission(event)
        return verdict.output, verdict.checks
    output = HookOutput.allow() if planned.infinite is None else HookOutput.block(planned.infinite)
    looks = _at_prompt(event, layers) if isinstance(event, UserPromptSubmit) else _at_patterns(event, layers)
    return output, tuple(looks)


def _with_subjects(verdict: Verdict) -> Iterator[RuleCheck]:
    """Name in each look that missed what was looked at."""
    for at, look in enumerate(verdict.checks):
        subject = next((text for begin, text in reversed(verdict.subjects) if begin <= at), "")
        named = subject and not look.matched
        yield msgspec.structs.replace(look, why=f"{look.why}: {shorten(subject)}") if named else look


def _doubts(output: HookOutput, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    """Show the setting by which a command that cannot be understood is asked about, or denied."""
    setting, doubts = merge_layers(layers).pre_tool_use.bash.unparsable, (output.reason or "").partition(_UNPARSABLE)[2]
    if doubts and output.permission == setting:
        file = next((layer.file for layer in layers if _sets_unparsable(layer)), "")
        why = doubts.partition(". Write ")[0].rstrip(".")
        yield RuleCheck("preToolUse.bash.unparsable", setting, file, matched=True, why=why)


def _sets_unparsable(layer: Layer) -> bool:
    bash = ((layer.given or {}).get("preToolUse") or {}).get("bash") or {}
    return "unparsable" in bash


def _at_prompt(event: UserPromptSubmit, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    for layer in layers:
        for at, rule in enumerate(layer.policy.user_prompt_submit.context_rules):
            matched = context_rule_applies(rule, event.prompt)
            why = "found in the prompt" if matched else "not found in the prompt" if rule.enabled else "not enabled"
            yield RuleCheck(f"userPromptSubmit.contextRules[{at}]", rule.pattern, layer.file, matched=matched, why=why)


def _at_patterns(event: Event, layers: tuple[Layer, ...]) -> Iterator[RuleCheck]:
    for found in check_patterns(event, layers):
        names = " and ".join(map(repr, found.subjects)) or "no name"
        why = "matches everything" if found.pattern == "*" else f"held against {names}"
        yield RuleCheck(f"{found.section}.commands", found.pattern, found.file, matched=found.matched, why=why)


# -- commands ------------------------------------------------------------------------------------------


def _command(step: Step, planned: Plan) -> str:
    """Name a command, when it is run, and what becomes of its failure."""
    first, *more = step.run.strip().splitlines() or [""]
    when = f"only if a file has changed that matches {' or '.join(step.when)}" if step.when else ""
    limit = f"{step.timeout:g} s at most" if step.timeout else ""
    details = "; ".join(filter(None, (when, limit, _on_failure(step, planned))))
    pattern = f"{step.pattern}: " if step.pattern else ""
    return f"{pattern}{first}{' …' if more else ''}{f'  ({details})' if details else ''}"


def _on_failure(step: Step, planned: Plan) -> str:
    if planned.on_failure == "never" or step.observes:
        return "a failure blocks nothing"
    if not step.message:
        return ""
    return f"{'exit code 2' if planned.on_failure == 'block-on-2' else 'a failure'} is told as: {step.message}"


def _conditions(planned: Plan) -> tuple[str | None, str | None]:
    """Say on what the verdict hangs, and what happens otherwise."""
    deciding = [step for step in planned.steps if not step.observes]
    if not deciding or planned.on_failure == "never":
        return None, None
    several = len(deciding) > 1
    if planned.on_failure == "block-on-2":
        return f"unless {'a' if several else 'the'} command ends with exit code 2, which blocks", None
    condition = "if all commands pass" if several else "if the command passes"
    if planned.event_name != "Stop":
        return condition, "it is blocked"
    limit = f", {planned.max_blocks} times in a row at most (stop.maxBlocks)" if planned.max_blocks else ""
    return condition, f"the agent is kept going{limit}, and told which command failed"
