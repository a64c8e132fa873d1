"""The Python environment of the guards: the interpreter, the libraries, and what Python loads when it starts.

It is the environment of this process. A project's own environments do not count, unless Fairlead itself runs from one.
"""

from __future__ import annotations

import os
import sys

from fairlead.lazy import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SITE_FOLDERS = ("site-packages", "dist-packages", "lib-dynload")
_CUSTOMIZING = ("sitecustomize.py", "usercustomize.py", "sitecustomize", "usercustomize")
"""What Python imports when it starts, from any folder of its path."""
_PROGRAMS = ("fairlead-hook", "fairlead", "fairlead-python")
_IN_VENV = ("bin", "Scripts", "lib", "lib64", "Lib", "pyvenv.cfg")


@cache
def environment_paths() -> tuple[str, ...]:
    """Return the absolute paths of files and folders that no agent may change.

    A path below another one is left out, unless it is a link.
    """
    paths = sorted({path for path in _paths() if path.startswith("/")})
    return tuple(path for path in paths if os.path.islink(path) or not _is_below(path, paths))


def _is_below(path: str, others: Iterable[str]) -> bool:
    return any(path.startswith(f"{other}/") for other in others)


@cache
def environment_prefixes() -> tuple[str, ...]:
    """Return the prefixes of paths in the environment: the whole virtual environment, else the library folders."""
    paths = {*environment_paths(), *([sys.prefix] if sys.prefix != sys.base_prefix else [])}
    return tuple(f"{name}/" for path in paths for name in {path, os.path.realpath(path)})


@cache
def library_prefixes() -> tuple[str, ...]:
    """Return the prefixes of the paths of the interpreter's shared library."""
    prefixes = {sys.base_prefix, os.path.realpath(sys.base_prefix)}
    return tuple(f"{prefix}/{folder}/libpython" for prefix in prefixes for folder in ("lib", "lib64"))


def _paths() -> Iterator[str]:
    yield from _programs()
    for module in (os, sys.modules[__name__.partition(".")[0]]):
        yield os.path.dirname(module.__file__ or "")
    yield from [path for folder in sys.path if os.path.exists(path := f"{folder}/msgspec")][:1]
    if sys.prefix != sys.base_prefix:
        yield from (f"{sys.prefix}/{name}" for name in _IN_VENV)
    for folder in sys.path:
        if folder.endswith((*_SITE_FOLDERS, ".zip")):
            yield folder
        elif folder:
            yield from (f"{folder}/{name}" for name in _CUSTOMIZING)
    yield from _user_site()


def _programs() -> Iterator[str]:
    python = sys.executable
    if python:
        beside = os.path.dirname(python)
        yield from (python, os.path.realpath(python), *(f"{beside}/{name}" for name in _PROGRAMS))


def _user_site() -> Iterator[str]:
    """Yield the user's own libraries if Python looks there: not in a virtual environment."""
    site = sys.modules.get("site")
    if site is not None and site.ENABLE_USER_SITE and site.USER_SITE:
        yield site.USER_SITE
