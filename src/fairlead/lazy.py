"""Imports that cost less: public names that a package imports on first use. Standard library only.

A process that handles one event pays for every import, so packages load only the modules that are used.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping


def lazy_exports(package: str, modules: Mapping[str, tuple[str, ...]]) -> Callable[[str], object]:
    """Return a module-level `__getattr__` that imports each name from the module of `package` that defines it."""
    homes = {name: module for module, names in modules.items() for name in names}

    def load(name: str) -> object:
        module = homes.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(f"{package}.{module}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load


@contextmanager
def light_imports() -> Iterator[None]:
    """Keep msgspec from importing `typing_extensions`, which it can do without: that takes up to 10 ms."""
    name = "typing_extensions"
    if name in sys.modules:
        yield
        return
    sys.modules[name] = None  # type: ignore[assignment]  # `import` takes it for a module that does not exist
    try:
        yield
    finally:
        del sys.modules[name]
