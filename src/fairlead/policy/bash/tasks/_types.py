"""The command of a task, and the order of tasks that depend on one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    ReadFile: TypeAlias = Callable[[str], str | None]
    """Returns the text of a file that a task file includes; `None` if there is none."""

MAX_TASKS = 200
"""The maximum number of tasks that are analysed for one call, including dependencies."""


class TaskCommand(NamedTuple):
    """A command of a task."""

    text: str
    language: str | None = None
    """The interpreter; `None` for a shell."""


def in_order(goals: Iterable[str], needs: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """Yield the goals and their dependencies, each once and after its own dependencies. Ends after `MAX_TASKS`."""
    done: dict[str, None] = {}
    waiting = [(goal, False) for goal in reversed([*goals])]
    while waiting and len(done) < MAX_TASKS:
        name, ready = waiting.pop()
        if ready:
            yield name
        elif name not in done:
            done[name] = None
            waiting.append((name, True))
            waiting += [(need, False) for need in reversed([*needs(name)])]
