"""The files that a command runs or reads, as it will find them: on the disk, or as it has written them itself.

Reads the disk through the context of the analysis. Knows what the command writes, but not what a script does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from fairlead.policy.bash._words import is_unknown, plain, quote
from fairlead.policy.bash.shell._folders import join_folder, word_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fairlead.policy.bash._collector import Collector
    from fairlead.policy.bash._context import AnalysisContext
    from fairlead.policy.bash.shell._scope import Scope

_COPY_PROGRAMS: Final = frozenset({"cp", "mv", "ln", "install"})
"""Programs that give a file another name without changing its contents."""
_KEEPS_TEXT: Final = frozenset({"chmod", "chown", "chgrp", "touch", "setfacl", "chattr", "chcon", "mkdir"})
"""Programs that change a file, but not its text."""
_KNOWN_WRITERS: Final = frozenset({">", "tee"})
"""Programs whose text is recorded."""


class Script(NamedTuple):
    """A script that a command runs."""

    path: str
    """The path as the command spells it."""
    text: str | None
    """`None` if it is not known."""
    tracked: bool = False
    """Whether git tracks it, and it is unchanged."""


class WrittenText(NamedTuple):
    """The text that a command writes to a file."""

    text: str | None
    """`None` if it is not known."""
    whole: bool
    """Whether the text is the whole file; otherwise it is appended to the file on the disk."""


class CommandFiles:
    """Reads files for the analysis of one command. Raises the `NeedsThread` of the context."""

    def __init__(self, context: AnalysisContext, collector: Collector, scope: Scope) -> None:
        self.context = context
        self._collector = collector
        self._scope = scope
        self._written: list[tuple[str, str | None, bool]] = []
        """The files that the command writes: path, text if it is known, and whether the text is appended."""

    def paths_of(self, word: str) -> Iterator[str]:
        """Yield the paths that a word may name; none in a folder that is not known."""
        path = word_path(word)
        for folder in self._scope.folders:
            if folder.path is not None or path[:1] in {"/", "~"}:
                yield join_folder(folder.path, path)

    def record_text(self, word: str, text: str | None, *, added: bool = False) -> None:
        """Record that a text is written to a file, or `added` to its end; `None` if the text is not known.

        Ignores a word that is not known.
        """
        if not is_unknown(word):
            self._written += [(path, text, added) for path in self.paths_of(word)]

    def read_text(self, word: str) -> str | None:
        """Return the text of a file as the command reads it; `None` if it is not known, or the file does not exist."""
        if is_unknown(word):
            return None
        paths = [self.context.absolute(path) for path in self.paths_of(word)]
        known = next(filter(None, map(self._written_text, paths)), None)
        if known is None:
            is_written = any(self._writers_of(path) - _KEEPS_TEXT for path in paths)
            return None if is_written else self.read_disk(plain(word))
        before = "" if known.whole else self.read_disk(plain(word)) or ""
        return None if known.text is None else before + known.text

    def read_disk(self, name: str) -> str | None:
        """Return the text of a file on the disk; `None` if it cannot be read or is too large."""
        for path in self.paths_of(quote(name)):
            contents = self.context.read_file(path)
            if contents is not None and contents.data is not None:
                return contents.data.decode("utf-8", "replace")
        return None

    def is_file(self, path: str) -> bool:
        """Return whether a path is a file, on the disk or because this command writes it."""
        return self.context.size_of(path) is not None or self._written_text(self.context.absolute(path)) is not None

    def is_written(self, path: str) -> bool:
        """Return whether this command certainly writes the file."""
        return bool(self._writers_of(self.context.absolute(path)))

    def find_scripts(self, path: str) -> Iterable[Script]:
        """Return the scripts that a path may refer to; none if it refers to no file.

        These are what this command writes or copies to the path, or else the file on the disk. A script has no known
        text if another program of the command writes it.
        """
        absolute = self.context.absolute(path)
        writers = self._writers_of(absolute) - _KEEPS_TEXT
        written = self._written_text(absolute)
        if written is not None and writers <= _KNOWN_WRITERS:
            scripts = [Script(path, written.text)]
            return scripts if written.whole else [*scripts, *self._find_on_disk(path, path)]
        if writers and writers <= _COPY_PROGRAMS:
            folder = path.rpartition("/")[0] or "."
            sources = [name for source in self._copied_files() for name in (source, f"{folder}/{source}")]
            return [script for source in sources for script in self.find_named_scripts(source, path)]
        return [Script(path, None)] if writers else self.find_named_scripts(path, path)

    def find_named_scripts(self, path: str, name: str) -> Iterator[Script]:
        """Yield the scripts at `path` under another name: the text that the command writes there, the file, or both."""
        written = self._written_text(self.context.absolute(path))
        if written is not None:
            yield Script(name, written.text)
        if written is None or not written.whole:
            yield from self._find_on_disk(path, name)

    def _find_on_disk(self, path: str, name: str) -> Iterator[Script]:
        contents = self.context.read_file(path)
        if contents is None:
            return
        tracked = path == name and self.context.is_tracked(contents.path)
        text = None if contents.data is None else contents.data.decode("utf-8", "replace")
        yield Script(name, text, tracked)

    def _writers_of(self, path: str) -> set[str]:
        """Return the programs of this command that certainly write the file at an absolute path."""
        absolute = self.context.absolute
        return {
            file.program
            for file in self._collector.files
            if file.mode in {"write", "create"} and not (file.if_exists or file.glob) and absolute(file.path) == path
        }

    def _written_text(self, path: str) -> WrittenText | None:
        """Return the text that this command writes to an absolute path; `None` if none was recorded."""
        result: WrittenText | None = None
        for name, text, added in self._written:
            if self.context.absolute(name) == path:
                before = result if added and result is not None else WrittenText("", whole=not added)
                known = before.text is not None and text is not None
                result = WrittenText(f"{before.text}{text}" if known else None, whole=before.whole)
        return result

    def _copied_files(self) -> list[str]:
        """Return the files that are copied, moved or linked."""
        return [
            file.path
            for file in self._collector.files
            if file.mode in {"read", "move"} and file.program in _COPY_PROGRAMS
        ]
