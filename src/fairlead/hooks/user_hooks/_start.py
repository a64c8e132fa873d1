"""Starts a worker in an interpreter that may not have Fairlead installed. Run as a script.

Arguments: the working directory, the folders that contain the packages `fairlead` and `msgspec`, the cache tag of their
interpreter, and Fairlead's version. Only these two packages are imported from their folders.
"""

import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn

_SOCKET = 3


class _PackageFinder:
    """Finds the packages `fairlead` and `msgspec` in the given folders."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: object = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of one of the two packages. The modules in them are found as usual."""
        return PathFinder.find_spec(name, [self._folders[name]], target) if name in self._folders else None


def _refuse(problem: str) -> NoReturn:
    data = json.dumps({"problem": problem}).encode()
    os.write(_SOCKET, len(data).to_bytes(4, "big") + data)
    sys.exit(1)


def _main() -> None:
    folder, fairlead_folder, msgspec_folder, tag, version = sys.argv[1:]
    os.chdir(folder)
    if sys.implementation.cache_tag == tag:
        sys.meta_path.insert(0, _PackageFinder({"fairlead": fairlead_folder, "msgspec": msgspec_folder}))
    else:
        try:
            from fairlead import __version__ as own
        except ImportError:
            own = ""
        if own != version:
            _refuse(
                f"{sys.executable} is another version of Python than Fairlead's, and has no fairlead {version}; "
                f"install it there: {sys.executable} -m pip install fairlead=={version}"
            )
    sys.argv[1:] = []
    from fairlead.hooks.user_hooks._worker import serve

    serve(_SOCKET)


_main()
