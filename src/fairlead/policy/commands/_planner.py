"""Plans the commands of an event, those of the nearest layer first.

Runs nothing. Reads no files, except for a prompt the files that matching context rules name with `@`.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from fairlead.events import ConfigChange, Event, MessageDisplay, Stop, SubagentStart, SubagentStop, UserPromptSubmit
from fairlead.policy.commands import _prompts
from fairlead.policy.commands._environment import event_variables
from fairlead.policy.commands._pattern_search import PatternSearch
from fairlead.policy.commands._plan import Plan, Step
from fairlead.policy.config._merge import merge_layers
from fairlead.policy.config._types import Command, ListSection, PatternSection, Policy
from fairlead.structs import LIGHT, Struct, replace

TYPE_CHECKING = False
if TYPE_CHECKING or not LIGHT:
    from typing import Any, TypeAlias  # msgspec reads the annotations
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.policy.commands._plan import OnFailure, Shown
    from fairlead.policy.config._types import Layer

WORKTREE_TIMEOUT = 60.0
DEFAULT_INFINITE_MESSAGE = "continue working on the task"


class _EventKind(Struct, frozen=True):
    """How an event is planned: its policy section, the field that patterns match, and the effect of a failure."""

    section: str
    subject: str | None = None
    on_failure: OnFailure = "never"
    shown: Shown = "person"
    always: bool = False
    """Whether it is planned even without a command, as a plan may also have a log line, a context or a message."""


_KINDS: dict[str, _EventKind] = {
    "Stop": _EventKind("stop", None, "block-first", "log", always=True),
    "StopFailure": _EventKind("stop_failure"),
    "SubagentStart": _EventKind("subagent_start", "agent_type", "never", "model", always=True),
    "SubagentStop": _EventKind("subagent_stop", "agent_type", always=True),
    "PostToolUse": _EventKind("post_tool_use", "tool_name", "never", "model"),
    "PostToolUseFailure": _EventKind("post_tool_use_failure", "tool_name", "never", "model"),
    "PostToolBatch": _EventKind("post_tool_batch", None, "never", "model"),
    "PermissionDenied": _EventKind("permission_denied", "tool_name"),
    "UserPromptExpansion": _EventKind("user_prompt_expansion", "command_name", "never", "model"),
    "SessionStart": _EventKind("session_start", "source", "never", "model"),
    "SessionEnd": _EventKind("session_end", "reason", "never", "log"),
    "Setup": _EventKind("setup", "trigger", "block-on-2", "model"),
    "Notification": _EventKind("notification", "notification_type"),
    "TeammateIdle": _EventKind("teammate_idle", "teammate_name", "block-on-2"),
    "TaskCreated": _EventKind("task_created", "task_subject"),
    "TaskCompleted": _EventKind("task_completed", "task_subject", "block-on-2"),
    "PreCompact": _EventKind("pre_compact", "trigger", "block-on-2", "log"),
    "PostCompact": _EventKind("post_compact", "trigger"),
    "ConfigChange": _EventKind("config_change", "source", "block-on-2"),
    "CwdChanged": _EventKind("cwd_changed", "new_cwd"),
    "FileChanged": _EventKind("file_changed", "file_path"),
    "InstructionsLoaded": _EventKind("instructions_loaded", "memory_type"),
    "Elicitation": _EventKind("elicitation", "mcp_server_name"),
    "ElicitationResult": _EventKind("elicitation_result", "mcp_server_name"),
    "WorktreeRemove": _EventKind("worktree_remove", "worktree_path", "block-on-2"),
    "MessageDisplay": _EventKind("message_display", None, "never", "log"),
}
"""Event → how it is planned. UserPromptSubmit and WorktreeCreate have special sections."""

_Commands: TypeAlias = "list[tuple[Layer, str | None, Command]]"


def planned_events(layers: Iterable[Layer]) -> frozenset[str]:
    """Return the names of the events that these files may have commands or texts for."""
    return frozenset(name for layer in layers for name in _events_of(layer.policy))


def _events_of(policy: Policy) -> Iterator[str]:
    yield from ("SubagentStart", "SubagentStop")  # they are logged in any case
    yield from (name for name, kind in _KINDS.items() if _has_commands(policy, kind))
    prompt = policy.user_prompt_submit
    if policy.stop.infinite:
        yield "Stop"
    if prompt.commands or prompt.context_rules or prompt.slash_commands is not None:
        yield "UserPromptSubmit"
    if policy.worktree_create.command:
        yield "WorktreeCreate"


def plan_commands(event: Event, layers: tuple[Layer, ...], *, read: _prompts.ReadFile = _prompts.read_inside) -> Plan:
    """Return the plan of an event. Without a command that matches, it has no steps. `read` reads files for a prompt.

    The plan contains only the commands and texts of trusted files, each of them once.
    """
    layers = tuple([layer for layer in layers if layer.trusted and layer.runs_commands])
    if isinstance(event, UserPromptSubmit):
        return _for_prompt(event, layers, read)
    if event.event_name == "WorktreeCreate":
        return _for_worktree(event, layers)
    kind = _KINDS.get(event.event_name)
    if kind is None or not (kind.always or any(_has_commands(layer.policy, kind) for layer in layers)):
        return Plan(event_name=event.event_name, session_id=event.session_id)
    commands = _matching_commands(event, layers, kind)
    plan = _plan(
        event,
        tuple(_step(layer, pattern, command) for layer, pattern, command in commands),
        on_failure="never" if _is_managed(event) else kind.on_failure,
        shown=kind.shown,
        log=_log(event, layers, kind, commands),
    )
    fields = _stop_fields(event, layers) | _subagent_start_fields(event, layers)
    return replace(plan, **fields) if fields else plan


def _plan(
    event: Event,
    steps: tuple[Step, ...],
    *,
    on_failure: OnFailure,
    shown: Shown = "log",
    log: tuple[str, ...],
    more_env: dict[str, str] | None = None,
) -> Plan:
    """Return a plan. If it has steps, it also has the variables of the event and `more_env`."""
    env = event_variables(event, **(more_env or {})) if steps else {}
    return Plan(
        event_name=event.event_name,
        session_id=event.session_id,
        steps=steps,
        env=env,
        on_failure=on_failure,
        shown=shown,
        log=log,
    )


def matching_patterns(commands: Iterable[str], subjects: tuple[str, ...]) -> Iterator[str]:
    """Yield the patterns that match one of the subjects: `*` first, then the others in the order of the file.

    A pattern matches the whole subject: `*` (any text, `/` too), `?`, `[...]`, `[!...]`. `*` alone matches even
    without a subject.
    """
    patterns = list(commands)
    if "*" in patterns:
        yield "*"
    for pattern in patterns:
        if pattern != "*" and any(fnmatchcase(subject, pattern) for subject in subjects):
            yield pattern


class PatternCheck(Struct, frozen=True):
    """A pattern, and whether it matched the subjects of an event."""

    file: str
    section: str
    pattern: str
    matched: bool
    subjects: tuple[str, ...]


def check_patterns(event: Event, layers: tuple[Layer, ...]) -> Iterator[PatternCheck]:
    """Yield a check of each pattern in an event's section, by file; none for an event without patterns."""
    kind = _KINDS.get(event.event_name)
    if kind is None:
        return
    name, subjects = event.event_name[:1].lower() + event.event_name[1:], _subjects(event, kind)
    for layer in layers:
        section = getattr(layer.policy, kind.section)
        patterns = section.commands if isinstance(section, PatternSection) else {}
        matched = set(matching_patterns(patterns, subjects))
        for pattern in patterns:
            yield PatternCheck(layer.file, name, pattern, pattern in matched, subjects)


# -- matching commands ---------------------------------------------------------------------------------


def _matching_commands(event: Event, layers: tuple[Layer, ...], kind: _EventKind) -> _Commands:
    return [
        (layer, pattern, command)
        for layer in layers
        for pattern, command in _section_commands(getattr(layer.policy, kind.section), event, kind, layer.policy)
    ]


def _has_commands(policy: Policy, kind: _EventKind) -> bool:
    return bool(getattr(policy, kind.section).commands)


def _section_commands(
    section: Any, event: Event, kind: _EventKind, policy: Policy
) -> Iterator[tuple[str | None, Command]]:
    if isinstance(section, ListSection):
        if not (isinstance(event, MessageDisplay) and _is_partial(event, policy)):
            yield from ((None, command) for command in section.commands)
        return
    if isinstance(section, PatternSection):
        yield from _by_pattern(section.commands, _subjects(event, kind))
    if isinstance(event, SubagentStart):
        yield from _by_pattern(policy.skill_start.commands, (event.agent_type,))


def _by_pattern(commands: dict[str, list[Command]], subjects: tuple[str, ...]) -> Iterator[tuple[str, Command]]:
    return ((pattern, command) for pattern in matching_patterns(commands, subjects) for command in commands[pattern])


def _subjects(event: Event, kind: _EventKind) -> tuple[str, ...]:
    """Return the texts that patterns are matched with; for a subagent, its id and its type."""
    names = [getattr(event, kind.subject, None)] if kind.subject else []
    if isinstance(event, SubagentStart | SubagentStop):
        names.insert(0, event.agent_id)
    return tuple(name for name in names if name)


def _is_partial(event: MessageDisplay, policy: Policy) -> bool:
    return policy.message_display.only_final and not event.final


def _is_managed(event: Event) -> bool:
    """Return whether an organisation's settings changed, which the client applies even if a hook blocks."""
    return isinstance(event, ConfigChange) and event.source == "policy_settings"


def _step(layer: Layer, pattern: str | None, command: Command, *, observes: bool = False) -> Step:
    when = command.when or ()
    return Step(
        run=command.run,
        folder=layer.folder,
        cwd=os.path.join(layer.folder, command.working_dir or ""),
        shell=command.shell or "bash",
        timeout=command.timeout,
        message=command.message,
        show_command=command.show_command is not False,
        show_stdout=command.show_stdout or False,
        show_stderr=command.show_stderr or False,
        max_output_lines=command.max_output_lines,
        notify=command.notify_per_command or False,
        pattern=pattern,
        when=(when,) if isinstance(when, str) else tuple(when),
        loose_when=bool(when) and layer.is_conclaude,
        observes=observes,
        passes_unchecked=command.on_failure == "pass",
    )


# -- other parts of a plan -----------------------------------------------------------------------------


def _stop_fields(event: Event, layers: tuple[Layer, ...]) -> dict[str, Any]:
    """Return the fields of a plan for the end of a turn, merged from all files; empty for any other event."""
    if not isinstance(event, Stop):
        return {}
    section = merge_layers(layers).stop
    return {
        "parallel": section.parallel,
        "max_blocks": section.max_blocks,
        "infinite": (section.infinite_message or DEFAULT_INFINITE_MESSAGE) if section.infinite else None,
        "first_stop": None if event.stop_hook_active is None else not event.stop_hook_active,
    }


def _subagent_start_fields(event: Event, layers: tuple[Layer, ...]) -> dict[str, Any]:
    """Return the fields of a plan for a subagent that starts: its context; empty for any other event."""
    if not isinstance(event, SubagentStart):
        return {}
    subjects = (event.agent_id, event.agent_type)
    contexts = [layer.policy.subagent_start.context for layer in layers]
    texts = [context[pattern] for context in contexts for pattern in matching_patterns(context, subjects)]
    return {"context": "\n\n".join(texts) or None}


def _for_prompt(event: UserPromptSubmit, layers: tuple[Layer, ...], read: _prompts.ReadFile) -> Plan:
    """Return the plan for a prompt; an empty plan if the prompt is blank.

    Commands for prompts never block, but commands for a slash command may.
    """
    if not event.prompt.strip():
        return Plan(event_name=event.event_name, session_id=event.session_id)
    slash, search = _prompts.slash_command(event.prompt), PatternSearch(event.prompt)
    steps = [
        _step(layer, command.pattern, command, observes=True)
        for layer in layers
        for command in layer.policy.user_prompt_submit.commands
        if command.pattern is None or search.finds(command.pattern, case_insensitive=command.case_insensitive)
    ]
    steps += [_step(*command) for command in (_for_slash(slash.name, layers) if slash else ())]
    plan = _plan(
        event,
        tuple(steps),
        on_failure="block-on-2",
        shown="model",
        log=(_processing(event),) if steps else (),
        more_env={"SLASH_COMMAND": slash.name, "SLASH_COMMAND_ARGS": slash.args} if slash else None,
    )
    return replace(plan, context=_prompts.context(event.prompt, layers, read, search))


def _for_slash(name: str, layers: tuple[Layer, ...]) -> _Commands:
    """Return the commands whose pattern matches the name of a slash command, with or without the slash."""
    return [
        (layer, pattern, command)
        for layer in layers
        if (section := layer.policy.user_prompt_submit.slash_commands) is not None
        for pattern, command in _by_pattern(section.commands, (name, f"/{name}"))
    ]


def _for_worktree(event: Event, layers: tuple[Layer, ...]) -> Plan:
    """Return the plan for a new worktree: the command of the nearest file that has one; without one, an empty plan."""
    for layer in layers:
        section = layer.policy.worktree_create
        if section.command:
            timeout = section.timeout or WORKTREE_TIMEOUT
            step = Step(run=section.command, folder=layer.folder, cwd=layer.folder, timeout=timeout)
            plan = _plan(event, (step,), on_failure="block-first", log=(_processing(event),))
            return replace(plan, gives_path=True)
    return Plan(event_name=event.event_name, session_id=event.session_id)


# -- log lines ----------------------------------------------------------------------------------------


def _log(event: Event, layers: tuple[Layer, ...], kind: _EventKind, commands: _Commands) -> tuple[str, ...]:
    if not isinstance(event, SubagentStart | SubagentStop):
        return (_processing(event),) if commands and not isinstance(event, MessageDisplay) else ()
    agent_type = f", subagent_type={event.agent_type}" if event.agent_type else ""
    lines = [f"{_processing(event)}, agent_id={event.agent_id}{agent_type}"]
    if any(_has_commands(layer.policy, kind) for layer in layers):
        patterns = dict.fromkeys(pattern for _, pattern, _ in commands if pattern)
        names = ", ".join(f'"{pattern}"' for pattern in patterns)
        outcome = f"matched patterns: [{names}]" if patterns else "did not match any configured patterns"
        lines.append(f"Agent '{event.agent_id}' {outcome}")
    return tuple(lines)


def _processing(event: Event) -> str:
    return f"Processing {event.event_name} hook: session_id={event.session_id}"
