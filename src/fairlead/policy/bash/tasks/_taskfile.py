"""Taskfiles: the commands of `task`, with their dependencies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from fairlead.policy.bash.tasks._types import TaskCommand, in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.policy.config._yaml_nodes import Node

_TEMPLATE: Final = re.compile(r"\{\{.*?\}\}")


def taskfile_commands(text: str, args: list[str]) -> Iterator[TaskCommand]:
    """Yield the commands of the tasks that the arguments name, or of the task `default`."""
    tasks = _mapping(_mapping(_document(text)).get("tasks"))
    goals = [arg for arg in args if "=" not in arg] or ["default"]
    for name in in_order(goals, lambda name: _needs(tasks.get(name))):
        for command in _commands(tasks.get(name)):
            yield TaskCommand(_TEMPLATE.sub("${TASK_VALUE}", command))


def _document(text: str) -> Node | None:
    from fairlead.policy.config._errors import PolicyError
    from fairlead.policy.config._yaml_nodes import compose

    try:
        return compose(text, "Taskfile")
    except PolicyError:
        return None


def _mapping(node: Node | None) -> dict[str, Node]:
    return {key.text: value for key, value in node.value} if node is not None and node.kind == "mapping" else {}


def _items(node: Node | None) -> list[Node]:
    if node is None:
        return []
    return list(node.value) if node.kind == "list" else [node]


def _steps(task: Node | None) -> list[Node]:
    """Return the steps of a task: a text, a list of them, or a mapping with `cmds` or `cmd`."""
    if task is None or task.kind != "mapping":
        return _items(task)
    fields = _mapping(task)
    return [*_items(fields.get("cmds")), *_items(fields.get("cmd"))]


def _needs(task: Node | None) -> Iterator[str]:
    needed = _items(_mapping(task).get("deps"))
    for item in [*needed, *(step for step in _steps(task) if "task" in _mapping(step))]:
        node = _mapping(item).get("task", item)
        if node.kind == "text":
            yield str(node.value)


def _commands(task: Node | None) -> Iterator[str]:
    for step in _steps(task):
        node = _mapping(step).get("cmd", step)
        if node.kind == "text":
            yield str(node.value)
