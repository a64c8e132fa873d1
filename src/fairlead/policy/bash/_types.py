"""The result of the analysis of a shell command."""

from __future__ import annotations

from fairlead.policy.bash.programs._calls import GitCommand, Mode  # msgspec reads the annotations
from fairlead.policy.paths._selection import ALL_FILES, Selection
from fairlead.structs import Struct


class SimpleCommand(Struct, frozen=True):
    """A simple command: a program and its arguments, without quotes, redirections and assignments."""

    words: tuple[str, ...]
    implied: bool = False
    """Whether it is another spelling of the previous command (`black` for `python -m black`), or in a script."""
    variables: tuple[str, ...] = ()
    """The assignments before it: `NAME=value`."""

    @property
    def program(self) -> str:
        """The name of the program without its folder: `rm` for `/bin/rm`."""
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def text(self) -> str:
        """The words joined by blanks: the text that the pattern of a rule is matched with."""
        return " ".join(self.words)


class FileAccess(Struct, frozen=True):
    """An access to a file, as far as it is known without looking at the disk."""

    path: str
    """Relative to the folder in which the command starts, unless `folder` is `None`. `~` is not expanded."""
    mode: Mode
    program: str
    """The program that accesses it; `>` for a redirection."""
    glob: bool = False
    """The path is a pattern (`*`, `?`, `[…]`, `**` for folders of any depth)."""
    below: bool = False
    """Whether the files below the path are accessed too."""
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
    """The access creates a folder, which does not count as a new file."""
    copy_of: str | None = None
    """The source of the written copy, which is a folder if the source is one."""
    literal: bool = False
    """The path is a literal in code, and matters only if a rule protects that path."""
    script: str | None = None
    """The script that accesses it; `None` for the command itself."""
    tracked: bool = False
    """The script belongs to the project: git tracks it, and it is unchanged."""

    @property
    def is_located(self) -> bool:
        """Whether the folder of the path is known."""
        return self.folder is not None or self.path.startswith(("/", "~"))


class Analysis(Struct, frozen=True):
    """The commands, the files and the unknown effects of a shell command."""

    commands: tuple[SimpleCommand, ...] = ()
    files: tuple[FileAccess, ...] = ()
    unknown: tuple[str, ...] = ()
    """Descriptions of unknown effects, for the user."""
    unknown_reads: tuple[str, ...] = ()
    """Descriptions of unknown files that are read. They only matter if there are rules on reading."""
    mentions: tuple[FileAccess, ...] = ()
    """Files that are arguments of programs with unknown effects; of mode `read` if the program does not write."""
    programs: tuple[str, ...] = ()
    """The unknown programs that are called."""
    scripts: tuple[str, ...] = ()
    """The scripts on the disk that were read and analysed."""
    assigned: tuple[str, ...] = ()
    """The names of the variables that are set for the shell, and not for one command alone."""
    git: tuple[GitCommand, ...] = ()
    """The calls of git in their order, because the effect of each depends on those before it."""
    runs_unknown: bool = False
    """Whether it runs an unknown command or unknown code, such as the output of another command."""
