"""What is known about a shell command before it runs."""

from __future__ import annotations

import msgspec

from fairlead.policy.bash.programs._calls import Mode  # msgspec reads the annotation


class Simple(msgspec.Struct, frozen=True):
    """A simple command: a program and its arguments, without quotes, redirections and assignments."""

    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program's name without its folder: `rm` for `/bin/rm`."""
        return self.words[0].rpartition("/")[2] if self.words else ""

    @property
    def text(self) -> str:
        """The words joined by one blank, for a rule's pattern."""
        return " ".join(self.words)


class FileUse(msgspec.Struct, frozen=True):
    """A file that the command touches, as far as can be said without looking at the disk."""

    path: str
    """Relative to where the whole command starts, unless `folder` is `None`. `~` stays `~`."""
    mode: Mode
    program: str
    """Who does it; `>` for a redirection."""
    glob: bool = False
    """The path is a pattern (`*`, `?`, `[…]`, `**` for folders of any depth)."""
    below: bool = False
    """What lies below the path is meant too."""
    folder: str | None = "."
    """Where the command runs, as far as `cd` tells; `None` if that is only known when it runs."""
    if_folder: str | None = None
    """It happens only if this path is a folder: `cp a b` writes `b/a`."""
    unless_folder: str | None = None
    """It happens only if this path is no folder: `cd b; rm a` removes `a` here."""
    if_exists: bool = False
    """It happens only if the path exists: the word may be no path, as in `git checkout main`."""

    @property
    def placed(self) -> bool:
        """Whether it is known where the path begins."""
        return self.folder is not None or self.path.startswith(("/", "~"))


class Analysis(msgspec.Struct, frozen=True):
    """What a shell command runs and touches, and what nobody can tell."""

    commands: tuple[Simple, ...] = ()
    files: tuple[FileUse, ...] = ()
    unknown: tuple[str, ...] = ()
    """Each thing that cannot be understood, in words for a person."""
    unknown_reads: tuple[str, ...] = ()
    """The same for files that are read, which matters only where reading is guarded."""
