"""`fairlead explain`: which rules were evaluated for an event, which matched, and what the client would be told."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click
import msgspec

from fairlead.cli.policy.explanation import event_of
from fairlead.cli.policy.explanation import explain as explain_event
from fairlead.cli.support.command import Command
from fairlead.cli.support.param_types import Text
from fairlead.cli.support.screen import print_lines
from fairlead.clients import DEFAULT_CLIENT, client_named
from fairlead.errors import UsageError
from fairlead.events import MAX_PAYLOAD, decode_json, encode_json, parse
from fairlead.policy import find_layers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.cli.policy.explanation import Explanation
    from fairlead.events import Event
    from fairlead.policy import RuleCheck

_NOTHING = (
    "there is nothing to explain; name a call, e.g. fairlead explain --tool Bash --command 'rm -rf build', "
    "or give a payload on stdin, e.g. fairlead explain < payload.json"
)


class Options(msgspec.Struct, frozen=True):
    """The options of the command line."""

    tool: str | None = None
    command: str | None = None
    file: str | None = None
    agent: str | None = None
    cwd: str | None = None

    @property
    def names_call(self) -> bool:
        """Whether the options say which call to explain; else a payload does."""
        return not (self.tool is None and self.command is None and self.file is None)


# -- from options to an event --------------------------------------------------------------------------


def to_event(options: Options, payload: Mapping[str, Any], folder: str) -> Event:
    """Return the event to explain: the call that the options name, or the payload, in an absolute folder."""
    fields = to_call(options) if options.names_call else dict(payload)
    if options.cwd is not None:
        fields["cwd"] = folder
    if options.agent is not None:
        fields["agent_type"] = options.agent
    return event_of(fields, "explain", folder)


def to_call(options: Options) -> dict[str, Any]:
    """Return the payload of a tool call. Raise `UsageError` if the tool needs a command or a file."""
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


def to_text(explanation: Explanation) -> Iterator[str]:
    """Yield the policy files, the rules and commands, and the verdict."""
    yield from (explanation.event, "", "policy")
    yield from (f"  {file}" for file in explanation.files or ("none found; see fairlead init",))
    if explanation.looked:
        yield from ("", "rules evaluated, in order", *map(_rule_line, explanation.looked))
    if explanation.commands:
        yield from ("", "commands that would run", *(f"  {command}" for command in explanation.commands))
    condition = f", {explanation.condition}" if explanation.condition else ""
    yield from ("", f"verdict: {explanation.verdict} (exit code {explanation.exit_code}){condition}")
    notes = {
        "otherwise": explanation.otherwise,
        "the user is asked" if explanation.verdict == "ask" else "the agent is told": explanation.told,
        "shown to the user": explanation.message,
        "added to the context": explanation.context,
        "afterwards": explanation.afterwards,
    }
    yield from (f"  {label}: {text}" for label, text in notes.items() if text)


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
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
def explain(*, as_json: bool, **given: Any) -> int:
    """Show which rules apply to a tool call or event, and why.

    Lists the rules evaluated, which matched and why, which commands would run, and what the agent would be told. Runs
    nothing. A payload is what the client would send; what it leaves out is filled in: PreToolUse as the event, any
    session.
    """
    options = Options(**given)
    folder = options.cwd or "."
    if not os.path.isdir(folder):
        raise UsageError(f"--cwd {folder}: no such folder")
    event = to_event(options, {} if options.names_call else _read_payload(), os.path.abspath(folder))
    explanation = explain_event(event, find_layers(event.cwd or "."))
    if as_json:
        print(encode_json(msgspec.to_builtins(explanation)).decode())
    else:
        print_lines(to_text(explanation))
    return 0


def _read_payload() -> dict[str, Any]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(_NOTHING)
    data = sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    if not data.strip():
        raise UsageError(_NOTHING)
    try:
        payload = decode_json(data)
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        parse(data)  # raises what is wrong with it
    return dict(payload or {})
