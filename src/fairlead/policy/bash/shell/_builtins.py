"""Applies the builtins that change the shell itself: `cd`, `read`, `set`, `shift`, `alias` and others.

Assignments and declarations have a syntax of their own; they are in `_assignments`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.policy.bash._words import as_value, plain, quote
from fairlead.policy.bash.programs._calls import parse_options
from fairlead.policy.bash.shell._scope import MAX_VALUES

if TYPE_CHECKING:
    from fairlead.policy.bash.shell._scope import Input, Scope

_SETTERS: Final = {"read", "shift", "set", "alias", "mapfile", "readarray", "getopts", "printf", "let", "unset", "wait"}
_CHANGE_FOLDER: Final = frozenset({"cd", "pushd", "chdir"})
BUILTINS: Final = _CHANGE_FOLDER | _SETTERS | {"popd"}
"""The commands that `apply_builtin` knows."""


def apply_builtin(program: str, args: list[str], stdin: Input, scope: Scope) -> None:
    """Apply a command of `BUILTINS` to the shell. Ignores any other command."""
    if program in _CHANGE_FOLDER:
        targets = [arg for arg in args if arg == "-" or not arg.startswith(("-", "+"))]
        scope.change_folder(targets, pushed=program == "pushd")
    elif program == "popd":
        scope.restore_folder()
    elif program == "read":
        _read(args, stdin, scope)
    elif program == "shift":
        scope.shift_arguments()
    elif program == "alias":
        _define_aliases(args, scope)
    elif program == "set":
        scope.set_arguments(args[args.index("--") + 1 :] if "--" in args else ())
    elif program in _SETTERS:
        scope.forget_values(args)


def _read(args: list[str], stdin: Input, scope: Scope) -> None:
    """Apply `read NAME`. The values are known if the input is known and goes to one variable."""
    names = parse_options(args, "adeinNptu").operands
    scope.forget_values(names or ["REPLY"])
    if stdin.text is not None:
        values = tuple(quote(line.strip()) for line in stdin.text.splitlines() if line.strip())
    else:
        values = stdin.output.words if stdin.output and not stdin.output.is_prefix else ()
    if len(names) <= 1 and 0 < len(values) <= MAX_VALUES:
        scope.variables[plain(names[0]) if names else "REPLY"] = tuple(map(as_value, values))


def _define_aliases(args: list[str], scope: Scope) -> None:
    for name, equals, value in (arg.partition("=") for arg in args):
        if equals and value:
            scope.aliases[plain(name)] = plain(value)
