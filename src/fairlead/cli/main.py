"""The entry point: decides events without Click, runs commands, and prints each error as one line.

The launcher starts this for every event that no daemon answers, so events import as little as possible.
"""

from __future__ import annotations

import gc
import os
import sys

from fairlead import __version__
from fairlead.errors import BLOCKED, INTERRUPTED, FairleadError, UsageError, failure_exit_code
from fairlead.lazy import CachedModules, has_light_structs, light_imports, use_light_structs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

_EVENT_OPTIONS = ("--hooks", "--rules", "--timeout", "--client")
_LAUNCHED = "--launched"


def main(argv: Sequence[str] | None = None) -> int:
    """Decide one event or run one command, and return the exit code. Print errors to stderr instead of raising them.

    `argv` is the command line without the program's name, by default that of this process.
    """
    args = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
    except FairleadError as error:
        return report_failure(error, args)
    except KeyboardInterrupt:
        print("fairlead: interrupted", file=sys.stderr)
        return failure_exit_code(*args) if _is_event(args) else INTERRUPTED
    except BrokenPipeError:  # the reader of our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # so that Python does not complain once more when it exits
    except Exception as error:  # noqa: BLE001 - a broken installation must not let an event pass
        print(f"fairlead: internal error: {type(error).__name__}: {error}", file=sys.stderr)
        _print_traceback()
        return _block_unchecked(args)
    else:
        return code
    return failure_exit_code(*args)


def _block_unchecked(args: list[str]) -> int:
    """Return the exit code after an internal error.

    A PreToolUse is blocked. Another event is blocked if the policy seems to have a check for it; the reason is printed
    to stderr.
    """
    code = failure_exit_code(*args)
    if code == BLOCKED or not _is_event(args):
        return code
    try:
        from fairlead.cli.unchecked import block_unchecked

        code, text = block_unchecked(args)
    except Exception:  # noqa: BLE001 - the first error is already printed
        return code
    if text:
        print(text, file=sys.stderr)
    return code


def launched() -> NoReturn:
    """Run the command line of a launcher that found no daemon, and exit with the exit code.

    On CPython, a PreToolUse without further options is decided without msgspec.
    """
    args = sys.argv[1:]
    is_plain = len(args) == 3 and args[:2] == ["PreToolUse", _LAUNCHED]  # noqa: PLR2004 - the launcher's words
    if not is_plain or sys.implementation.name != "cpython":
        sys.exit(main(args))
    gc.disable()  # the process ends before there is anything worth collecting
    use_light_structs()
    modules = CachedModules(sys.modules["fairlead"], rare="fairlead.policy.bash")
    sys.meta_path.insert(0, modules)
    modules.load()
    code = main(args)
    modules.save()
    os._exit(code)  # everything is written, and the client would wait while modules are torn down


def _run(args: list[str]) -> int:
    if _is_event(args):
        return _run_event(args[0], args[1:])
    from fairlead.cli.support.invocation import Invocation, running_for

    launch_id = ""
    if args[:1] == [_LAUNCHED] and len(args) > 1:  # the launcher puts it in front of a command, with an id
        launch_id = args[1].partition(",")[0]
        args = args[2:]
    elif args[-2:-1] == [_LAUNCHED]:  # and behind the words of a hook, whose event is misspelt
        args = args[:-2]
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")  # a character that the terminal cannot show is no error
    with running_for(Invocation(launch_id)):
        return run_command(args)


def run_command(args: list[str]) -> int:
    """Run a command for the current invocation, and return its exit code. Events are not commands.

    Raise `UsageError` if the command line is wrong, and another `FairleadError` if the command fails.
    """
    from fairlead.cli.support.invocation import current

    if args and args[0] in {"-V", "--version"}:
        print(f"fairlead {__version__}", file=current().stdout)
        return 0
    if args and args[0].partition("=")[0] in _EVENT_OPTIONS:
        raise UsageError(f"the event comes first, then its options: fairlead <Event> {' '.join(args[:2])}")
    from fairlead.cli import app

    try:
        return app.run(args)
    except FileNotFoundError:
        if _has_folder():
            raise
        raise FairleadError("this folder no longer exists; run the command in another one") from None


def _has_folder() -> bool:
    """Return whether the working folder of this process still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def report_failure(error: FairleadError, args: Sequence[str]) -> int:
    """Print an error to stderr, and return the exit code: 2 if the command line `args` names a PreToolUse, else 1."""
    from fairlead.cli.support.invocation import current

    print(f"fairlead: {error}", file=current().stderr)
    return failure_exit_code(*args)


def _is_event(args: Sequence[str]) -> bool:
    """Return whether the first word names an event, known or not. Only such names begin with a capital letter."""
    return bool(args) and args[0][:1].isupper()


def _run_event(name: str, options: list[str]) -> int:
    if has_light_structs():
        from fairlead.cli import light_event

        return light_event.run(options)
    with light_imports():
        if name == "StatusLine":
            from fairlead.cli import status_line

            return status_line.run()
        from fairlead.cli import event

    if "--help" in options or "-h" in options:
        print(event.HELP, end="")
        return 0
    return event.run(name, options)


def _print_traceback() -> None:
    if "FAIRLEAD_DEBUG" in os.environ:
        import traceback

        traceback.print_exc()
    else:
        print("fairlead: set FAIRLEAD_DEBUG=1 to see where", file=sys.stderr)
