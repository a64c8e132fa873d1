"""`fairlead explain`: which rules were looked at for an event, which matched, and what the client will be told."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.clients import claude
from fairlead.errors import UsageError
from fairlead.events import MAX_PAYLOAD, HookOutput, PermissionRequest, PreToolUse, encode_json, parse
from fairlead.policy import Guards, Look, find_layers, plan

if TYPE_CHECKING:
    from fairlead.events import Event
    from fairlead.policy import Layer, Plan

USAGE = """\
usage: fairlead explain [--tool NAME] [--command TEXT | --file PATH] [--agent TYPE] [--cwd FOLDER] [--json]
       fairlead explain [--json] < payload.json

Shows which rules of the policy were looked at for a tool call, or for any event, which matched and why, which commands
would run, and what the agent would be told. Runs nothing.

example:
  fairlead explain --tool Bash --command 'rm -rf build'
"""
_INPUTS = {"--command": "command", "--file": "file_path"}


class Explanation(msgspec.Struct, frozen=True):
    """All there is to say about an event under the policy."""

    event: str
    files: tuple[str, ...]
    verdict: str
    told: str | None = None
    exit_code: int = 0
    message: str | None = None
    looked: tuple[Look, ...] = ()
    commands: tuple[str, ...] = ()


def run(args: list[str]) -> int:
    """Explain one event and return the exit code, which says only whether it could be explained."""
    if "--help" in args or "-h" in args:
        print(USAGE, end="")
        return 0
    wishes, as_json = _wishes(args)
    event = _event(wishes)
    explanation = explain(event, find_layers(event.cwd or "."))
    if as_json:
        print(encode_json(msgspec.to_builtins(explanation)).decode())
    else:
        print(_shown(explanation))
    return 0


def explain(event: Event, layers: tuple[Layer, ...]) -> Explanation:
    """Look at an event under a policy, but run no command."""
    output, looked = _judged(event, layers)
    answer = claude.render(event, output)
    return Explanation(
        event=_named(event),
        files=tuple(layer.file for layer in layers),
        verdict="block" if output.blocked else output.permission or "no objection",
        told=output.reason,
        exit_code=answer.exit_code,
        message=output.system_message,
        looked=looked,
        commands=_commands(plan(event, layers)),
    )


def _named(event: Event) -> str:
    """Name the event and what it is about, on one line."""
    about = getattr(event, "tool_input", {})
    detail = about.get("command") or about.get("file_path") or about.get("notebook_path") or ""
    return " ".join(f"{event.event_name} {event.subject} {detail}".split())


def _judged(event: Event, layers: tuple[Layer, ...]) -> tuple[HookOutput, tuple[Look, ...]]:
    if isinstance(event, PreToolUse):
        verdict = Guards(layers).check(event)
    elif isinstance(event, PermissionRequest):
        verdict = Guards(layers).check_permission(event)
    else:
        return HookOutput.allow(), ()
    return verdict.output, verdict.looked


def _commands(planned: Plan) -> tuple[str, ...]:
    return tuple(f"{step.pattern}: {step.run}" if step.pattern else step.run for step in planned.steps)


# -- the command line ----------------------------------------------------------------------------------


def _wishes(args: list[str]) -> tuple[dict[str, str], bool]:
    wishes: dict[str, str] = {}
    words = iter(word for word in args if word != "--json")
    for word in words:
        key, equals, value = word.partition("=")
        if key not in {"--tool", "--agent", "--cwd", *_INPUTS}:
            raise UsageError(f"unknown option {word!r}; see fairlead explain --help")
        value = value if equals else next(words, "")
        if not value:
            raise UsageError(f"{key} needs a value")
        wishes[key] = value
    return wishes, "--json" in args


def _event(wishes: dict[str, str]) -> Event:
    if not wishes.keys() & {"--tool", *_INPUTS}:
        if sys.stdin is None or sys.stdin.isatty():
            raise UsageError("name a call, or give a payload on stdin; see fairlead explain --help")
        return parse(sys.stdin.buffer.read(MAX_PAYLOAD + 1))
    if wishes.get("--tool") == "Bash" and "--command" not in wishes:
        raise UsageError("--tool Bash needs --command TEXT")
    tool_input = {field: wishes[key] for key, field in _INPUTS.items() if key in wishes}
    payload: dict[str, Any] = {
        "hook_event_name": "PreToolUse",
        "session_id": "explain",
        "cwd": os.path.abspath(wishes.get("--cwd", ".")),  # noqa: PTH100 - as everywhere in this package
        "tool_name": wishes.get("--tool") or ("Bash" if "--command" in wishes else "Write"),
        "tool_input": tool_input,
    }
    if "--agent" in wishes:
        payload["agent_type"] = wishes["--agent"]
    return parse(payload)


# -- what is shown -------------------------------------------------------------------------------------


def _shown(explanation: Explanation) -> str:
    lines = [explanation.event, ""]
    lines += ["policy", *(f"  {file}" for file in explanation.files or ("none found; see fairlead init",))]
    if explanation.looked:
        lines += ["", "rules, in the order they were looked at", *(_look(look) for look in explanation.looked)]
    if explanation.commands:
        lines += ["", "commands that would run", *(f"  {command}" for command in explanation.commands)]
    lines += ["", f"verdict: {explanation.verdict} (exit code {explanation.exit_code})"]
    if explanation.told:
        lines += [f"  told to the agent: {explanation.told}"]
    if explanation.message:
        lines += [f"  shown to the person: {explanation.message}"]
    return "\n".join(lines)


def _look(look: Look) -> str:
    mark = "matched " if look.matched else "no match"
    return f"  {mark}  {look.setting}  {look.rule}: {look.why}"
