"""Makes imports faster: names on first use, modules from one file, types without msgspec. Standard library only.

A process that handles one event pays for every import, so packages load only the modules that are used.
"""

from __future__ import annotations

import marshal
import os
import sys
from _imp import source_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from functools import cache as cache  # noqa: PLC0414 - exported
    from functools import cached_property as cached_property  # noqa: PLC0414
    from importlib.machinery import ModuleSpec
    from types import ModuleType


def lazy_exports(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a `__getattr__` for the package that imports a name, on first use, from the module that defines it.

    `modules` maps each module, relative to `package`, to the names that it defines.
    """
    module_of = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        module = module_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        __import__(f"{package}.{module}")
        value = getattr(sys.modules[f"{package}.{module}"], name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class light_imports:  # noqa: N801 - used like a function
    """Keeps msgspec from importing `typing_extensions` in a `with` block: the import takes up to 10 ms."""

    _name = "typing_extensions"

    def __enter__(self) -> None:
        """Make the import of `typing_extensions` fail, unless it is imported already."""
        self._is_loaded = self._name in sys.modules
        if not self._is_loaded:
            sys.modules[self._name] = None  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        """Allow the import of `typing_extensions` again."""
        if not self._is_loaded:
            del sys.modules[self._name]


class suppress:  # noqa: N801 - named like that of `contextlib`, which takes a millisecond to import
    """Ignores exceptions of the given types in a `with` block."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """Return `True`, which suppresses the exception, if it has one of the given types."""
        return kind is not None and issubclass(kind, self._kinds)


class CachedModules:
    """Imports the modules of a package from one file, as a meta path finder and loader.

    Finding and opening a hundred files takes as long as running them. The file contains the compiled modules. It is in
    `__pycache__`, and is trusted like the other files there. A module whose source has changed, or whose code in the
    file is damaged, is imported as usual.
    """

    def __init__(self, package: ModuleType, rare: str) -> None:
        """Read the index of the file, if there is one. Few processes need modules whose names start with `rare`."""
        self._package = package.__name__
        self._folder = os.path.dirname(package.__file__ or "")
        self._path = f"{self._folder}/__pycache__/light.{sys.implementation.cache_tag}.bin"
        self._key = [sys.version, package.__version__]
        self._entries: dict[str, tuple[tuple[int, ...], bool, int, int, bytes]] = {}
        self._codes: dict[str, bytes] = {}
        """Module → its code, from `find_spec` until `exec_module`."""
        self._rare = rare
        self._usual: list[str] = []
        """The modules that `load` runs, each after the modules that it imports."""
        self._compared = 0
        """The number of processes that have needed all modules in `_usual`, at most `_TO_COMPARE`."""
        self._order: list[str] = []
        """The modules that this process has run from the file, in the order in which they finished."""
        self._file = -1
        self.has_missed = False
        """Whether a module of the package was not in the file, had changed or was damaged."""
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            head = os.read(self._file, _HEADER)
            index = os.read(self._file, min(_MAX_INDEX, int.from_bytes(head[:8], "big")))
            if _hash(index) != head[8:]:
                return
            key, entries, usual, compared = marshal.loads(index)  # noqa: S302 - as trusted as compiled modules
            self._start = _HEADER + len(index)
        except (OSError, ValueError, EOFError, TypeError):
            return
        if key == self._key:
            self._entries, self._usual, self._compared = entries, usual, compared

    def load(self) -> None:
        """Run the modules that nearly every process needs, without the overhead of `import`.

        Each of the first `_TO_COMPARE` processes has needed these modules. A process that missed a module in the file,
        or needed a rare one, is not counted. At the first module that cannot be run from the file, this method returns;
        `import` then loads the missing modules.
        """
        for name in self._usual if self._compared == _TO_COMPARE else ():
            package, _, last = name.rpartition(".")
            if name in sys.modules or package not in sys.modules:  # the package imports it
                continue
            spec = self.find_spec(name)
            if spec is None:
                return
            sys.modules[name] = module = _module_of(spec)
            try:
                self.exec_module(module)
            except Exception:  # noqa: BLE001 - `import` fails in the same way, where the error is handled
                del sys.modules[name]
                return
            setattr(sys.modules[package], last, module)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """Return the spec of a module; `None` if it is of another package, not in the file, changed or damaged."""
        if not name.startswith(f"{self._package}."):
            return None
        stamp, is_package, *_ = self._entries.get(name, ((), False))
        source = self._source(name, is_package=is_package)
        code = self._code(name) if stamp and stamp == _stamp(source) else b""
        if not code:
            self.has_missed = True
            return None
        self._codes[name] = code
        spec: ModuleSpec = type(__spec__)(name, self, origin=source, is_package=is_package)  # type: ignore[arg-type]
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(source))
        return spec

    def create_module(self, _spec: ModuleSpec) -> None:
        """Return `None`, so that Python creates an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module that `find_spec` has found."""
        exec(marshal.loads(self._codes.pop(module.__name__)), module.__dict__)  # noqa: S102, S302 - as Python's loader
        self._order.append(module.__name__)

    def save(self) -> None:
        """Write the file again if it lacks modules of this process, or its list for `load` is not complete yet.

        Does nothing if the folder is read-only or Python must not write compiled modules. Errors are ignored.
        """
        folder = os.path.dirname(self._path)
        if not self.has_missed:
            if self._compared == _TO_COMPARE or any(name.startswith(self._rare) for name in self._order):
                return
            needed = set(self._order)
            self._usual = [name for name in self._usual if name in needed] if self._compared else self._order
            self._compared += 1
        if sys.dont_write_bytecode or not os.access(folder, os.W_OK):
            return
        stamps = {
            name: (stamp, is_package)
            for name, (stamp, is_package, *_) in self._entries.items()
            if stamp == _stamp(self._source(name, is_package=is_package))  # else it has changed, or there is none
        }
        codes = {name: code for name in stamps if (code := self._code(name))}
        for name, module in list(sys.modules.items()):
            loader = getattr(getattr(module, "__spec__", None), "loader", self)
            if name.startswith(f"{self._package}.") and loader is not self:
                is_package = hasattr(module, "__path__")
                source = self._source(name, is_package=is_package)
                if (stamp := _stamp(source)) and module.__file__ == source:
                    stamps[name] = stamp, is_package
                    codes[name] = marshal.dumps(module.__spec__.loader.get_code(name))  # type: ignore[union-attr]
        entries, offset = {}, 0
        for name, code in codes.items():
            entries[name] = *stamps[name], offset, len(code), _hash(code)
            offset += len(code)
        if not all(name in entries for name in self._usual):
            self._usual, self._compared = [], 0
        index = marshal.dumps((self._key, entries, self._usual, self._compared))
        temporary = f"{self._path}.{os.urandom(6).hex()}"  # two namespaces may have the same pid at the same time
        with suppress(OSError):
            with open(temporary, "wb") as file:
                file.write(b"".join((len(index).to_bytes(8, "big"), _hash(index), index, *codes.values())))
            os.replace(temporary, self._path)

    def _code(self, name: str) -> bytes:
        """Return the code of a module; empty if it is damaged."""
        *_, at, size, expected = self._entries[name]
        code = os.pread(self._file, size, self._start + at)
        return code if _hash(code) == expected else b""

    def _source(self, name: str, *, is_package: bool) -> str:
        inner = name[len(self._package) :].replace(".", "/")
        return f"{self._folder}{inner}{'/__init__.py' if is_package else '.py'}"


def _module_of(spec: ModuleSpec) -> ModuleType:
    """Return a module with the attributes that `import` would give it, in a third of the time."""
    module = type(sys)(spec.name)
    module.__spec__ = spec
    module.__loader__ = spec.loader
    module.__file__ = spec.origin
    module.__package__ = spec.parent
    if spec.submodule_search_locations is not None:
        module.__path__ = spec.submodule_search_locations
    return module


_TO_COMPARE = 3
_MAX_INDEX = 1 << 20
_HEADER = 16
"""Bytes before the index: its size and its hash."""


def _hash(data: bytes) -> bytes:
    """Return the hash that Python uses for its own compiled modules."""
    return source_hash(0, data)


def _stamp(file: str) -> tuple[int, ...]:
    """Return values that differ once a file has changed; empty if there is no such file.

    They include the change time, which no program can set.
    """
    try:
        status = os.stat(file)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


_structs: list[str] = []


def use_light_structs() -> None:
    """Make `fairlead.structs` define its types without msgspec. For a process that decides one event and ends.

    Also defers the import of `re`. Raises `RuntimeError` if `fairlead.structs` is in use already.
    """
    if _structs:
        raise RuntimeError("fairlead.structs is in use already")
    _structs.append("light")
    if "re" not in sys.modules:
        sys.modules["re"] = _DeferredModule("re")


class _DeferredModule(type(sys)):  # type: ignore[misc]  # the type of modules, without a module for it
    """A module that is imported when it is first used. Most events need no regular expression, and `re` takes 5 ms."""

    def __getattr__(self, name: str) -> object:
        """Import the module, and copy its attributes."""
        module = str(self.__name__)
        if sys.modules.get(module) is self:
            del sys.modules[module]
        self.__dict__.update(__import__(module).__dict__)
        return getattr(sys.modules[module], name)


def has_light_structs() -> bool:
    """Return whether this process defines its types without msgspec. After the first call the answer cannot change."""
    if not _structs:
        _structs.append("msgspec")
    return _structs[0] == "light"


if not TYPE_CHECKING:

    def cache(function: Callable[..., object]) -> Callable[..., object]:
        """Return `functools.cache` of a function. A process with light structs uses a dict: `functools` takes 2 ms."""
        if not has_light_structs():
            from functools import cache

            return cache(function)
        results: dict[tuple[object, ...], object] = {}

        def cached(*args: object) -> object:
            if args not in results:
                results[args] = function(*args)
            return results[args]

        return cached

    def cached_property(function: Callable[[object], object]) -> object:
        """Return `functools.cached_property` of a function; in a process with light structs, an equivalent."""
        if has_light_structs():
            return _LightProperty(function)
        from functools import cached_property

        return cached_property(function)


class _LightProperty:
    """A property that is computed once for each object, which then has the value as an attribute."""

    def __init__(self, function: Callable[[object], object]) -> None:
        self._function = function

    def __get__(self, owner: object, _kind: type) -> object:
        value = owner.__dict__[self._function.__name__] = self._function(owner)
        return value
