"""The script that starts a worker, in an interpreter in which Fairlead need not be installed.

Its arguments are the working directory, the folder that contains the package `fairlead`, the one that contains
`msgspec`, the cache tag of the interpreter that these belong to, and Fairlead's version. With the same cache tag, only
these two packages are imported from these folders. With another, the same version of Fairlead must be installed.
"""

import json
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any, NoReturn

_SOCKET = 3


class _PackageFinder:
    """Finds the packages that `folders` names, each in the folder that it gives for them."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, name: str, path: object = None, target: Any = None) -> ModuleSpec | None:  # noqa: ARG002
        """Return the spec of one of these packages; `None` for any other module."""
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
