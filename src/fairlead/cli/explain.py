"""`fairlead explain`: which rules were looked at for an event, which matched, and what the client will be told."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.cli.looking import event_of, explain
from fairlead.clients import DEFAULT_CLIENT, client_named
from fairlead.errors import UsageError
from fairlead.events import MAX_PAYLOAD, decode_json, encode_json, parse
from fairlead.policy import find_layers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.cli.looking import Explanation
    from fairlead.events import Event
    from fairlead.policy import RuleCheck

USAGE = """\
usage: fairlead explain [--tool NAME] (--command TEXT | --file PATH) [--agent TYPE] [--cwd FOLDER] [--json]
       fairlead explain [--agent TYPE] [--cwd FOLDER] [--json] < payload.json

Shows which rules of the policy were looked at for a tool call, or for any event, which matched and why, which commands
would run, and what the agent would be told. Runs nothing.

  --tool NAME       the tool, spelt as the client spells it (default: Bash with --command, else Write)
  --command TEXT    the shell command that it would run
  --file PATH       the file that it would be used on; a relative path begins in the agent's folder
  --agent TYPE      the type of the subagent that makes the call (default: the main agent)
  --cwd FOLDER      the folder that the agent is in (default: this one)
  --json            print the explanation as JSON

A payload is what the client would send. What it leaves out is filled in: the event is PreToolUse then, the session any.

examples:
  fairlead explain --tool Bash --command 'rm -rf build'
  fairlead explain --tool Edit --file src/app.py --agent coder
  echo '{"hook_event_name": "Stop"}' | fairlead explain

exit codes: 0 explained, whatever the verdict; 1 not: the policy or the command line is wrong
"""
_INPUTS = ("--command", "--file")
_WHAT_TO_DO = (
    "there is nothing to explain; name a call, e.g. fairlead explain --tool Bash --command 'rm -rf build', "
    "or give a payload on stdin, e.g. fairlead explain < payload.json"
)


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
        print("\n".join(_shown(explanation)))
    return 0


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
    folder = wishes.get("--cwd", ".")
    if not os.path.isdir(folder):
        raise UsageError(f"--cwd {folder}: no such folder")
    given: dict[str, Any] = {}
    if "--cwd" in wishes:
        given["cwd"] = os.path.abspath(folder)
    if "--agent" in wishes:
        given["agent_type"] = wishes["--agent"]
    call = _call(wishes) if wishes.keys() & {"--tool", *_INPUTS} else _payload()
    return event_of({**call, **given}, "explain", os.path.abspath(folder))


def _call(wishes: dict[str, str]) -> dict[str, Any]:
    client = client_named(DEFAULT_CLIENT)
    shell = client.default_tools["shell"]
    tool = wishes.get("--tool") or (shell if "--command" in wishes else client.default_tools["file_write"])
    spelt = next((name for name in client.tool_kinds if name.lower() == tool.lower()), tool)
    if spelt != tool:
        raise UsageError(f"--tool {tool}: the client has no such tool; did you mean {spelt}?")
    if tool == shell and "--command" not in wishes:
        raise UsageError(f"--tool {shell} needs --command TEXT")
    if tool in client.file_tools and "--file" not in wishes:
        raise UsageError(f"--tool {tool} needs --file PATH")
    given = client.tool_input(tool, command=wishes.get("--command", ""), path=wishes.get("--file", ""))
    return {"tool_name": tool, "tool_input": given}


def _payload() -> dict[str, Any]:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(_WHAT_TO_DO)
    data = sys.stdin.buffer.read(MAX_PAYLOAD + 1)
    if not data.strip():
        raise UsageError(_WHAT_TO_DO)
    try:
        payload = decode_json(data)
    except ValueError:
        payload = None
    if not isinstance(payload, dict):
        parse(data)  # says what is wrong with it
    return dict(payload or {})


# -- what is shown -------------------------------------------------------------------------------------


def _shown(explanation: Explanation) -> Iterator[str]:
    yield from (explanation.event, "", "policy")
    yield from (f"  {file}" for file in explanation.files or ("none found; see fairlead init",))
    if explanation.looked:
        yield from ("", "rules, in the order they were looked at", *map(_look, explanation.looked))
    if explanation.commands:
        yield from ("", "commands that would run", *(f"  {command}" for command in explanation.commands))
    condition = f", {explanation.condition}" if explanation.condition else ""
    yield from ("", f"verdict: {explanation.verdict} (exit code {explanation.exit_code}){condition}")
    asked = explanation.verdict == "ask"
    notes = {
        "otherwise": explanation.otherwise,
        "asked of the person" if asked else "told to the agent": explanation.told,
        "shown to the person": explanation.message,
        "given to the model": explanation.context,
    }
    yield from (f"  {label}: {text}" for label, text in notes.items() if text)


def _look(look: RuleCheck) -> str:
    mark = "matched " if look.matched else "no match"
    return f"  {mark}  {look.setting}  {look.rule}: {look.why}"
