"""Shows a person a file to trust, and records the trust if the person confirms it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fairlead.cli.support.invocation import print_lines
from fairlead.cli.support.person import require_person
from fairlead.errors import FairleadError, UsageError
from fairlead.hooks.user_hooks import find_imports, find_problem
from fairlead.policy import find_interpreter, read_hook_file, read_trusted, write_trusted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from fairlead.policy import TrustedFile


class TrustError(FairleadError):
    """The record of trusted files cannot be written."""


class HookFileError(FairleadError):
    """A Python file cannot be a hook file."""


def is_hook_file(path: str) -> bool:
    """Return whether a path ends with `.py` and is not a folder. The file may be missing."""
    return path.endswith(".py") and not os.path.isdir(path)


def trust_hook_file(path: str, *, assume_yes: bool) -> None:
    """Trust a hook file and the modules of the project that it imports, as they are now, if a person confirms it.

    Print the changes to confirm; do nothing if there are none. Raise `UsageError` if the file cannot be read,
    `HookFileError` if it cannot be a hook file, `PersonRequired` if no person confirms it, and `TrustError` if the
    trust cannot be recorded.
    """
    file = os.path.abspath(path)
    try:
        with open(file, "rb") as stream:
            text = stream.read()
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file; name a Python file with hooks") from None
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    interpreter, before = find_interpreter(file), read_trusted(file)
    if problem := find_problem(interpreter, file):
        raise HookFileError(f"{problem}; correct the file, then run the command again")
    modules = find_imports(interpreter, file)
    modules.pop(os.path.realpath(file), None)
    state = read_hook_file(file)
    is_same = before is not None and (before.modules, before.interpreter) == (modules, interpreter)
    if is_same and not state.problem:
        print(f"{file} is trusted already")
        return
    print_lines(to_text(file, text, before, modules, interpreter))
    record_trust(file, text, modules, interpreter, assume_yes=assume_yes)


def record_trust(
    file: str, text: bytes, modules: Mapping[str, str] | None = None, interpreter: str = "", *, assume_yes: bool
) -> None:
    """Record that a file is trusted with the content `text`, if a person confirms it. Else raise `PersonRequired`.

    For a hook file, `modules` are the digests of its imports by path, and `interpreter` is the Python that runs it.
    Raise `TrustError` if the record cannot be written.
    """
    require_person(f"trust {file}", assume_yes=assume_yes)
    try:
        write_trusted(file, text, modules, interpreter)
    except OSError as error:
        raise TrustError(f"cannot record that {file} is trusted: {error.strerror or error}") from None
    print(f"trusted {file}")


def changes_to_text(file: str, text: bytes, before: TrustedFile | None) -> Iterator[str]:
    """Yield a diff of a file since a person trusted it or, if `before` is `None`, all lines of the file."""
    from fairlead.text import printable_lines

    new = printable_lines(text.decode(errors="replace"))
    if before is None:
        yield f"{file}:"
        yield from (f"  {line}" for line in new)
    else:
        from difflib import unified_diff

        old = printable_lines(before.text.decode(errors="replace"))
        yield from unified_diff(old, new, f"{file} (trusted)", f"{file} (now)", lineterm="")


def to_text(
    file: str, text: bytes, before: TrustedFile | None, modules: Mapping[str, str], interpreter: str
) -> Iterator[str]:
    """Yield what a person is asked to trust: the file or its changes, its imports, and its interpreter.

    `before` is the version that is trusted so far, `modules` are the digests of the imports by path, and `interpreter`
    is "" for the Python of Fairlead.
    """
    yield from changes_to_text(file, text, before)
    known = before.modules if before is not None else {}
    for module, digest in sorted(modules.items()):
        state = "" if before is None else " (new)" if module not in known else " (changed)" * (known[module] != digest)
        yield f"It imports {module}{state}"
    yield f"It runs with {interpreter or 'the Python of Fairlead'}"
