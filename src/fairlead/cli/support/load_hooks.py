"""Loads the hooks that a command line names: managers in Python files and modules, rules in other files."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fairlead.hooks import HookManager, Problem, Rules, load_rules

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

    from fairlead.events import Event

_DEFAULT_NAME = "hooks"
_RUNNING = "FAIRLEAD_RULES"


def load_manager(manager: HookManager, event: Event, targets: Iterable[str], rules: Iterable[str]) -> list[Problem]:
    """Register the hooks of the command line in `manager`, and return the problems that concern the event.

    `targets` are the values of `--hooks`, `rules` those of `--rules`. A file that cannot be loaded adds a problem, and
    raises nothing.
    """
    problems: list[Problem] = []
    for target in targets:
        problems += _include(manager, target)
    for path in rules:
        loaded = _rules(path)
        loaded.register(manager)
        problems += [problem for problem in loaded.problems if problem.event in {None, event.event_type}]
    return problems


def denies(problem: Problem) -> bool:
    """Return whether a gate must deny, because the hook that could not be loaded may have been a guard."""
    return problem.dropped and (problem.event is not None or problem.path in {"$", "hooks"})


def rules_env(rules: Iterable[str]) -> dict[str, str]:
    """Return the variable that tells commands which rules files run them, in a dict; `{}` if there is no such file."""
    running = [*_running(), *(os.path.realpath(path) for path in rules)]
    return {_RUNNING: os.pathsep.join(running)} if running else {}


def _rules(path: str) -> Rules:
    """Read a rules file. If one of its commands started this process, return only a problem: that never ends."""
    if os.path.realpath(path) in _running():
        message = "one of its commands runs it again; take `fairlead` with this --rules out of the file"
        return Rules(problems=(Problem(path, "$", message, dropped=True),))
    return load_rules(path)


def _running() -> list[str]:
    return [path for path in os.environ.get(_RUNNING, "").split(os.pathsep) if path]


def _include(manager: HookManager, target: str) -> list[Problem]:
    path, _, name = target.rpartition(":")
    if not path or not name.isidentifier():
        path, name = target, _DEFAULT_NAME
    try:
        module = _load_file(path) if path.endswith(".py") else import_module(path)
        named = getattr(module, name, None)
        if not isinstance(named, HookManager):
            return [_problem(path, _not_a_manager(module, name))]
        manager.include(named, prefix=f"{module.__name__.rpartition('.')[2]}.")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - the user's file may raise anything, SystemExit too
        return [_problem(path, _describe(error, path))]
    return []


def _load_file(path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    name = os.path.splitext(os.path.basename(path))[0]
    path = os.path.abspath(path)
    spec = spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {path}")
    sys.path.insert(0, os.path.dirname(path))
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _not_a_manager(module: ModuleType, name: str) -> str:
    others = [key for key, value in vars(module).items() if isinstance(value, HookManager)]
    hint = f"; name one of its managers after a colon: {', '.join(others)}" if others else ""
    return f"has no HookManager named {name!r}{hint}"


def _describe(error: BaseException, path: str) -> str:
    if isinstance(error, FileNotFoundError) and error.filename == os.path.abspath(path):
        return "no such file"
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {type(error).__name__}: {error.msg}"
    return f"{_line_of(error, path)}{type(error).__name__}: {error}"


def _line_of(error: BaseException, path: str) -> str:
    """Return the line of the file that raised the error, as the prefix `line 3: `; "" if the file is not involved."""
    path = os.path.abspath(path)
    lines = [t.tb_lineno for t in _tracebacks(error.__traceback__) if t.tb_frame.f_code.co_filename == path]
    return f"line {lines[-1]}: " if lines else ""


def _tracebacks(traceback: Any) -> Iterable[Any]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _problem(source: str, message: str) -> Problem:
    return Problem(source=source, path="$", message=f"the hooks cannot be loaded: {message}", dropped=True, event=None)
