"""Finds the modules of a project that a Python file imports, without running the file or any of them.

As a script, this prints the digests of the file and these modules as JSON. It is run by the interpreter that will load
the hook file, so it imports only the standard library.
"""

import ast
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from importlib.machinery import ModuleSpec

_STANDARD_LIBRARY = os.path.realpath(os.path.dirname(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_OWN = frozenset({"fairlead", "msgspec"})
"""Packages that the worker provides, so that they do not count as modules of the project."""


def is_local(name: str, origin: str | None) -> bool:
    """Return whether a module is a file of a project, and not of the standard library or an installed package.

    `origin` is the `origin` in the module's spec: the path of a file, or else `None` or a word such as `built-in`.
    """
    if not origin or name.partition(".")[0] in _OWN or not os.path.isabs(origin):
        return False
    path = os.path.realpath(origin)
    return not path.startswith(_STANDARD_LIBRARY) and not any(part in path for part in _INSTALLED)


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, as hexadecimal digits."""
    with open(path, "rb") as file:
        return sha256(file.read()).hexdigest()


def find_local_imports(path: str) -> dict[str, str]:
    """Return the digests, by path, of a file and all modules of the project that it imports directly or indirectly.

    Imports within functions count, too. The folder of the file is put into `sys.path`.
    """
    sys.path.insert(0, os.path.dirname(path))
    digests: dict[str, str] = {}
    waiting = [(path, "")]
    while waiting:
        file, package = waiting.pop()
        if file in digests:
            continue
        digests[file] = digest_of(file)
        if file.endswith(".py"):
            waiting += [found for name in _imported_names(file, package) for found in _files_of(name)]
    return digests


def _imported_names(path: str, package: str) -> Iterator[str]:
    """Yield the names of the modules that a file may import. `from a import b` may import the module `a.b`.

    `package` is the name of the file's package, "" for none. Yield nothing if the file is not valid Python.
    """
    with open(path, "rb") as file:
        try:
            tree = ast.parse(file.read(), path)
        except (SyntaxError, ValueError):
            return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node.module or "", package, node.level)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)


def _absolute(module: str, package: str, level: int) -> str:
    if not level:
        return module
    parts = package.split(".") if package else []
    above = parts[: len(parts) - level + 1]
    return ".".join([*above, module] if module else above)


def _files_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield path and package of each file of the project that runs when a module is imported.

    For the module `a.b` these are `a/__init__.py` and `a/b.py`, each with the package `a`.
    """
    folders, parts = None, name.split(".")
    for depth in range(1, len(parts) + 1):
        whole = ".".join(parts[:depth])
        spec = _find_spec(whole, folders)
        if spec is None:
            return
        folders = spec.submodule_search_locations
        if is_local(whole, spec.origin):
            yield os.path.realpath(str(spec.origin)), whole if folders is not None else whole.rpartition(".")[0]
        if folders is None:
            return


def _find_spec(name: str, folders: list[str] | None) -> ModuleSpec | None:
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = find(name, folders) if find else None
        if spec is not None:
            return spec
    return None


if __name__ == "__main__":
    sys.stdout.write(json.dumps(find_local_imports(os.path.realpath(sys.argv[1]))))
