"""Finds the command, and turns what goes wrong into one line and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from io import TextIOWrapper
from typing import TYPE_CHECKING

from fairlead import __version__
from fairlead.errors import FairleadError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

COMMANDS = (
    "agents",
    "daemon",
    "demo",
    "doctor",
    "events",
    "explain",
    "heartbeat",
    "hooks",
    "identity",
    "inbox",
    "init",
    "poll",
    "read",
    "reply",
    "schema",
    "send",
    "sessions",
    "status",
    "tasks",
    "test",
    "topics",
    "validate",
    "watch",
)
"""Each is a file of its own in this folder, with a function `run`."""

USAGE = """\
Fairlead, the hook runtime for coding agents.

usage: fairlead <Event> [options] < payload.json    decide one event, as the client's hook
       fairlead --help | --version                  every command has --help, too

the policy:
       fairlead init [FOLDER]                       write a policy file to start from
       fairlead validate [FILE | FOLDER]            say all that is wrong with a policy
       fairlead explain [options] [< payload.json]  show which rules were looked at, and why
       fairlead test [FILE | FOLDER]                run the tests of a policy
       fairlead schema                              print the JSON Schema of a policy

in the client:
       fairlead hooks install | status | uninstall  put the hooks into the client's settings, or take them out
       fairlead doctor                              find what is wrong, and say what to do
       fairlead watch                               see every session and subagent, and which needs you, live
       fairlead sessions [--tree | --line | wait]   the same for a look, a status bar, or a script
       fairlead events [--follow]                   show what happened, and what was answered
       fairlead daemon run | start | stop | status  what answers events in a millisecond; starts by itself
       fairlead demo                                see it all at work, in a scratch home

agents that write to each other:
       fairlead agents                              who is there, and what they do
       fairlead send NAME... [TEXT]                 a message to agents, a #topic, everyone, or the User
       fairlead inbox | read ID | reply ID [TEXT]   what has come, a whole message, an answer
       fairlead status [ID]                         what is unread and owed, or how one message fares
       fairlead poll [--wait TIME]                  what has come since the last time, or comes in time
       fairlead topics [join | leave NAME]          what several listen to
       fairlead identity [rename NAME]              who you are
       fairlead heartbeat | tasks                   for scripts: a sign of life; what a session has left to do

An event is decided by the policy file that holds in its folder, and by the hooks that are named.

options of an event:
  --hooks FILE.py[:NAME]    run the hooks of the HookManager NAME in that file (default: hooks);
                            an installed module works too: --hooks mypackage.guards:hooks
  --rules FILE              run the command hooks of that file: settings.json, a plugin's hooks.json,
                            or a skill's or subagent's Markdown with frontmatter
  --timeout SECONDS         have the answer ready by then; without it, each hook and command has its own time
  --client claude           whose payload and answer it is (default: claude)
  --launched ID             for the launcher: it found no daemon, so write the event down and begin one
  --waited, --wake          for the launcher, at Stop: decide nothing, and wait for mail at a daemon that is begun

example:
  echo '{"session_id": "s1", "tool_name": "Bash", "tool_input": {"command": "rm -rf /"}}' |
    fairlead PreToolUse --hooks examples/security.py

exit codes: 0 go on, with the answer on stdout; 2 blocked, with the reason on stderr;
            1 the payload or the command line is wrong (on PreToolUse this is 2, and so blocks)
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        return _run(args)
    except FairleadError as error:
        print(f"fairlead: {error}", file=sys.stderr)
    except BrokenPipeError:  # who read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python would complain of it once more at its end
    except Exception as error:  # noqa: BLE001 - the one boundary: a broken install must not open the gate
        print(f"fairlead: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        _say_where()
    return 2 if any(word.replace("_", "").replace("-", "").lower() == "pretooluse" for word in args) else 1


def _run(args: list[str]) -> int:
    if not args or args[0] in {"-h", "--help", "help"} or (args[0] not in COMMANDS and "--help" in args[1:]):
        print(USAGE, end="", file=sys.stdout if args else sys.stderr)
        return 0 if args else 1
    if args[0] in {"--version", "-V"}:
        print(f"fairlead {__version__}")
        return 0
    if args[0].startswith("-"):
        raise UsageError(f"the event comes first, then its options: fairlead <Event> {' '.join(args[:2])}")
    if args[0] in COMMANDS:
        from importlib import import_module

        if isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that knows few characters is no error
        return int(import_module(f"fairlead.cli.{args[0]}").run(args[1:]))
    if args[0].islower():
        _refuse_near_command(args[0])
    with _light_imports():
        if args[0] == "StatusLine":
            from fairlead.cli import status_line

            return status_line.run()
        from fairlead.cli import event

    return event.run(args[0], args[1:])


def _refuse_near_command(word: str) -> None:
    """Say which command a misspelt one means, before it is taken for an event."""
    from difflib import get_close_matches

    if near := get_close_matches(word, COMMANDS, n=1, cutoff=0.75):
        raise UsageError(f"unknown command {word!r}; did you mean {near[0]}?")


@contextmanager
def _light_imports() -> Iterator[None]:
    """Keep msgspec from taking `typing_extensions` along, where it is installed: it does without, 10 ms sooner."""
    name = "typing_extensions"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # as `import` has it: not to be found
    try:
        yield
    finally:
        del sys.modules[name]


def _say_where() -> None:
    if "FAIRLEAD_DEBUG" in os.environ:
        import traceback

        traceback.print_exc()
    else:
        print("fairlead: set FAIRLEAD_DEBUG=1 to see where", file=sys.stderr)
