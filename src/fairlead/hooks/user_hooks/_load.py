"""Loads hook files in a worker. A module of the project runs only if its digest is the trusted one."""

from __future__ import annotations

import os
import sys
from hashlib import sha256
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any

from fairlead.hooks._manager import HookManager
from fairlead.hooks.user_hooks._imports import digest_of, is_local

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import CodeType, ModuleType

_MANAGER_NAME = "hooks"


class NotTrusted(ImportError):
    """A module of the project has changed since the hooks were trusted, or was not trusted with them."""


class LoadError(Exception):
    """The hook file `file` cannot be loaded.

    The message is one line, with file name and line number if they are known.
    """

    def __init__(self, message: str, file: str) -> None:
        super().__init__(message)
        self.file = file


def load_hooks(files: Sequence[str], digests: Mapping[str, str]) -> HookManager:
    """Return a manager with the hooks of all files. Raise `LoadError` if one of them cannot be loaded.

    `digests` are the trusted digests (SHA-256) by path. From now on they are checked for all imports of this process.
    """
    sys.meta_path.insert(0, _TrustedFinder(digests))
    manager = HookManager()
    for file in files:
        try:
            _include(manager, file, digests)
        except BaseException as error:  # a hook file may raise anything, SystemExit too
            raise LoadError(_describe(error, files), file) from error
    return manager


def _include(manager: HookManager, file: str, digests: Mapping[str, str]) -> None:
    module = _load(file, digests)
    named = getattr(module, _MANAGER_NAME, None)
    if not isinstance(named, HookManager):
        raise TypeError(f"it has no HookManager named {_MANAGER_NAME!r}")
    manager.include(named, prefix=f"{module.__name__}.")


def _describe(error: BaseException, files: Iterable[str]) -> str:
    """Return an error as one line, with the place in the hook files `files` at which it was raised, if it is known."""
    own = set(files)
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    at, traceback = "", error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename in own:
            at = f"{traceback.tb_frame.f_code.co_filename}:{traceback.tb_lineno}: "
        traceback = traceback.tb_next
    return f"{at}{error}" if isinstance(error, NotTrusted) else f"{at}{type(error).__name__}: {error}"


def _load(file: str, digests: Mapping[str, str]) -> ModuleType:
    name = os.path.splitext(os.path.basename(file))[0]
    if name in sys.modules:
        raise ImportError(f"{file}: there is another module named {name}; rename the file")
    folder = os.path.dirname(file)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    spec = spec_from_file_location(name, file, loader=_TrustedLoader(name, file, digests))
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {file}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class _TrustedLoader(SourceFileLoader):
    """Loads a Python file. It runs exactly the bytes that it has checked, never a compiled file."""

    def __init__(self, name: str, path: str, digests: Mapping[str, str]) -> None:
        super().__init__(name, path)
        self._digests = digests

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - as the base class has it
        """Return the compiled source. Raise `NotTrusted` if its digest is not the trusted one."""
        data = self.get_data(self.path)
        _check(self.path, sha256(data).hexdigest(), self._digests)
        return self.source_to_code(data, self.path)


class _TrustedFinder:
    """Finds modules by the other finders in `sys.meta_path`, and has modules of the project checked before they run."""

    def __init__(self, digests: Mapping[str, str]) -> None:
        self._digests = digests

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module; `None` if no finder finds it.

        Raise `NotTrusted` for an untrusted extension module.
        """
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                return self._checked(name, spec)
        return None

    def _checked(self, name: str, spec: ModuleSpec) -> ModuleSpec:
        if not spec.origin or not is_local(name, spec.origin):
            return spec
        if isinstance(spec.loader, SourceFileLoader):
            spec.loader, spec.cached = _TrustedLoader(name, spec.origin, self._digests), None
        else:  # an extension module, which the system reads again when it loads it
            _check(spec.origin, digest_of(spec.origin), self._digests)
        return spec


def _check(path: str, digest: str, digests: Mapping[str, str]) -> None:
    trusted = digests.get(os.path.realpath(path))
    if trusted is None:
        raise NotTrusted(
            f"{path} is imported, but was not trusted with the hooks; import it with a plain import statement, and "
            f"trust the file again"
        )
    if trusted != digest:
        raise NotTrusted(f"{path} has changed since the hooks were trusted")
