"""Public names that a package imports on first use. Standard library only.

A process that handles one event pays for every import, so packages load only the modules that are used.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
