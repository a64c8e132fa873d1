"""An agent's tasks: those that its client keeps, or those that events told of."""

from __future__ import annotations

import pytest

from fairlead.clients import Task
from fairlead.mail._task_lists import TaskLists, incomplete


def test_tasks_are_in_the_order_of_their_numbers() -> None:
    kept = (Task("10", "pending"), Task("x", "pending"), Task("2", "in_progress"), Task("1", "completed"))

    tasks = TaskLists().tasks_of("s1", kept)

    assert [task.id for task in tasks] == ["1", "2", "10", "x"]
    assert [task.id for task in incomplete(tasks)] == ["2", "10", "x"]


@pytest.mark.parametrize("status", ["completed", "deleted", "something newer", ""])
def test_only_what_is_pending_or_in_progress_is_incomplete(status: str) -> None:
    assert incomplete((Task("1", status),)) == ()


def test_what_the_client_keeps_comes_before_what_events_told_of() -> None:
    heard = TaskLists()
    heard.update("s1", Task("1", "pending", "one"))
    heard.update("s1", Task("2", "pending", "two"))
    heard.update("s1", Task("1", "completed", "one"))

    assert heard.tasks_of("s1", None) == (Task("1", "completed", "one"), Task("2", "pending", "two"))
    assert heard.tasks_of("s2", None) == ()
    assert heard.tasks_of("s1", (Task("9", "pending"),)) == (Task("9", "pending"),)

    heard.forget("s1")
    assert heard.tasks_of("s1", None) == ()
