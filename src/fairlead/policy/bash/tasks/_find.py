"""Finds the commands of tasks in a task file of any kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fairlead.policy.bash.tasks._types import ReadFile, TaskCommand


def find_commands(kind: str, text: str, args: list[str], read_file: ReadFile) -> Iterable[TaskCommand]:
    """Return the commands of a task file (`make`, `npm`, `just` or `task`) for the arguments of a call."""
    if kind == "make":
        from fairlead.policy.bash.tasks._makefile import make_commands

        return make_commands(text, args, read_file)
    if kind == "npm":
        from fairlead.policy.bash.tasks._package_json import package_commands

        return package_commands(text, args)
    if kind == "just":
        from fairlead.policy.bash.tasks._justfile import just_commands

        return just_commands(text, args)
    from fairlead.policy.bash.tasks._taskfile import taskfile_commands

    return taskfile_commands(text, args)
