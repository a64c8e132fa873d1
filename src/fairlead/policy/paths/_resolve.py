"""Resolves paths: the file that a path leads to, and every name on the way there."""

from __future__ import annotations

import os
from stat import S_IFDIR, S_ISDIR, S_ISLNK, S_ISREG

from fairlead.policy.paths._spelling import in_disk_case, is_case_insensitive, nfc
from fairlead.structs import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Literal

    Status = os.stat_result | int | None
    """The status of a file, its mode alone, or `None` if there is no file."""
    StatusOrLink = Status | Literal[False]
    """A status, or `False` if there is a link on the way."""

_MAX_LINKS = 40
_MAX_FAST_LENGTH = 1024
"""The maximum length of a path whose parent folders are cached, so that no command can fill the memory with them."""
_PROCESS_LINK = r"/+proc/+(?:self|thread-self|\d+)/+(?:task/+\d+/+)?(?:(cwd)|root)(?=/|\Z)"
"""Links that lead to another place for this process than for the tool that will follow them."""


# -- one file, all its names ---------------------------------------------------------------------------


class ResolvedPath:
    """The file that a path leads to: every name on the way, and its status."""

    __slots__ = (
        "_below",
        "_status",
        "case_insensitive",
        "disk_path",
        "exists",
        "given",
        "is_file",
        "is_folder",
        "names",
        "real",
    )

    def __init__(
        self, given: str, names: tuple[str, ...], disk_path: str, status: Status, *, case_insensitive: bool = False
    ) -> None:
        mode = 0 if status is None else status if isinstance(status, int) else status.st_mode
        self.given = given
        """The path as the tool call names it."""
        self.names = names
        """The path's absolute names, in NFC: as written, after each link on the way, and at the end."""
        self.real = names[-1]
        self.disk_path = disk_path
        """The path at the end, in the disk's own spelling."""
        self.exists = status is not None
        self.is_folder = S_ISDIR(mode)
        self.is_file = S_ISREG(mode)
        self.case_insensitive = case_insensitive
        """Whether the disk ignores case."""
        self._status = status
        self._below: dict[str, tuple[str, ...]] = {}

    @property
    def version(self) -> tuple[int, ...]:
        """Values that differ once the file has changed; empty if they are not known."""
        status = self._status
        if status is None or isinstance(status, int):
            return ()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns

    @property
    def links(self) -> int:
        """The number of hard links; 0 for anything but a regular file, or if the status is not known."""
        status = self._status
        return status.st_nlink if self.is_file and isinstance(status, os.stat_result) else 0

    def below(self, base: BaseFolder) -> tuple[str, ...]:
        """Return the names that are below a folder, relative to it. Names of folders end with a slash."""
        cached = self._below.get(base.folder)
        if cached is None:
            if self.case_insensitive or len(self.names) > 1 or len(base.prefixes) > 1:
                cached = tuple(self._relative(base))
            elif self.real.startswith(base.prefixes):
                cached = (self.real[len(base.prefixes[0]) :] + ("/" if self.is_folder else ""),)
            else:
                cached = ()
            self._below[base.folder] = cached
        return cached

    def _relative(self, base: BaseFolder) -> Iterable[str]:
        end = "/" if self.is_folder else ""
        for prefix in base.prefixes:
            size = len(prefix)
            for name in self.names:
                if name.startswith(prefix) or (self.case_insensitive and name.lower().startswith(prefix.lower())):
                    yield name[size:] + end


def resolve(path: str, cwd: str, ignores_case: Callable[[str], bool] | None = None) -> ResolvedPath:
    """Resolve a path in a folder. Parts that do not exist are kept as they are.

    `ignores_case` returns whether the disk ignores case in a folder; by default the disk is probed. A `..` after a link
    leads to one file for a program that normalizes the path first, and to another for the system. Both are followed,
    and the system's file comes last.
    """
    absolute = _absolute(path, cwd)
    names: list[str] = []
    if _names_process(path):
        _follow(_expanded(path, cwd), names)  # another process may have another working directory
    if ".." in absolute:
        _, normalized_status = _follow(_normalized(absolute), names, cwd)
        disk_path, status = _follow(absolute, names, cwd)
        status = status if normalized_status else None
    else:
        disk_path, status = _follow(absolute, names, cwd)
    case_insensitive = (ignores_case or is_case_insensitive)(disk_path.rpartition("/")[0] or "/")
    if case_insensitive:
        names.append(in_disk_case(disk_path))
    unique = tuple(dict.fromkeys(map(nfc, names)))
    return ResolvedPath(path, unique, disk_path, status, case_insensitive=case_insensitive)


def _expanded(path: str, cwd: str) -> str:
    if path.startswith("~"):
        path = os.path.expanduser(path)
    return path if path.startswith("/") else f"{cwd}/{path}"


def _names_process(path: str) -> bool:
    return path.startswith("/proc/") and path[6:7].isdigit()


def _absolute(path: str, cwd: str) -> str:
    path = _expanded(path, cwd)
    if path.startswith("/proc/") or path.startswith("//"):  # noqa: PIE810 - two calls are faster than one tuple
        import re

        path = re.sub(_PROCESS_LINK, lambda link: cwd if link[1] else "", path, count=1)
    return path


def _normalized(path: str) -> str:
    normalized = os.path.normpath(path)
    return normalized[1:] if normalized.startswith("//") else normalized


def _follow(path: str, names: list[str], cwd: str | None = None) -> tuple[str, Status]:
    """Follow a path as the system does, add each name on the way to `names`, and return its end and status.

    With `cwd`, a link to the working directory of a process leads there. The status is `None` if the path
    does not exist, or has too many links.
    """
    rest = path.split("/")
    rest.reverse()
    done, links = "", 0
    status: os.stat_result | int = S_IFDIR
    names.append(_normalized(path))
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            done, status = done.rpartition("/")[0], S_IFDIR
            continue
        step = f"{done}/{part}"
        try:
            status = os.lstat(step)
        except OSError:
            return _end(step, rest, names), None
        if not S_ISLNK(status.st_mode):
            done = step
            continue
        links += 1
        if links > _MAX_LINKS:
            return _end(step, rest, names), None
        names.append(_joined(step, rest))
        try:
            destination = _process_link(step, cwd) or os.readlink(step)
        except PermissionError:  # a link of a process of another user
            return _end(step, rest, names), None
        rest.extend(reversed(destination.split("/")))
        if destination.startswith("/"):
            done = ""
    names.append(done or "/")
    return done or "/", status


def _process_link(step: str, cwd: str | None) -> str:
    """Return where a link of a process leads for the tool that follows it; "" for any other link."""
    if cwd is None or not step.startswith("/proc/"):
        return ""
    import re

    link = re.fullmatch(_PROCESS_LINK, step)
    return "" if link is None else cwd if link[1] else "/"


def _end(step: str, rest: list[str], names: list[str]) -> str:
    names.append(_joined(step, rest))
    return names[-1]


def _joined(step: str, rest: list[str]) -> str:
    return _normalized("/".join([step, *reversed(rest)])) if rest else step


class PathResolver:
    """Resolves the paths of one check, and looks up each part of them once. Not kept for longer: files change.

    Most paths have no link on the way. They have one name, and only their status is needed; all others go through
    `resolve`.
    """

    __slots__ = ("_included", "_resolved", "_status", "cwd", "whole_folders")

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self._included: tuple[ResolvedPath, ...] = ()
        self.whole_folders: dict[str, None] = {}
        """The folders that a call touches with everything below."""
        self._resolved: dict[str, ResolvedPath] = {}
        self._status: dict[str, StatusOrLink] = {"": S_IFDIR, "/": S_IFDIR}

    def resolve(self, path: str) -> ResolvedPath:
        """Resolve a path relative to `cwd`. Resolving it again returns the same object."""
        cached = self._resolved.get(path)
        if cached is None:
            cached = self._resolved[path] = self._without_links(path) or resolve(path, self.cwd)
        return cached

    def touch(self, path: str, *, whole: bool = False) -> None:
        """Record a path that no check resolves, so that the policies above it are found.

        With `whole`, the policies below it are found, too, if it is a folder.
        """
        target = self.resolve(path)
        if whole and target.is_folder:
            self.whole_folders[target.real] = None

    def resolved(self) -> tuple[ResolvedPath, ...]:
        """Return all paths that were resolved, and those of the resolvers that were included."""
        return (*self._resolved.values(), *self._included)

    def include(self, other: PathResolver) -> None:
        """Add the paths that another resolver has resolved for the same call."""
        self._included += other.resolved()
        self.whole_folders |= other.whole_folders

    @property
    def statuses(self) -> Mapping[str, StatusOrLink]:
        """The statuses of all paths that were looked up."""
        return self._status

    def _without_links(self, path: str) -> ResolvedPath | None:
        absolute = _absolute(path, self.cwd)
        if _names_process(path):
            return None
        if len(absolute) > _MAX_FAST_LENGTH or absolute[0] != "/" or "\0" in absolute:
            return None
        if "/." in absolute or "//" in absolute or absolute[-1] == "/":
            normalized = _normalized(absolute)
            status = self._look_up(normalized)
            if "/.." in absolute:
                status = self._look_up_parents(absolute, status)
        else:
            normalized = absolute
            status = self._look_up(normalized)
        if status is False or is_case_insensitive(normalized[: normalized.rfind("/")] or "/"):
            return None
        return ResolvedPath(path, (normalized if normalized.isascii() else nfc(normalized),), normalized, status)

    def _look_up_parents(self, path: str, status: StatusOrLink) -> StatusOrLink:
        """Return `status`, that of the normalized path; `None` if a folder that a `..` leaves is missing.

        The system requires these folders. Return `False` if one leads through a link, or the path has `//` or `/./`.
        """
        path = f"{path}/"
        if status is False or "//" in path or "/./" in path:
            return False
        while (index := path.find("/../")) >= 0:
            left = self._look_up(path[:index])
            if not left:
                return left
            path = path[: max(0, path.rfind("/", 0, index))] + path[index + len("/..") :]
        return status

    def _look_up(self, path: str) -> StatusOrLink:
        """Return the status of a normalized path: `None` if there is no file, `False` if there is a link on the way."""
        known = self._status
        if path in known:
            return known[path]
        steps = [path]
        step = path[: path.rfind("/")]
        while step not in known:
            steps.append(step)
            step = step[: step.rfind("/")]
        status = known[step]
        while steps and status:
            step = steps.pop()
            try:
                status = os.lstat(step)
            except OSError:
                status = None
            else:
                status = False if S_ISLNK(status.st_mode) else status
            known[step] = status
        if steps:
            known[path] = status
        return status


class BaseFolder(Struct, frozen=True):
    """A folder that patterns are relative to, under each of its names."""

    folder: str
    prefixes: tuple[str, ...]
    """Each name of the folder, with a slash at its end."""

    @classmethod
    def at(cls, folder: str) -> BaseFolder:
        """Return a folder with all its names, which are looked up on the disk."""
        names = resolve(folder, "/").names
        return cls(folder, tuple(dict.fromkeys(name.rstrip("/") + "/" for name in names)))
