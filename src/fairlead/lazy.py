"""Imports that cost less: public names that a package imports on first use. Standard library only.

A process that handles one event pays for every import, so packages load only the modules that are used.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a module-level `__getattr__` that imports each name from the module of `package` that defines it."""
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        module = homes.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        __import__(f"{package}.{module}")
        value = getattr(sys.modules[f"{package}.{module}"], name)
        setattr(sys.modules[package], name, value)
        return value

    return load


class light_imports:  # noqa: N801 - used like a function
    """Keep msgspec from importing `typing_extensions`, which it can do without: that takes up to 10 ms."""

    _name = "typing_extensions"

    def __enter__(self) -> None:
        """Have `import` take it for a module that does not exist."""
        self._is_loaded = self._name in sys.modules
        if not self._is_loaded:
            sys.modules[self._name] = None  # type: ignore[assignment]

    def __exit__(self, *_: object) -> None:
        """Allow it again."""
        if not self._is_loaded:
            del sys.modules[self._name]


class suppress:  # noqa: N801 - named like that of `contextlib`, which takes a millisecond to import
    """Ignore some exceptions in a `with` block."""

    def __init__(self, *kinds: type[BaseException]) -> None:
        """Name the exceptions to ignore."""
        self._kinds = kinds

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        """Return whether the exception is ignored."""
        return kind is not None and issubclass(kind, self._kinds)


_structs: list[str] = []


def use_light_structs() -> None:
    """Have `fairlead.structs` define its types without msgspec in this process, which decides one event and ends."""
    if _structs:
        raise RuntimeError("fairlead.structs is in use already")
    _structs.append("light")


def has_light_structs() -> bool:
    """Return whether this process defines its types without msgspec; the answer stays the same from then on."""
    if not _structs:
        _structs.append("msgspec")
    return _structs[0] == "light"
