"""The state of a shell: its folder, variables, functions and aliases; and the input of a command.

One scope is shared by all scripts of an analysis; after a subshell it is restored. Knows no commands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._words import as_value, is_unknown, plain, quote
from fairlead.policy.bash.shell._folders import START_FOLDERS, UNKNOWN_FOLDERS, change_folder, join_folder, word_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    from tree_sitter import Node

    from fairlead.policy.bash.programs._outputs import Output
    from fairlead.policy.bash.shell._folders import Folders

    Values: TypeAlias = tuple[str, ...] | None
    """The values that a variable may have; `None` if they are only known when the command runs."""
    SavedScope: TypeAlias = tuple[Folders, Folders | None, list[Folders], dict[str, Values], dict[str, str], bool]
    """The state of a shell before it started a subshell."""

MAX_VALUES: Final = 64
"""The maximum number of values that are kept of a variable."""
_MAX_LENGTH: Final = 20_000
"""The maximum number of characters that the values of a variable may have: `x=$x$x` doubles them each time."""
_MAX_SCRIPT_ARGUMENTS: Final = 9


class TooComplex(Exception):
    """A command or a script is too long, or nested too deep."""


class Input(NamedTuple):
    """The input of a command, and arguments that the parser places after a redirection."""

    text: str | None = None
    """The text of a here-document or here-string; `None` if there is none, or it is not known."""
    piped: bool = False
    """Whether the input comes from another command."""
    words: tuple[Node, ...] = ()
    output: Output | None = None
    """The output of the command before it in the pipeline; `None` if it is not known."""
    file: str | None = None
    """The file that the input is read from, as a word; `None` if it is read from no file."""


NO_INPUT: Final = Input()


class Scope:
    """The state of a shell. Values of variables are marked text (see `_words`)."""

    def __init__(self) -> None:
        self.folders: Folders = START_FOLDERS
        self.previous: Folders | None = None
        """The folders before the last `cd`; `None` before the first."""
        self.stack: list[Folders] = []
        """The folders that `pushd` has stored."""
        self.entered: str | None = None
        """The folder of the last `cd`; `None` if there was none, or it may be one of several."""
        self.variables: dict[str, Values] = {}
        self.exported: dict[str, str] = {}
        """The variables that programs receive."""
        self.assigned: dict[str, None] = {}
        """The names of the variables that are set for the shell, and not for one command alone."""
        self.functions: dict[str, Callable[[Input], None]] = {}
        """The functions that the command defines: each analyses its body, with an input."""
        self.calling: list[str] = []
        """The stack of functions whose bodies are being analysed."""
        self.aliases: dict[str, str] = {}
        self.certain = True
        """Whether the statement certainly runs: an assignment then replaces earlier values."""
        self.statements = 0
        """The number of statements that were analysed, in all scripts."""
        self.script_length = 0
        """The number of characters in all script files that were analysed."""

    def enter_subshell(self) -> SavedScope:
        """Start a subshell; return the state for `leave_subshell`."""
        saved = self.folders, self.previous, self.stack, self.variables, self.exported, self.certain
        self.stack, self.variables, self.exported = list(self.stack), dict(self.variables), dict(self.exported)
        return saved

    def leave_subshell(self, saved: SavedScope) -> None:
        """End a subshell: restore the variables and the folder."""
        self.folders, self.previous, self.stack, self.variables, self.exported, self.certain = saved

    def change_folder(self, targets: list[str], *, pushed: bool) -> None:
        """Apply `cd` with its operands; with `pushed`, apply `pushd`, which also stores the folders before it."""
        before = self.folders
        if pushed:
            self.stack.append(before)
        target = targets[0] if targets else "~"
        if target == "-":
            self.folders = self.previous or UNKNOWN_FOLDERS
        else:
            self.folders = change_folder(before, target)
            self.entered = join_folder(before[0].path, word_path(target)) if len(before) == 1 else None
        self.previous = before

    def restore_folder(self) -> None:
        """Apply `popd`: return to the folders that `pushd` stored last; to unknown ones if none are stored."""
        self.folders = self.stack.pop() if self.stack else UNKNOWN_FOLDERS

    def assign(self, name: str, words: list[str], *, added: bool | None, indexed: bool) -> None:
        """Assign words to a variable; if the statement may not run, the variable keeps its earlier values as well.

        `added`: whether the words are appended (`+=`); `None` if they replace an array. `indexed`: whether the variable
        is an array, or an element of one. The values become unknown if there are too many.
        """
        self.assigned[name] = None
        old = self.variables.get(name, ())
        new: Values = tuple(map(as_value, words))
        if any(map(is_unknown, words)) or (added and not indexed and not old):
            new = None
        elif added and not indexed:
            new = tuple(value + text for value in old or () for text in new or ())
        elif (indexed and added is not None) or not self.certain:
            new = None if old is None else tuple(dict.fromkeys(old + (new or ())))
        too_much = new is None or len(new) > MAX_VALUES or sum(map(len, new)) > _MAX_LENGTH
        self.variables[name] = None if too_much else new

    def forget_values(self, words: Iterable[str]) -> None:
        """Make the values of variables unknown. Ignores words that are no names."""
        for name in map(plain, words):
            if name.isidentifier():
                self.variables[name] = None

    def set_arguments(self, args: Iterable[str]) -> None:
        """Set `$1` and the following, `$@` and `$*`, as `set --` and the call of a function do."""
        variables = self.variables
        values = [None if is_unknown(word) else as_value(word) for word in args]
        for name in [name for name in variables if name.isdigit()]:
            del variables[name]
        variables.update({str(index): None if value is None else (value,) for index, value in enumerate(values, 1)})
        known = tuple(value for value in values if value is not None)
        variables["@"] = variables["*"] = known if len(known) == len(values) <= MAX_VALUES else None

    def arguments(self) -> dict[str, Values]:
        """Return the positional arguments, for `restore_arguments`."""
        return {name: values for name, values in self.variables.items() if _is_argument(name)}

    def restore_arguments(self, saved: dict[str, Values]) -> None:
        """Restore the positional arguments after the call of a function, or a script that was sourced with others."""
        for name in [name for name in self.variables if _is_argument(name)]:
            del self.variables[name]
        self.variables.update(saved)

    def set_script_arguments(self, path: str, args: list[str]) -> None:
        """Set `$0`, `$1` and the following, `$@`, `$*` and `$#`, as the start of a script does.

        Up to `$9`, an argument that is not given is empty.
        """
        values = [None if is_unknown(arg) else (as_value(arg),) for arg in args[:_MAX_SCRIPT_ARGUMENTS]]
        values += [("",)] * (_MAX_SCRIPT_ARGUMENTS - len(values))
        self.variables.update(zip(map(str, range(1, _MAX_SCRIPT_ARGUMENTS + 1)), values, strict=True))
        every = None if any(map(is_unknown, args)) else tuple(map(as_value, args)) or ("",)
        name = as_value(quote(path))
        self.variables |= {"@": every, "*": every, "#": (str(len(args)),), "0": (name,), "BASH_SOURCE": (name,)}

    def shift_arguments(self) -> None:
        """Apply `shift`: after it, each positional argument may be any of the arguments."""
        every = self.variables.get("@")
        self.variables.update(dict.fromkeys([name for name in self.variables if name.isdigit()], every))


def _is_argument(name: str) -> bool:
    """Return whether a variable is `$1`, `$2` and so on, `$@` or `$*`."""
    return name.isdigit() or name in {"@", "*"}
