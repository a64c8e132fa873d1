"""Reads a repository: revisions, the index, trees, and the files on the disk.

Of the files that git lists, only those that a filter accepts are kept. Results about object ids stay cached, because
the contents of an id never change. Results about the index are cached until the index file changes.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from fairlead.policy.git._process import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from fairlead.policy.git._process import GitProcess

_T = TypeVar("_T")
_MAX_FILE_SIZE: Final = 32 * 1024 * 1024
_MAX_CACHED: Final = 256
_EMPTY_TREES: Final = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
_KINDS: Final = ("", "^{commit}", "^{tree}")
_LINK, _FILE, _EXECUTABLE = "120000", "100644", "100755"
_RAW: Final = ("--raw", "-z", "--no-renames", "--no-abbrev", "--no-ext-diff", "--no-textconv", "--ignore-submodules")


class TreeEntry(NamedTuple):
    """A file in a tree or in the index."""

    mode: str
    oid: str


class TreeChange(NamedTuple):
    """A file that differs between two trees; `None` where it does not exist."""

    path: str
    old: TreeEntry | None
    new: TreeEntry | None


class Cache:
    """A limited cache of git's output for one filter of files. The keys contain the versions of all inputs."""

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Any] = {}

    def get(self, key: tuple[object, ...], query: Callable[[], _T]) -> _T:
        """Return the cached result, or compute it with `query`."""
        if key not in self._answers:
            if len(self._answers) >= _MAX_CACHED:
                self._answers.clear()
            self._answers[key] = query()
        answer: _T = self._answers[key]
        return answer


def open_repository(process: GitProcess, wanted: Callable[[str, str], bool], cache: Cache) -> Repository | None:
    """Return the repository of a folder; `None` if there is none, or a bare one, which has no files to change.

    `wanted` gets the root of the working tree and a path in it, and returns whether that file has to be checked.
    """
    markers = _markers(process.folder, process.options)
    if not markers:
        return None

    def query() -> tuple[str, ...] | None:
        names = ("--show-toplevel", "--absolute-git-dir", "--git-path", "index")
        output = process.run("rev-parse", *names, may_fail=True)
        return None if output is None else tuple(os.fsdecode(output).splitlines())

    answer = cache.get(("open", process.folder, *process.options, process.index_file, *markers), query)
    if answer is None or len(answer) != 3:  # noqa: PLR2004 - a bare repository has no files to change
        return None
    root, git_folder, index_file = answer
    return Repository(process, root, git_folder, os.path.join(process.folder, index_file), wanted, cache)


def has_repository(folder: str, options: Sequence[str]) -> bool:
    """Return whether git finds a repository in a folder."""
    return bool(_markers(folder, options))


def _markers(folder: str, options: Sequence[str]) -> list[tuple[object, ...]]:
    """Return the files by which git finds a repository, with their versions; empty if there are none."""
    chosen = [option.partition("=")[2] for option in options if option.startswith("--git-dir=")]
    if chosen:
        return _versions(os.path.join(folder, os.path.expanduser(chosen[-1])))
    folder = folder if os.path.isdir(folder) else ""
    while folder:
        if os.path.lexists(f"{folder}/.git"):
            return _versions(f"{folder}/.git")
        if os.path.isfile(f"{folder}/HEAD") and os.path.isdir(f"{folder}/objects"):
            return _versions(folder)
        folder = folder.rstrip("/").rpartition("/")[0]
    return []


def _versions(git_folder: str) -> list[tuple[object, ...]]:
    versions: list[tuple[object, ...]] = []
    for name in ("", "/config", "/config.worktree"):
        try:
            status = os.stat(git_folder + name)
        except OSError:
            continue
        versions.append((git_folder, name, status.st_ino, 0 if S_ISDIR(status.st_mode) else status.st_mtime_ns))
    return versions


class Repository:
    """The repository in which a command of git runs."""

    def __init__(  # noqa: PLR0917 - built in one place
        self,
        process: GitProcess,
        root: str,
        git_folder: str,
        index_file: str,
        wanted: Callable[[str, str], bool],
        cache: Cache,
    ) -> None:
        self.process = process
        self.root = root
        self.git_folder = git_folder
        self.cache = cache
        self._index_file = index_file
        self._wanted = wanted
        self._objects: dict[str, list[str]] = {}

    def wanted(self, path: str) -> bool:
        """Return whether a file has to be checked."""
        return self._wanted(self.root, path)

    # -- revisions -------------------------------------------------------------------------------------

    def resolve(self, revisions: Sequence[str], kind: str = "commit") -> list[str | None]:
        """Return the id of each revision's commit, or of its tree or blob as `kind` says; `None` if there is none."""
        # Everything after `:/` is the message of a commit, so a suffix would be part of the message.
        revisions = [self._look_up([name])[0][0] if name.startswith(":/") else name for name in revisions]
        # Without a third parent, git 2.39 reads `stash@{0}^3^{commit}` as a date in the reflog: the stash itself.
        objects = self._look_up(
            [name if "@{" in name and kind == "commit" else f"{name}^{{{kind}}}" for name in revisions]
        )
        return [line[0] if len(line) > 1 and line[-1] == kind else None for line in objects]

    def all_exist(self, revisions: Sequence[str]) -> bool:
        """Return whether each of the revisions names an object."""
        return all(line[-1] in {"commit", "tree", "blob", "tag"} for line in self._look_up(revisions))

    def _look_up(self, names: Sequence[str]) -> list[list[str]]:
        """Return the id and the kind of each object; other fields for a name without an object.

        Raise `NotKnown` for a name with a line break.
        Starting a process takes longer than many lookups, so names that are likely needed next are looked up, too.
        """
        if any("\n" in name for name in names):
            raise NotKnown("a revision of git contains a line break")
        if not all(name in self._objects for name in names):
            bases = ["HEAD", *(name.partition("^{")[0] for name in names)]
            wanted = list(dict.fromkeys([*names, *(base + kind for base in bases for kind in _KINDS)]))
            stdin = os.fsencode("".join(f"{name}\n" for name in wanted))
            output = self.process.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=stdin)
            lines = [line.split(" ") for line in os.fsdecode(output or b"").splitlines()]
            self._objects.update(zip(wanted, lines, strict=True))
        return [self._objects[name] for name in names]

    def merge_bases(self, first: str, second: str) -> tuple[str, ...]:
        """Return the best common ancestors of two commits; empty if they have none."""

        def query() -> tuple[str, ...]:
            output = self.process.run("merge-base", "--all", first, second, may_fail=True)
            return tuple((output or b"").decode().split())

        return self._cached(("bases", first, second), query)

    def branch(self) -> str | None:
        """Return the branch that is checked out; `None` if a commit is checked out without one."""
        head = self.file("HEAD") or ""
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: refs/heads/") else None

    def file(self, *names: str) -> str | None:
        """Return the text of the first file of `names` in git's folder that can be read; `None` if none can."""
        for name in names:
            try:
                with open(f"{self.git_folder}/{name}", encoding="utf-8", errors="replace") as file:
                    return file.read(65536).strip()
            except OSError:
                continue
        return None

    # -- trees and index -------------------------------------------------------------------------------

    def empty_tree(self, like: str = "") -> str:
        """Return the id of the empty tree, by the hash algorithm of the id `like`."""
        return _EMPTY_TREES[64 if len(like) == 64 else 40]  # noqa: PLR2004 - hexadecimal digits of SHA-256

    def between(self, old: str, new: str, paths: Sequence[str] = ()) -> tuple[TreeChange, ...]:
        """Return the files to check that differ between two trees or commits."""

        def query() -> tuple[TreeChange, ...]:
            return self._changes(self.process.lines("diff-tree", "-r", *_RAW, old, new, "--", *paths))

        return self._cached(("between", old, new, *paths), query)

    def compared(self, tree: str, paths: Sequence[str] = ()) -> tuple[TreeChange, ...]:
        """Return the files to check that differ between a tree (`old`) and the index (`new`)."""

        def query() -> tuple[TreeChange, ...]:
            return self._changes(self.process.lines("diff-index", "--cached", *_RAW, tree, "--", *paths))

        return self._cached(("compared", tree, *self._index_version(), *paths), query)

    def index(self, paths: Sequence[str] = ()) -> dict[str, list[TreeEntry]]:
        """Return file → entries in the index for the files to check; a file with a conflict has several entries."""

        def query() -> dict[str, list[TreeEntry]]:
            entries: dict[str, list[TreeEntry]] = {}
            for line in self.process.lines("ls-files", "--stage", "-z", "--full-name", "--", *(paths or [":/"])):
                fields, _, path = line.partition("\t")
                if self.wanted(path):
                    mode, oid, _ = fields.split(" ")
                    entries.setdefault(path, []).append(TreeEntry(mode, oid))
            return entries

        return self._cached(("index", *self._index_version(), *paths), query)

    def untracked(self, options: Iterable[str], paths: Sequence[str] = ()) -> list[str]:
        """Return the files to check that the index does not have. `options` are those of `git ls-files`."""
        listed = self.process.lines("ls-files", "--others", "-z", "--full-name", *options, "--", *paths)
        return [path for path in listed if self.wanted(path)]

    def in_history(self, options: Sequence[str], paths: Sequence[str] = ()) -> list[str]:
        """Return the files to check that some commits changed. `options` select the commits, as in `git log`."""
        formats = ("--format=", "--name-only", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "-m")
        output = self.process.run("log", *formats, *options, "--", *paths) or b""
        listed = dict.fromkeys(output.replace(b"\n", b"\0").split(b"\0"))
        return [path for path in map(os.fsdecode, listed) if path and self.wanted(path)]

    def _changes(self, fields: list[str]) -> tuple[TreeChange, ...]:
        return tuple(
            TreeChange(path, _entry(raw[0], raw[2]), _entry(raw[1], raw[3]))
            for raw, path in ((line[1:].split(" "), path) for line, path in zip(fields[::2], fields[1::2], strict=True))
            if self.wanted(path)
        )

    def _index_version(self) -> tuple[int, ...]:
        try:
            status = os.stat(self._index_file)
        except OSError:
            return ()
        return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino

    def _cached(self, key: tuple[object, ...], query: Callable[[], _T]) -> _T:
        return self.cache.get((self.root, self._index_file, self.process.folder, *key), query)

    # -- the disk --------------------------------------------------------------------------------------

    def differs(self, path: str, entry: TreeEntry | None) -> bool:
        """Return whether a file on the disk differs from an entry (`None`: no file), so that git would change it.

        Git converts some files (line ends, filters). Such a file counts as equal if its status is that in the index:
        git wrote it, and it has not changed since.
        """
        name = f"{self.root}/{path}"
        try:
            status = os.lstat(name)
        except OSError:
            return entry is not None
        if entry is None:
            return True
        if S_ISLNK(status.st_mode):
            return entry.mode != _LINK or _blob_id(os.fsencode(os.readlink(name)), entry.oid) != entry.oid
        if not S_ISREG(status.st_mode) or entry.mode not in {_FILE, _EXECUTABLE}:
            return True
        if (entry.mode == _EXECUTABLE) != bool(status.st_mode & 0o100):
            return True
        return not self._has_content(name, status, entry.oid) and not self._is_untouched(path, status, entry)

    def _has_content(self, name: str, status: os.stat_result, oid: str) -> bool:
        self.process.require_waiting()
        if status.st_size > _MAX_FILE_SIZE:
            return False
        try:
            with open(name, "rb") as file:
                return _blob_id(file.read(_MAX_FILE_SIZE), oid) == oid
        except OSError:
            return False

    def _is_untouched(self, path: str, status: os.stat_result, entry: TreeEntry) -> bool:
        output = self.process.run("ls-files", "--stage", "--debug", "--full-name", "--", f":(top,literal){path}")
        fields = dict(
            part.partition(": ")[::2]
            for line in os.fsdecode(output or b"").splitlines()[1:]
            for part in line.strip().split("\t")
        )
        seconds, nanoseconds = divmod(status.st_mtime_ns, 1_000_000_000)
        return (
            os.fsdecode(output or b"").startswith(f"{entry.mode} {entry.oid} 0\t")
            and fields.get("mtime") == f"{seconds}:{nanoseconds}"
            and fields.get("size") == str(status.st_size)
            and fields.get("ino") == str(status.st_ino & 0xFFFFFFFF)
        )


def _entry(mode: str, oid: str) -> TreeEntry | None:
    return None if mode == "000000" else TreeEntry(mode, oid)


def _blob_id(content: bytes, like: str) -> str:
    import hashlib

    digest = hashlib.sha256 if len(like) == 64 else hashlib.sha1  # noqa: PLR2004 - hexadecimal digits of SHA-256
    return digest(b"blob %d\0" % len(content) + content).hexdigest()
