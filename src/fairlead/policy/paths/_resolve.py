"""Which file a path means, and every name that leads to it."""

from __future__ import annotations

import os
from stat import S_IFDIR, S_ISDIR, S_ISLNK, S_ISREG
from typing import TYPE_CHECKING, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    _There = os.stat_result | int | Literal[False] | None

_MAX_LINKS = 40
_MAX_KNOWN = 4096
_LONGEST = 1024
"""A longer path takes the slow road, so that no command can fill the memory with the folders above its paths."""
_PROCESS_LINK = r"/+proc/+(?:self|thread-self|\d+)/+(?:task/+\d+/+)?(?:(cwd)|root)(?=/|\Z)"
"""Links that lead elsewhere for the one who asks than for the tool that is going to follow them."""


# -- one file, all its names ---------------------------------------------------------------------------


class Target:
    """A file as the guards see it: every name that leads to it, and what is there now."""

    __slots__ = ("_below", "_there", "blind", "disk", "exists", "given", "is_file", "is_folder", "names", "real")

    def __init__(
        self, given: str, names: tuple[str, ...], disk: str, there: os.stat_result | int | None, *, blind: bool = False
    ) -> None:
        mode = 0 if there is None else there if isinstance(there, int) else there.st_mode
        self.given = given
        """As the tool has it."""
        self.names = names
        """Absolute and NFC: as written, after each link on the way, and where it ends."""
        self.real = names[-1]
        self.disk = disk
        """Where it ends, as the disk spells it."""
        self.exists = there is not None
        self.is_folder = S_ISDIR(mode)
        self.is_file = S_ISREG(mode)
        self.blind = blind
        """The disk takes upper for lower case."""
        self._there = there
        self._below: dict[str, tuple[str, ...]] = {}

    @property
    def version(self) -> tuple[int, ...]:
        """Differs once the file was changed; nothing if that is not known."""
        there = self._there
        if there is None or isinstance(there, int):
            return ()
        return there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns

    @property
    def links(self) -> int:
        """How many names the file itself has on the disk; 0 for what is no file, or was not looked at."""
        there = self._there
        return there.st_nlink if self.is_file and isinstance(there, os.stat_result) else 0

    def below(self, base: Base) -> tuple[str, ...]:
        """Give its names relative to a folder; none if it is not below. Folders end with a slash."""
        known = self._below.get(base.folder)
        if known is None:
            if self.blind or len(self.names) > 1 or len(base.prefixes) > 1:
                known = tuple(self._relative(base))
            elif self.real.startswith(base.prefixes):
                known = (self.real[len(base.prefixes[0]) :] + ("/" if self.is_folder else ""),)
            else:
                known = ()
            self._below[base.folder] = known
        return known

    def _relative(self, base: Base) -> Iterable[str]:
        end = "/" if self.is_folder else ""
        for prefix in base.prefixes:
            size = len(prefix)
            for name in self.names:
                if name.startswith(prefix) or (self.blind and name.lower().startswith(prefix.lower())):
                    yield name[size:] + end


def resolve(path: str, cwd: str, is_blind: Callable[[str], bool] | None = None) -> str:
    """Give the one true name: absolute, without `~`, `..` or links, NFC, in the disk's case.

    Parts that do not exist are kept as they are. `is_blind` tells whether a folder takes upper for lower case.
    """
    return target_of(path, cwd, is_blind).real


def target_of(path: str, cwd: str, is_blind: Callable[[str], bool] | None = None) -> Target:
    """Find what a path means in a folder.

    A `..` behind a link means one thing to a program that tidies the path first, and another to the system: both
    are followed, and the system's meaning comes last.
    """
    absolute = _absolute(path, cwd)
    names: list[str] = []
    if ".." in absolute:
        _, tidied = _follow(_tidy(absolute), names)
        disk, there = _follow(absolute, names)
        there = there if tidied else None
    else:
        disk, there = _follow(absolute, names)
    blind = (is_blind or is_case_blind)(disk.rpartition("/")[0] or "/")
    if blind:
        names.append(_true_case(disk))
    return Target(path, tuple(dict.fromkeys(map(nfc, names))), disk, there, blind=blind)


def _absolute(path: str, cwd: str) -> str:
    if path.startswith("~"):
        path = os.path.expanduser(path)
    if not path.startswith("/"):
        path = f"{cwd}/{path}"
    if path.startswith("/proc/") or path.startswith("//"):  # noqa: PIE810 - two names for a fast road
        import re

        path = re.sub(_PROCESS_LINK, lambda link: cwd if link[1] else "", path, count=1)
    return path


def _tidy(path: str) -> str:
    tidy = os.path.normpath(path)
    return tidy[1:] if tidy.startswith("//") else tidy


def _follow(path: str, names: list[str]) -> tuple[str, os.stat_result | int | None]:
    """Go along a path as the system does, note each name on the way, and tell where it ends and what is there."""
    rest = path.split("/")
    rest.reverse()
    done, links = "", 0
    there: os.stat_result | int = S_IFDIR
    names.append(_tidy(path))
    while rest:
        part = rest.pop()
        if part in {"", "."}:
            continue
        if part == "..":
            done, there = done.rpartition("/")[0], S_IFDIR
            continue
        step = f"{done}/{part}"
        try:
            there = os.lstat(step)
        except OSError:
            return _end(step, rest, names), None
        if not S_ISLNK(there.st_mode):
            done = step
            continue
        links += 1
        if links > _MAX_LINKS:
            return _end(step, rest, names), None
        names.append(_joined(step, rest))
        leads = os.readlink(step)
        rest.extend(reversed(leads.split("/")))
        if leads.startswith("/"):
            done = ""
    names.append(done or "/")
    return done or "/", there


def _end(step: str, rest: list[str], names: list[str]) -> str:
    names.append(_joined(step, rest))
    return names[-1]


def _joined(step: str, rest: list[str]) -> str:
    return _tidy("/".join([step, *reversed(rest)])) if rest else step


def nfc(name: str) -> str:
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFC", name)


class Disk:
    """What paths mean in a folder, each part of them looked at once. It lives for one check, because files change.

    Most paths meet no link on their way. They have one name, and need no more than to know what is there; all
    others go the whole way, in `target_of`.
    """

    __slots__ = ("_targets", "_there", "cwd")

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self._targets: dict[str, Target] = {}
        self._there: dict[str, _There] = {"": S_IFDIR, "/": S_IFDIR}

    def target(self, path: str) -> Target:
        """Find what a path means."""
        known = self._targets.get(path)
        if known is None:
            known = self._targets[path] = self._without_links(path) or target_of(path, self.cwd)
        return known

    def _without_links(self, path: str) -> Target | None:
        absolute = _absolute(path, self.cwd)
        if len(absolute) > _LONGEST or absolute[0] != "/" or "\0" in absolute:
            return None
        if "/." in absolute or "//" in absolute or absolute[-1] == "/":
            tidy = _tidy(absolute)
            there = self._look_back(absolute, self._look(tidy)) if "/.." in absolute else self._look(tidy)
        else:
            tidy = absolute
            there = self._look(tidy)
        if there is False or is_case_blind(tidy[: tidy.rfind("/")] or "/"):
            return None
        return Target(path, (tidy if tidy.isascii() else nfc(tidy),), tidy, there)

    def _look_back(self, path: str, there: _There) -> _There:
        """Go along a path with `..` as the system does, for which each folder that is left again must be there."""
        path = f"{path}/"
        if there is False or "//" in path or "/./" in path:
            return False
        while (at := path.find("/../")) >= 0:
            left = self._look(path[:at])
            if not left:
                return left
            path = path[: max(0, path.rfind("/", 0, at))] + path[at + len("/..") :]
        return there

    def _look(self, path: str) -> _There:
        """Tell what is at a tidy path: `None` for nothing, `False` if there is a link on the way."""
        seen = self._there
        if path in seen:
            return seen[path]
        steps = [path]
        step = path[: path.rfind("/")]
        while step not in seen:
            steps.append(step)
            step = step[: step.rfind("/")]
        found = seen[step]
        while steps and found:
            step = steps.pop()
            try:
                found = os.lstat(step)
            except OSError:
                found = None
            else:
                found = False if S_ISLNK(found.st_mode) else found
            seen[step] = found
        if steps:
            seen[path] = found
        return found


class Base(msgspec.Struct, frozen=True):
    """A folder that patterns are relative to, as it is called and where it really is."""

    folder: str
    prefixes: tuple[str, ...]

    @classmethod
    def at(cls, folder: str) -> Base:
        """Look where a folder is."""
        names = target_of(folder, "/").names
        return cls(folder, tuple(dict.fromkeys(name.rstrip("/") + "/" for name in names)))


# -- case ----------------------------------------------------------------------------------------------

_blind: dict[str, bool] = {}


def is_case_blind(folder: str) -> bool:
    """Tell whether the disk takes upper for lower case at a folder; asked once for each."""
    known = _blind.get(folder)
    if known is None:
        known = _ask_case(folder)
        if len(_blind) >= _MAX_KNOWN:
            _blind.clear()
        _blind[folder] = known
    return known


def _ask_case(folder: str) -> bool:
    """Ask with the nearest folder above that is there, and has letters in its name."""
    while True:
        parent, _, name = folder.rpartition("/")
        other = name.swapcase()
        if not name:
            return False
        if other != name:
            try:
                return os.path.samestat(os.stat(f"{parent}/{other}"), os.stat(folder))
            except OSError:
                if os.path.exists(folder):
                    return False
        folder = parent


def _true_case(path: str) -> str:
    """Spell each part as its folder does."""
    done = ""
    for part in path.split("/")[1:]:
        done = f"{done}/{_spelled(done or '/', part)}"
    return done


def _spelled(folder: str, part: str) -> str:
    try:
        entries = os.listdir(folder)
    except OSError:
        return part
    if part in entries:
        return part
    wanted = nfc(part).casefold()
    return next((entry for entry in entries if nfc(entry).casefold() == wanted), part)
