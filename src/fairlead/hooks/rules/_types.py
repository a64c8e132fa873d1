"""The types of hook rules, of their problems, and of the places in a document where they are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from fairlead.events import HookEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.hooks._command import CommandHook
    from fairlead.hooks._manager import HookManager, Registration


class HookAction(msgspec.Struct, frozen=True, omit_defaults=True):
    """An action of a rule. Only the type `command` is run."""

    hook_type: str = msgspec.field(name="type")
    command: str | None = None
    timeout: float | None = None
    """Seconds that the command may run; `None` for the default."""
    args: tuple[str, ...] | None = None
    """The arguments if `command` is a program that runs without a shell; `None` if it is a script."""
    shell: str | None = None
    condition: str | None = msgspec.field(name="if", default=None)
    """The tool calls for which the command runs, such as `Bash(git *)`; `None` for every event."""

    def to_hook_config(self, matcher: str | None = None) -> str | dict[str, Any] | None:
        """Return the action in the short form of settings, a string or an object; `None` if it is not a command.

        `matcher` is that of its rule.
        """
        if self.hook_type != "command" or self.command is None:
            return None
        options = {"timeout_secs": self.timeout, "matcher": matcher, "args": self.args, "shell": self.shell}
        options["if"] = self.condition
        options = {key: value for key, value in options.items() if value is not None}
        return {"command": self.command, **options} if options else self.command


class HookRule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A matcher and its actions, the form to which all forms of rules in files are converted."""

    matcher: str | None = None
    hooks: tuple[HookAction, ...] = ()


class Problem(msgspec.Struct, frozen=True):
    """A problem in a rule file, with its location."""

    source: str
    """The path of the file."""
    path: str
    """The place in the document, such as `hooks.PreToolUse[0].hooks[1].timeout`; `$` for the document itself."""
    message: str
    dropped: bool
    """Whether the entry is not registered. If `False`, this is only a warning."""
    event: HookEvent | None = None
    """The event of the section, or for a misspelt name the one with the most similar name; `None` if there is none."""

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.source}: {'' if self.path == '$' else f'{self.path}: '}{self.message}"


class Rules(msgspec.Struct, frozen=True):
    """The hooks that a file defines, in order, and its problems."""

    hooks: tuple[CommandHook, ...] = ()
    problems: tuple[Problem, ...] = ()

    def register(self, manager: HookManager) -> list[Registration]:
        """Register the hooks, and return the registrations in order. A number is appended to a name that is taken."""
        return [manager.register(_renamed(hook, free_name(hook.name, manager.has_hook))) for hook in self.hooks]


def free_name(name: str, is_taken: Callable[[str], bool]) -> str:
    """Return a name, with the first free number appended if it is taken: `lint`, `lint-2`, `lint-3`."""
    number, free = 1, name
    while is_taken(free):
        number += 1
        free = f"{name}-{number}"
    return free


def _renamed(hook: CommandHook, name: str) -> CommandHook:
    if hook.name == name:
        return hook
    from copy import copy

    hook = copy(hook)
    hook.name = name
    return hook


class RuleLocation(msgspec.Struct, frozen=True):
    """A path in a document, with the event of its section."""

    path: str = ""
    event: HookEvent | None = None

    def __truediv__(self, step: str | int) -> RuleLocation:
        return RuleLocation(f"{self.path}{_shown(step)}".removeprefix("."), self.event)


class EntryError(Exception):
    """An entry of a document cannot be registered. `at` is the place of the problem."""

    def __init__(self, at: RuleLocation, message: str) -> None:
        super().__init__(message)
        self.at = at


def _shown(step: str | int) -> str:
    if isinstance(step, str) and re.fullmatch(r"[\w$-]+", step):
        return f".{step}"
    return f"[{step!r}]"
