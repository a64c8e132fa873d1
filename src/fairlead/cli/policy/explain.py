"""`fairlead explain`: shows which rules are evaluated for an event, which match, and how the client is answered."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.policy.explanation import event_of
from fairlead.cli.policy.explanation import explain as explain_event
from fairlead.cli.support.command import Command
from fairlead.cli.support.invocation import current, print_line, print_lines
from fairlead.cli.support.param_types import Text
from fairlead.clients import DEFAULT_CLIENT, client_named
from fairlead.errors import UsageError
from fairlead.events import MAX_PAYLOAD, decode_json, encode_json, parse
from fairlead.policy import find_layers_in_force, hook_file_states
from fairlead.text import one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from fairlead.cli.policy.explanation import Explanation
    from fairlead.events import Event
    from fairlead.policy import CallEffects, HookFileState, RuleCheck

_NOTHING_TO_EXPLAIN = (
    "there is nothing to explain; name a call, e.g. fairlead explain --tool Bash --command 'rm -rf build', "
    "or give a payload on stdin, e.g. fairlead explain < payload.json"
)


_MAX_ENTRIES = 6
"""How many files or programs of each kind of effect are shown."""
_MAX_ENTRY = 200


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    tool: str | None = None
    command: str | None = None
    file: str | None = None
    agent: str | None = None
    """The type of the subagent that makes the call; `None` for the main agent."""
    cwd: str | None = None

    @property
    def names_call(self) -> bool:
        """Whether the options describe the call to explain. Otherwise the payload on stdin does."""
        return not (self.tool is None and self.command is None and self.file is None)


# -- from options to an event --------------------------------------------------------------------------


def to_event(options: Options, payload: Mapping[str, Any], folder: str) -> Event:
    """Return the event to explain: the call that the options describe or, if they describe none, that of the payload.

    `folder` is the absolute path of the agent's folder. It replaces that of the payload only if `--cwd` is given.
    """
    fields = to_call(options) if options.names_call else dict(payload)
    if options.cwd is not None:
        fields["cwd"] = folder
    if options.agent is not None:
        fields["agent_type"] = options.agent
    return event_of(fields, "explain", folder)


def to_call(options: Options) -> dict[str, Any]:
    """Return the tool's name and its input, as fields of a payload.

    Raise `UsageError` if the tool's name is misspelt, or if it needs a command or a file that is not given.
    """
    client = client_named(DEFAULT_CLIENT)
    shell = client.default_tools["shell"]
    tool = options.tool or (shell if options.command is not None else client.default_tools["file_write"])
    spelled = next((name for name in client.tool_kinds if name.lower() == tool.lower()), tool)
    if spelled != tool:
        raise UsageError(f"--tool {tool}: the client has no such tool; did you mean {spelled}?")
    if tool == shell and options.command is None:
        raise UsageError(f"--tool {shell} needs --command TEXT")
    if tool in client.file_tools and options.file is None:
        raise UsageError(f"--tool {tool} needs --file PATH")
    given = client.tool_input(tool, command=options.command or "", path=options.file or "")
    return {"tool_name": tool, "tool_input": given}


# -- text ----------------------------------------------------------------------------------------------


def to_text(explanation: Explanation, *, every_rule: bool = False) -> Iterator[str]:
    """Yield what a call does, the policy files, the rules, hook files and commands, and the verdict.

    For a tool call, only the rule that decides is shown, or the rules that matched, unless `every_rule` is set.
    """
    yield explanation.event
    if explanation.effects is not None:
        yield from ("", "what the call does", *_effect_lines(explanation.effects))
    yield from ("", "policy")
    yield from (f"  {line}" for line in _policy_lines(explanation))
    if explanation.effects is None or every_rule:
        yield from _every_rule(explanation)
    else:
        yield from _deciding_rules(explanation)
    if explanation.hooks:
        yield from ("", "hook files, which were not asked", *map(_hook_line, explanation.hooks))
    if explanation.commands:
        yield from ("", "commands that would run", *(f"  {command}" for command in explanation.commands))
    remark = _verdict_remark(explanation, every_rule=every_rule)
    yield from ("", f"verdict: {explanation.verdict} (exit code {explanation.exit_code}){remark}")
    notes = {
        "otherwise": explanation.otherwise,
        "the user is asked" if explanation.verdict == "ask" else "the agent is told": explanation.told,
        "shown to the user": explanation.message,
        "added to the context": explanation.context,
        "afterwards": explanation.afterwards,
    }
    yield from (f"  {label}: {text}" for label, text in notes.items() if text)


def _policy_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the policy files. Of a file that was deleted and still applies, yield the warning, which names it."""
    for file in explanation.files:
        yield next((warning for warning in explanation.warnings if warning.startswith(f"{file}: ")), file)
    if not explanation.files:
        yield "none found; see fairlead init"


def _effect_lines(effects: CallEffects) -> Iterator[str]:
    """Yield what a call does, one line for each kind of effect."""
    kinds = {
        "writes": effects.writes,
        "removes": effects.removes,
        "reads": effects.reads,
        "lists": effects.lists,
        "runs git, judged by the repository": effects.git,
        "runs scripts, which were read": effects.scripts,
        "runs programs that are not known": effects.programs,
        "is not certain": effects.uncertain,
    }
    lines = [f"  {kind}: {_some(entries)}" for kind, entries in kinds.items() if entries]
    yield from lines or ("  nothing to a file, as far as the guards can tell",)


def _some(entries: Sequence[str]) -> str:
    more = f"; and {len(entries) - _MAX_ENTRIES} more" if len(entries) > _MAX_ENTRIES else ""
    return "; ".join(one_line(entry, _MAX_ENTRY) for entry in entries[:_MAX_ENTRIES]) + more


def _every_rule(explanation: Explanation) -> Iterator[str]:
    if explanation.looked:
        yield from ("", "rules evaluated, in order", *map(_rule_line, explanation.looked))


def _deciding_rules(explanation: Explanation) -> Iterator[str]:
    """Yield the rule that decides, or all that matched if none decides."""
    matched = [check for check in explanation.looked if check.matched]
    if matched and explanation.verdict in {"block", "deny", "ask"} and explanation.denied_by is None:
        yield from ("", "the rule that decides", _rule_line(matched[-1]))
    elif matched:
        yield from ("", "rules that matched", *map(_rule_line, matched))


def _verdict_remark(explanation: Explanation, *, every_rule: bool) -> str:
    """Return what follows the verdict: its condition and, if no rule objects to a call, why; "" if there is neither.

    Without `every_rule`, the option `--all` is suggested.
    """
    condition = f", {explanation.condition}" if explanation.condition else ""
    if explanation.effects is None or explanation.verdict != "no objection":
        return condition
    separator = "; " if condition else ", "
    missed = len({(check.setting, check.rule) for check in explanation.looked if not check.matched})
    if not missed:
        return f"{condition}{separator}no rule is about it"
    hint = "" if every_rule else " (--all lists them)"
    return f"{condition}{separator}{missed} rule{'' if missed == 1 else 's'} evaluated without a match{hint}"


def _hook_line(hook: HookFileState) -> str:
    return printable(f"  {hook.state:<9}  {hook.file}")


def _rule_line(check: RuleCheck) -> str:
    mark = "matched " if check.matched else "no match"
    return f"  {mark}  {check.setting}  {check.rule}: {check.why}"


# -- the command ---------------------------------------------------------------------------------------


@click.command(
    "explain",
    cls=Command,
    options_metavar="[OPTIONS] [< payload.json]",
    examples=(
        "fairlead explain --tool Bash --command 'rm -rf build'",
        "fairlead explain --tool Edit --file src/app.py --agent coder",
        'echo \'{"hook_event_name": "Stop"}\' | fairlead explain',
    ),
    exit_codes=((0, "explained, whatever the verdict"), (1, "the policy or the command line is wrong")),
)
@click.option(
    "--tool",
    metavar="NAME",
    type=Text(),
    help="The tool, as the client spells it (default: Bash with --command, else Write).",
)
@click.option("--command", metavar="TEXT", type=Text(), help="The shell command that it would run.")
@click.option(
    "--file",
    metavar="PATH",
    type=Text(),
    help="The file that it would be used on; a relative path starts in the agent's folder.",
)
@click.option(
    "--agent", metavar="TYPE", type=Text(), help="The type of the calling subagent (default: the main agent)."
)
@click.option("--cwd", metavar="FOLDER", type=Text(), help="The agent's folder (default: the current one).")
@click.option("--all", "every_rule", is_flag=True, help="Show every rule that was evaluated.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
def explain(*, as_json: bool, every_rule: bool, **given: Any) -> int:
    """Show what a tool call does, and which rule decides it.

    Shows what the guards understand of a call (files written, removed and read, scripts, programs that are not known),
    the rule that decides, the commands that would run, and what the agent would be told. Runs nothing, so the answers
    of hooks that the policy lists are not known: their files are named.

    A policy file that was deleted after it decided events still applies, in its last good version, as it does to the
    hooks; it is listed with the command that ends this.

    A payload is what the client would send. Missing fields are filled in: PreToolUse as the event, any session.
    """
    options = Options(**given)
    folder = options.cwd or "."
    absolute = current().absolute(folder)
    if not os.path.isdir(absolute):
        raise UsageError(f"--cwd {folder}: no such folder")
    event = to_event(options, {} if options.names_call else _read_payload(), absolute)
    loaded = find_layers_in_force(current().absolute(event.cwd or "."))
    explanation = explain_event(event, loaded.layers, hook_file_states(loaded.layers), loaded.warnings)
    if as_json:
        print_line(encode_json(msgspec.to_builtins(explanation)).decode())
    else:
        print_lines(to_text(explanation, every_rule=every_rule))
    return 0


def _read_payload() -> dict[str, Any]:
    if current().stdin_is_terminal():
        raise UsageError(_NOTHING_TO_EXPLAIN)
    data = current().read_stdin(MAX_PAYLOAD + 1)
    if not data.strip():
        raise UsageError(_NOTHING_TO_EXPLAIN)
    try:
        payload = decode_json(data)
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        parse(data)  # raises an error that says what is wrong
    return dict(payload or {})
