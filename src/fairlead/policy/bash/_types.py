"""The result of the analysis of a shell command."""

from __future__ import annotations

from fairlead.policy.bash.programs._calls import GitCommand, Mode  # msgspec reads the annotations
from fairlead.policy.paths._selection import ALL_FILES, Selection
from fairlead.structs import Struct


class SimpleCommand(Struct, frozen=True):
    """A simple command: a program and its arguments, without quotes, redirections and assignments."""

    words: tuple[str, ...]
    implied: bool = False
    """Another spelling of the command before it, as `black` is of `python -m black`."""
    variables: tuple[str, ...] = ()
    """The assignments before it: `NAME=value`."""

    @property
    def program(self) -> str:
        """The name of the program without its folder: `rm` for `/bin/rm`."""
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def text(self) -> str:
        """The words joined by one blank, which the pattern of a rule matches."""
        return " ".join(self.words)


class FileAccess(Struct, frozen=True):
    """A file that the command accesses, as far as is known without looking at the disk."""

    path: str
    """Relative to the folder in which the command starts, unless `folder` is `None`. `~` is not expanded."""
    mode: Mode
    program: str
    """The program that accesses it; `>` for a redirection."""
    glob: bool = False
    """The path is a pattern (`*`, `?`, `[…]`, `**` for folders of any depth)."""
    below: bool = False
    """Whether what lies below the path is accessed too."""
    folder: str | None = "."
    """The folder in which the program runs, after `cd`; `None` if it is only known when it runs."""
    if_folder: str | None = None
    """The access only happens if this path is a folder: `cp a b` writes `b/a`."""
    unless_folder: str | None = None
    """The access only happens if this path is not a folder: `cd b; rm a` removes `a` in the first folder."""
    if_exists: bool = False
    """The access only happens if the path exists: the word may not be a path, as in `git checkout main`."""
    selection: Selection = ALL_FILES
    """With `below`: which of the files are accessed."""
    makes_folder: bool = False
    """What is written is a folder, which is no new file."""
    copy_of: str | None = None
    """What is written is a copy of this: a folder, if this is one."""
    literal: bool = False
    """The path stands in code, and matters only if a rule protects it."""
    script: str | None = None
    """The script that accesses it; `None`: the command itself."""
    tracked: bool = False
    """The script is one of the project's: git has it as it is on the disk."""

    @property
    def is_located(self) -> bool:
        """Whether the folder of the path is known."""
        return self.folder is not None or self.path.startswith(("/", "~"))


class Analysis(Struct, frozen=True):
    """What a shell command runs and accesses, and what is not known before it runs."""

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileAccess, ...] = ()
    unknown: tuple[str, ...] = ()
    """What is not known, each as text for the user."""
    unknown_reads: tuple[str, ...] = ()
    """The same for files that are read, which only matters if there are rules on reading."""
    mentions: tuple[FileAccess, ...] = ()
    """Files that are given to programs of which is not known what they do; of mode `read` if they do not write."""
    programs: tuple[str, ...] = ()
    """The programs that are called and not known."""
    scripts: tuple[str, ...] = ()
    """The scripts on the disk that were read and analysed."""
    assigned: tuple[str, ...] = ()
    """The names of the variables that are set for the shell, and not for one command alone."""
    git: tuple[GitCommand, ...] = ()
    """The calls of git, in their order: what one does depends on those before it."""
    runs_unknown: bool = False
    """Whether it runs a command or code that is not known: the output of another command, a script that it reads."""
