"""The types of the table of programs: a call of a program, its options and its effects."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from fairlead.policy.bash._words import is_unknown, plain
from fairlead.policy.paths._selection import ALL_FILES, Selection
from fairlead.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Mode: TypeAlias = Literal["read", "list", "write", "create", "delete", "move", "any"]
"""What a program does with a file. `list`: it shows names and attributes, but no contents. `any`: it is not known."""


class ProgramCall(Struct, frozen=True):
    """A call of a program. Its words are marked text (see `_words`)."""

    program: str
    args: list[str]
    stdin: str | None = None
    """The text of a here-document or here-string; `None` if there is none."""
    piped: bool = False
    """Whether its input comes from another command."""
    lines: tuple[str, ...] | None = None
    """The possible lines of its input, each as one word; `None` if they are not known."""
    variables: dict[str, tuple[str, ...] | None] = {}
    """The variables of the shell with the values that each may have; `None` if they are not known."""
    file: str | None = None
    """The file that its input comes from; `None` if it comes from no file."""


class Access(Struct, frozen=True):
    """An access of the call to the file that a word names."""

    mode: Mode
    word: str
    below: bool = False
    """Whether it also accesses the files below, if the word names a folder."""
    if_folder: str | None = None
    """The access only happens if this word names a folder."""
    if_exists: bool = False
    """The access only happens if the file exists: the word may name something else."""
    selection: Selection = ALL_FILES
    """With `below`: which of the files are accessed."""
    literal: bool = False
    """The word is a literal in code, and matters only if a rule protects the file that it names."""
    makes_folder: bool = False
    """The access creates a folder, which does not count as a new file."""
    copy_of: str | None = None
    """The source of the written copy, which is a folder if the source is one."""


class RunCommand(NamedTuple):
    """Another command that the call runs, in `folder` if that is set."""

    words: list[str]
    folder: str | None = None
    variables: tuple[str, ...] = ()
    """Assignments for the command: `NAME=value`."""
    implied: bool = False
    """The command is another spelling of the call, as `black` of `python -m black`, so no rule needs to allow it."""


class RunScript(NamedTuple):
    """A text that the call runs as a shell script."""

    text: str
    args: tuple[str, ...] = ()
    """Its name and its arguments: `$0`, `$1` and the following."""


class RunCode(NamedTuple):
    """A text that the call runs as code of an interpreter."""

    language: str
    """The interpreter: `python`, `node`, `perl`."""
    text: str
    operands: list[str]
    """The arguments of the code."""


class RunFile(NamedTuple):
    """A script, or the tasks of a task file, that the call runs."""

    word: str
    language: str | None
    """The interpreter, `sh` for any shell, or the kind of task file: `make`, `npm`. `None`: the first line decides."""
    args: list[str]
    """The arguments of the script, or the names of the tasks."""
    required: bool = False
    """The program reads no other file. If this one does not exist yet, the effects on `args` are unknown."""
    has_known_fallback: bool = False
    """If the file does not exist, a program of the table runs, whose effects on `args` are known."""


class Unpack(NamedTuple):
    """An archive or a patch: the call writes the files that it names, below `folder`."""

    word: str
    folder: str
    kind: str
    """`tar`, `zip` or `patch`."""
    strip: int
    """How many folders are removed from the start of each name."""


class Mention(NamedTuple):
    """An argument of the call that may name a file. What the program does with the file is not known."""

    word: str
    reads_only: bool = False
    """The program does not write the file, but may show its contents."""
    below: bool = True
    """Whether the program may also access what lies below the file, if that is a folder."""


class GitCommand(Struct, frozen=True):
    """A call of git. Which files it changes or shows is only known from the repository."""

    name: str
    """The subcommand: `checkout`."""
    args: tuple[str, ...] = ()
    """The arguments after the subcommand, without quotes."""
    folder: str | None = "."
    """The folder in which it runs; `None` if it is only known when it runs."""
    options: tuple[str, ...] = ()
    """The options that choose the repository: `--git-dir=…`, `--work-tree=…`."""
    stdin: str | None = None
    """The text of a here-document or here-string; `None` if there is none."""
    piped: bool = False
    """Whether its input comes from another command."""
    unknown: tuple[str, ...] = ()
    """The arguments that are only known when it runs, as they were written."""
    tracked: bool = False
    """It runs in a script that git tracks and that is unchanged, so its unknown effects are not reported."""


class UnknownEffect(NamedTuple):
    """An effect of the call that is not known before it runs."""

    text: str
    """The description for the user."""
    runs: bool = False
    """Whether the unknown part is a command or code that the call runs."""


Effect: TypeAlias = Access | RunCommand | RunScript | RunCode | RunFile | Unpack | Mention | GitCommand | UnknownEffect
Program: TypeAlias = "Callable[[ProgramCall], Iterable[Effect]]"


class ParsedOptions(NamedTuple):
    """The parsed arguments of a call."""

    given: dict[str, list[str]]
    """Option, without dashes → its values, "" for each time that it has none."""
    operands: list[str]

    def has(self, *names: str) -> bool:
        """Return whether one of the options is given."""
        return not self.given.keys().isdisjoint(names)

    def values(self, *names: str) -> list[str]:
        """Return the values of the options, in any order."""
        return [value for name in names for value in self.given.get(name, ())]


def parse_options(args: list[str], valued: str = "", long: str = "") -> ParsedOptions:
    """Parse arguments as getopt does; the letters in `valued` and the names in `long` take a value.

    A long option may be abbreviated, as in GNU programs.
    """
    given: dict[str, list[str]] = {}
    operands: list[str] = []
    rest = iter(args)
    for arg in rest:
        if arg[:1] != "-" or arg == "-":
            operands.append(arg)
        elif arg == "--":
            operands += rest
        elif arg[1] == "-":
            names = split_names(long)
            name, equals, value = arg[2:].partition("=")
            name = name if name in names else next((full for full in names if full.startswith(name)), name)
            if not equals and name in names:
                value = next(rest, "")
            given.setdefault(name, []).append(value)
        else:
            _letters(arg, valued, rest, given)
    return ParsedOptions(given, operands)


def options_before_operand(args: list[str], valued: str, long: str) -> tuple[ParsedOptions, list[str]]:
    """Parse the options before the first operand; return them and the remaining arguments."""
    index = 0
    while index < len(args) and args[index].startswith("-") and args[index] not in {"--", "-"}:
        arg = args[index]
        if arg.startswith("--"):
            index += "=" not in arg and any(name.startswith(arg[2:]) for name in split_names(long))
        else:
            index += next((index for index, c in enumerate(arg) if c in valued), 0) == len(arg) - 1
        index += 1
    opts = parse_options(args[:index], valued, long)
    return opts, args[index + 1 :] if args[index : index + 1] == ["--"] else args[index:]


@lru_cache(maxsize=256)
def split_names(long: str) -> tuple[str, ...]:
    """Split the names of long options. Cached, because each program always passes the same text."""
    return tuple(long.split())


def _letters(arg: str, valued: str, rest: Iterator[str], given: dict[str, list[str]]) -> None:
    """Add the options in `-abc` to `given`; the value of the last one may be taken from `rest`."""
    for index, letter in enumerate(arg[1:], 1):
        if letter in valued:
            given.setdefault(letter, []).append(arg[index + 1 :] or next(rest, ""))
            return
        given.setdefault(letter, []).append("")


def run_script(word: str, program: str, args: Iterable[str] = ()) -> Effect:
    """Return the effect of a program that runs a word as a shell script: an unknown one if the word is not known."""
    if is_unknown(word):
        return UnknownEffect(f"{program} runs a script that is only known when it runs: {plain(word)}", runs=True)
    return RunScript(plain(word), tuple(args))


def accesses(mode: Mode, words: Iterable[str], *, below: bool = False) -> list[Effect]:
    """Return the same access for each word."""
    return [Access(mode, word, below) for word in words]


def basename(word: str) -> str:
    """Return the last part of a path."""
    return word.rstrip("/").rpartition("/")[2]
